package policy_test

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

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

// TestFailure: the first rule decides that matches, by the exit code of a container that failed or by a condition (upstream:
// TestMatchPodFailurePolicy).
func TestFailure(t *testing.T) {
	exits := func(container string, code int32) events.Pod {
		return events.Pod{Name: "a", Exits: []events.Exit{{Container: "first", Code: 1}, {Container: container, Code: code}}}
	}
	disrupted := func(status corev1.ConditionStatus) events.Pod {
		return events.Pod{Name: "a", Conditions: []events.PodCondition{{Type: "Ready", Status: "False"}, {Type: corev1.DisruptionTarget, Status: status}}}
	}
	onExit := func(a batchv1.PodFailurePolicyAction, of *string, op batchv1.PodFailurePolicyOnExitCodesOperator, codes ...int32) batchv1.PodFailurePolicyRule {
		return batchv1.PodFailurePolicyRule{Action: a, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{ContainerName: of, Operator: op, Values: codes}}
	}
	onCondition := func(a batchv1.PodFailurePolicyAction) batchv1.PodFailurePolicyRule {
		return batchv1.PodFailurePolicyRule{Action: a, OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: "Spot", Status: "True"}, {Type: corev1.DisruptionTarget, Status: "True"}}}
	}
	const ignore, count, index, job = batchv1.PodFailurePolicyActionIgnore, batchv1.PodFailurePolicyActionCount, batchv1.PodFailurePolicyActionFailIndex, batchv1.PodFailurePolicyActionFailJob
	const in, notIn = batchv1.PodFailurePolicyOnExitCodesOpIn, batchv1.PodFailurePolicyOnExitCodesOpNotIn
	counts := policy.Handling{Counts: true}
	for _, c := range []struct {
		name  string
		rules []batchv1.PodFailurePolicyRule
		pod   events.Pod
		want  policy.Handling
	}{
		{"no rule", nil, exits("main", 3), counts},
		{"one of the codes", []batchv1.PodFailurePolicyRule{onExit(index, nil, in, 2, 3)}, exits("main", 3), policy.Handling{Action: index, Counts: true}},
		{"none of the codes", []batchv1.PodFailurePolicyRule{onExit(index, nil, in, 2, 4)}, exits("main", 3), counts},
		{"another code than these", []batchv1.PodFailurePolicyRule{onExit(count, new("main"), notIn, 1, 2)}, exits("main", 3), policy.Handling{Action: count, Counts: true}},
		{"no other code than these", []batchv1.PodFailurePolicyRule{onExit(count, nil, notIn, 1, 3)}, exits("main", 3), counts},
		{"an operator of a later Kubernetes", []batchv1.PodFailurePolicyRule{onExit(count, nil, "Above", 1, 3)}, exits("main", 3), counts},
		{"the code of another container", []batchv1.PodFailurePolicyRule{onExit(ignore, new("main"), in, 1)}, exits("main", 3), counts},
		{"no container has failed", []batchv1.PodFailurePolicyRule{onExit(ignore, nil, notIn, 1)}, events.Pod{Name: "a"}, counts},
		{"the condition is true", []batchv1.PodFailurePolicyRule{onCondition(ignore)}, disrupted("True"), policy.Handling{Action: ignore}},
		{"the condition is false", []batchv1.PodFailurePolicyRule{onCondition(ignore)}, disrupted("False"), counts},
		{"the first of two that match", []batchv1.PodFailurePolicyRule{onExit(ignore, nil, in, 9), onExit(count, nil, in, 3), onExit(ignore, nil, in, 3)}, exits("main", 3), policy.Handling{Action: count, Counts: true}},
		{"an action of a later Kubernetes decides nothing", []batchv1.PodFailurePolicyRule{onExit("Pause", nil, in, 3), onExit(ignore, nil, in, 3)}, exits("main", 3), policy.Handling{Action: ignore}},
		{"the Job fails by a condition", []batchv1.PodFailurePolicyRule{onCondition(job)}, disrupted("True"),
			policy.Handling{Action: job, Counts: true, Message: "Pod shop/a has condition DisruptionTarget matching FailJob rule at index 0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := policy.Failure(&batchv1.PodFailurePolicy{Rules: c.rules}, "shop", c.pod); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
	if got := policy.Failure(nil, "shop", exits("main", 3)); got != counts {
		t.Errorf("without a policy: %+v", got)
	}
}

// TestSuccess: a rule is satisfied by all of the indexes that it names, as far as the Job has them, by so many of them, or by so
// many of any (upstream: TestMatchSuccessPolicy).
func TestSuccess(t *testing.T) {
	named := func(indexes string) batchv1.SuccessPolicyRule {
		return batchv1.SuccessPolicyRule{SucceededIndexes: &indexes}
	}
	many := func(n int32) batchv1.SuccessPolicyRule { return batchv1.SuccessPolicyRule{SucceededCount: &n} }
	some := func(n int32, indexes string) batchv1.SuccessPolicyRule {
		return batchv1.SuccessPolicyRule{SucceededCount: &n, SucceededIndexes: &indexes}
	}
	for _, c := range []struct {
		name      string
		rules     []batchv1.SuccessPolicyRule
		completed intervals.Set
		want      string
	}{
		{"no rule", nil, intervals.Of(0, 1, 2, 3), ""},
		{"a rule that asks for nothing", []batchv1.SuccessPolicyRule{{}}, intervals.Of(0, 1, 2, 3), ""},
		{"none is completed", []batchv1.SuccessPolicyRule{many(0)}, nil, ""},
		{"all that are named", []batchv1.SuccessPolicyRule{named("0,2")}, intervals.Of(0, 2), "Matched rules at index 0"},
		{"not all that are named", []batchv1.SuccessPolicyRule{named("0,2")}, intervals.Of(0, 1, 3), ""},
		{"all that are named and exist", []batchv1.SuccessPolicyRule{named("2-9")}, intervals.Of(2, 3), "Matched rules at index 0"},
		{"those that are named do not exist", []batchv1.SuccessPolicyRule{named("4-9")}, intervals.Of(0, 1, 2, 3), ""},
		{"they cannot be read", []batchv1.SuccessPolicyRule{named("2-1")}, intervals.Of(0, 1, 2, 3), ""},
		{"as many as wanted", []batchv1.SuccessPolicyRule{many(2)}, intervals.Of(0, 3), "Matched rules at index 0"},
		{"fewer than wanted", []batchv1.SuccessPolicyRule{many(3)}, intervals.Of(0, 3), ""},
		{"as many as wanted of those that are named", []batchv1.SuccessPolicyRule{some(2, "0-2")}, intervals.Of(0, 2), "Matched rules at index 0"},
		{"fewer than wanted of those that are named", []batchv1.SuccessPolicyRule{some(2, "0-2")}, intervals.Of(0, 3), ""},
		{"the second rule", []batchv1.SuccessPolicyRule{named("0"), many(1), many(1)}, intervals.Of(3), "Matched rules at index 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			message, ok := policy.Success(&batchv1.SuccessPolicy{Rules: c.rules}, 4, c.completed)
			if message != c.want || ok != (c.want != "") {
				t.Errorf("satisfied %v, %q; want %q", ok, message, c.want)
			}
		})
	}
	if message, ok := policy.Success(nil, 4, intervals.Of(0, 1, 2, 3)); ok {
		t.Errorf("without a policy: %q", message)
	}
}
