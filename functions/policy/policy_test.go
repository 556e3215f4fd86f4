package policy_test

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/intervals"
	"github.com/jobstream/jobstream/functions/policy"
)

func ExampleFailure() {
	main := "main"
	p := &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{
		{Action: batchv1.PodFailurePolicyActionIgnore, OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: "DisruptionTarget", Status: "True"}}},
		{Action: batchv1.PodFailurePolicyActionFailJob, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
			ContainerName: &main, Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{42}}},
	}}
	evicted := []events.PodCondition{{Type: "DisruptionTarget", Status: "True"}}
	for _, pod := range []events.Pod{
		{Name: "a", Exits: []events.Exit{{Container: "main", Code: 42}}},
		{Name: "b", Exits: []events.Exit{{Container: "main", Code: 42}}, Conditions: evicted},
		{Name: "c", Exits: []events.Exit{{Container: "sidecar", Code: 42}}},
	} {
		h := policy.Failure(p, "default", pod)
		fmt.Printf("%s: action %q, counts %v, message %q\n", pod.Name, h.Action, h.Counts, h.Message)
	}
	// Output:
	// a: action "FailJob", counts true, message "Container main for pod default/a failed with exit code 42 matching FailJob rule at index 1"
	// b: action "Ignore", counts false, message ""
	// c: action "", counts true, message ""
}

func ExampleSuccess() {
	leaders, two := "0,1", int32(2)
	p := &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededIndexes: &leaders}, {SucceededCount: &two}}}
	for _, completed := range []intervals.Set{nil, intervals.Of(0), intervals.Of(0, 5), intervals.Of(0, 1)} {
		fmt.Println(policy.Success(p, 6, completed))
	}
	// Output:
	//  false
	//  false
	// Matched rules at index 1 true
	// Matched rules at index 0 true
}
