package oracle_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/test/oracle"
)

// TestRules breaks each rule of the API server once (the numbers are those of the reference, section 2): the valid write is
// stored; the same write with one thing wrong is refused for that very thing.
func TestRules(t *testing.T) {
	for number := 1; number <= 25; number++ {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(rules)), func(name string) bool { return strings.HasPrefix(name, strconv.Itoa(number)+" ") }) {
			t.Errorf("no case breaks rule %d", number)
		}
	}
	for name, c := range rules {
		t.Run(name, func(t *testing.T) {
			before := running()
			if c.before != nil {
				c.before(&before)
			}
			good := copyOf(before)
			if c.good != nil {
				c.good(&good)
			}
			if err := oracle.Creatable(before); err != nil {
				t.Fatalf("no user can create this Job: %v", err)
			}
			if err := oracle.Verdict(before, good); err != nil {
				t.Fatalf("the valid write is refused: %v", err)
			}
			bad := copyOf(good)
			c.wrong(&bad)
			err := oracle.Verdict(before, bad)
			if err == nil {
				t.Fatal("the invalid write is accepted")
			}
			if !strings.Contains(err.Error(), c.refusal) {
				t.Fatalf("refused with %v, not with %q", err, c.refusal)
			}
		})
	}
}

type rule struct {
	before, good, wrong func(*events.Job)
	refusal             string
}

var rules = map[string]rule{
	"1 active is negative":      {wrong: func(j *events.Job) { j.Status.Active, j.Status.Ready = -1, nil }, refusal: "status.active: Invalid value: -1"},
	"1 succeeded is negative":   {wrong: func(j *events.Job) { j.Status.Succeeded = -1 }, refusal: "status.succeeded: Invalid value: -1"},
	"1 failed is negative":      {wrong: func(j *events.Job) { j.Status.Failed = -1 }, refusal: "status.failed: Invalid value: -1"},
	"1 ready is negative":       {wrong: func(j *events.Job) { j.Status.Ready = new(int32(-1)) }, refusal: "status.ready: Invalid value: -1"},
	"1 terminating is negative": {wrong: func(j *events.Job) { j.Status.Terminating = new(int32(-1)) }, refusal: "status.terminating: Invalid value: -1"},
	"2 an empty UID is uncounted": {wrong: func(j *events.Job) { list(j, []types.UID{""}, nil) },
		refusal: "uncountedTerminatedPods.succeeded[0]: Invalid value: \"\""},
	"2 a UID is uncounted twice": {wrong: func(j *events.Job) { list(j, nil, []types.UID{"a", "a"}) },
		refusal: "uncountedTerminatedPods.failed[1]: Duplicate value"},
	"2 a UID has succeeded and failed": {wrong: func(j *events.Job) { list(j, []types.UID{"a"}, []types.UID{"a"}) },
		refusal: "uncountedTerminatedPods.failed[0]: Duplicate value"},
	"3 SuccessCriteriaMet and Failed": {before: succeeding, wrong: func(j *events.Job) { stop(j); is(j, batchv1.JobFailed) },
		refusal: "cannot set SuccessCriteriaMet=True and Failed=true"},
	"3 SuccessCriteriaMet and FailureTarget": {before: succeeding, wrong: func(j *events.Job) { is(j, batchv1.JobFailureTarget) },
		refusal: "cannot set SuccessCriteriaMet=True and FailureTarget=true"},
	"4 successPolicy and no SuccessCriteriaMet": {
		before:  func(j *events.Job) { indexed(j); succeeding(j); count(j, 1) },
		good:    finish(batchv1.JobComplete),
		wrong:   drop(batchv1.JobSuccessCriteriaMet),
		refusal: "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True",
	},
	"5 SuccessCriteriaMet is removed": {before: succeeding, wrong: drop(batchv1.JobSuccessCriteriaMet), refusal: "cannot disable the SuccessCriteriaMet=True"},
	"5 SuccessCriteriaMet is late": {before: func(j *events.Job) { finish(batchv1.JobComplete)(j) },
		wrong: func(j *events.Job) { is(j, batchv1.JobSuccessCriteriaMet) }, refusal: "cannot set SuccessCriteriaMet=True for Job already has Complete"},
	"6 FailureTarget is removed": {before: failing, wrong: drop(batchv1.JobFailureTarget), refusal: "cannot disable the terminal FailureTarget=True"},
	"6 Failed is removed": {before: func(j *events.Job) { failing(j); finish(batchv1.JobFailed)(j) }, wrong: drop(batchv1.JobFailed),
		refusal: "cannot disable the terminal Failed=True"},
	"6 Complete is removed": {before: func(j *events.Job) { succeeding(j); finish(batchv1.JobComplete)(j) }, wrong: drop(batchv1.JobComplete),
		refusal: "cannot disable the terminal Complete=True"},
	"7 failed decreases":    {before: func(j *events.Job) { j.Status.Failed = 2 }, wrong: func(j *events.Job) { j.Status.Failed = 1 }, refusal: "cannot decrease the failed counter"},
	"8 succeeded decreases": {before: func(j *events.Job) { count(j, 2) }, wrong: func(j *events.Job) { count(j, 1) }, refusal: "cannot decrease the succeeded counter"},
	"9 completionTime changes": {before: func(j *events.Job) { succeeding(j); finish(batchv1.JobComplete)(j) },
		wrong: func(j *events.Job) { j.Status.CompletionTime = clock(9) }, refusal: "status.completionTime: Invalid value"},
	"10 the annotations are too large": {wrong: func(j *events.Job) { j.Options.Parameters = strings.Repeat("a", 256<<10) },
		refusal: "metadata.annotations: Too long"},
	"10 the spec changes":    {wrong: func(j *events.Job) { j.Parallelism++ }, refusal: "a status write changes the spec"},
	"11 Complete and Failed": {before: succeeding, good: finish(batchv1.JobComplete), wrong: func(j *events.Job) { is(j, batchv1.JobFailed) }, refusal: "cannot set Complete=True and Failed=true"},
	"12 Complete, FailureTarget": {before: succeeding, good: finish(batchv1.JobComplete), wrong: func(j *events.Job) { is(j, batchv1.JobFailureTarget) },
		refusal: "cannot set Complete=True and FailureTarget=true"},
	"13 completionTime alone": {wrong: func(j *events.Job) { j.Status.CompletionTime = clock(5) }, refusal: "cannot set completionTime when there is no Complete=True"},
	"13 Complete alone": {before: succeeding, good: finish(batchv1.JobComplete), wrong: func(j *events.Job) { j.Status.CompletionTime = nil },
		refusal: "completionTime is required for Complete jobs"},
	"14 completion before start": {before: succeeding, good: finish(batchv1.JobComplete), wrong: func(j *events.Job) { j.Status.CompletionTime = clock(-5) },
		refusal: "must be equal to or after `startTime`"},
	"15 Failed without FailureTarget": {before: failing, good: finish(batchv1.JobFailed), wrong: drop(batchv1.JobFailureTarget),
		refusal: "cannot set Failed=True condition without the FailureTarget=true"},
	"16 Complete without SuccessCriteriaMet": {before: succeeding, good: finish(batchv1.JobComplete), wrong: drop(batchv1.JobSuccessCriteriaMet),
		refusal: "cannot set Complete=True condition without the SuccessCriteriaMet=true"},
	"17 finished and active": {before: succeeding, good: finish(batchv1.JobComplete), wrong: func(j *events.Job) { j.Status.Active = 1 },
		refusal: "active>0 is invalid for finished job"},
	"18 finished and terminating": {before: failing, good: finish(batchv1.JobFailed), wrong: func(j *events.Job) { j.Status.Terminating = new(int32(1)) },
		refusal: "terminating>0 is invalid for finished job"},
	"19 finished and uncounted": {before: failing, good: finish(batchv1.JobFailed), wrong: func(j *events.Job) { list(j, nil, []types.UID{"a"}) },
		refusal: "status.uncountedTerminatedPods: Invalid value"},
	"20 finished and not started": {before: func(j *events.Job) { succeeding(j); j.Status.StartTime = nil },
		good:    func(j *events.Job) { finish(batchv1.JobComplete)(j); j.Status.StartTime = clock(5) },
		wrong:   func(j *events.Job) { j.Status.StartTime = nil },
		refusal: "startTime is required for finished job"},
	"21 startTime changes":    {wrong: func(j *events.Job) { j.Status.StartTime = clock(1) }, refusal: "field is immutable for unsuspended job once set"},
	"21 startTime is removed": {wrong: func(j *events.Job) { j.Status.StartTime = nil }, refusal: "field is immutable for unsuspended job once set"},
	"22 more ready than active": {wrong: func(j *events.Job) { j.Status.Ready = new(int32(2)) },
		refusal: "cannot set more ready pods than active"},
	"23 completedIndexes out of range": {before: indexed, wrong: func(j *events.Job) { j.Status.CompletedIndexes = "4" }, refusal: "error parsing completedIndexes"},
	"23 completedIndexes out of order": {before: indexed, wrong: func(j *events.Job) { j.Status.CompletedIndexes = "2,1" }, refusal: "error parsing completedIndexes"},
	"23 completedIndexes no interval":  {before: indexed, wrong: func(j *events.Job) { j.Status.CompletedIndexes = "1-1" }, refusal: "error parsing completedIndexes"},
	"23 completedIndexes, not Indexed": {wrong: func(j *events.Job) { j.Status.CompletedIndexes = "0" }, refusal: "cannot set non-empty completedIndexes when non-indexed"},
	"24 failedIndexes out of range": {before: perIndex, wrong: func(j *events.Job) { j.Status.FailedIndexes = new("4") },
		refusal: "error parsing failedIndexes"},
	"24 failedIndexes, no limit": {before: indexed, wrong: func(j *events.Job) { j.Status.FailedIndexes = new("") },
		refusal: "cannot set non-null failedIndexes when backoffLimitPerIndex is null"},
	"25 an index is completed and failed": {before: perIndex,
		wrong: func(j *events.Job) { j.Status.FailedIndexes, j.Status.CompletedIndexes = new("0,2"), "2,3" }, refusal: "failedIndexes and completedIndexes overlap"},
}

// TestExceptions: what the rules above forbid is allowed if the API server has a reason.
func TestExceptions(t *testing.T) {
	suspended := func(j *events.Job) { j.Suspended = true }
	for name, c := range map[string]struct{ before, good func(*events.Job) }{
		"8 an elastic Job shrinks": {
			before: func(j *events.Job) { j.Indexed, j.Parallelism = true, 4; count(j, 2) },
			good:   func(j *events.Job) { count(j, 1) }},
		"17 an old violation may stay": {
			before: func(j *events.Job) { j.Status.Ready = new(int32(5)) },
			good:   func(j *events.Job) { j.Status.Failed++ }},
		"20 a suspended Job with zero completions has no startTime": {
			before: func(j *events.Job) { suspended(j); j.Completions = new(int32(0)); j.Status = batchv1.JobStatus{} },
			good:   func(j *events.Job) { succeeding(j); finish(batchv1.JobComplete)(j) }},
		"21 a suspended Job loses its startTime": {before: suspended, good: func(j *events.Job) { j.Status.StartTime = nil }},
		"21 a resumed Job gets a new startTime": {
			before: func(j *events.Job) { is(j, batchv1.JobSuspended) },
			good:   func(j *events.Job) { drop(batchv1.JobSuspended)(j); j.Status.StartTime = clock(7) }},
		"24 failedIndexes may be empty": {before: perIndex},
	} {
		t.Run(name, func(t *testing.T) {
			before := running()
			c.before(&before)
			after := copyOf(before)
			if c.good != nil {
				c.good(&after)
			}
			if err := oracle.Verdict(before, after); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func clock(second int) *metav1.Time {
	return new(metav1.NewTime(time.Date(2026, 1, 1, 0, 0, second, 0, time.UTC)))
}

func running() events.Job {
	return events.Job{Namespace: "default", Name: "pi", UID: "job-1", Version: 7, Parallelism: 2, Completions: new(int32(4)), BackoffLimit: 6,
		Status: batchv1.JobStatus{StartTime: clock(0), Active: 1, Ready: new(int32(1)), Terminating: new(int32(0)),
			UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{}}}
}

func copyOf(j events.Job) events.Job {
	j.Status = *j.Status.DeepCopy()
	return j
}

func indexed(j *events.Job) {
	j.Indexed, j.SuccessPolicy = true, &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededCount: new(int32(1))}}}
}

func perIndex(j *events.Job) {
	j.Indexed, j.BackoffLimitPerIndex, j.Status.FailedIndexes = true, new(int32(1)), new("")
}

func list(j *events.Job, succeeded, failed []types.UID) {
	j.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{Succeeded: succeeded, Failed: failed}
}

// count sets the n lowest indexes, or any n Pods, as succeeded.
func count(j *events.Job, n int32) {
	if j.Status.Succeeded = n; j.Indexed {
		j.Status.CompletedIndexes = []string{"", "0", "0,1"}[n]
	}
}

func is(j *events.Job, c batchv1.JobConditionType) {
	j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: c, Status: corev1.ConditionTrue, LastTransitionTime: *clock(5)})
}

func stop(j *events.Job) { j.Status.Active, j.Status.Ready = 0, new(int32(0)) }

func succeeding(j *events.Job) { stop(j); is(j, batchv1.JobSuccessCriteriaMet) }
func failing(j *events.Job)    { stop(j); is(j, batchv1.JobFailureTarget) }

func finish(c batchv1.JobConditionType) func(*events.Job) {
	return func(j *events.Job) {
		stop(j)
		if is(j, c); c == batchv1.JobComplete {
			j.Status.CompletionTime = clock(5)
		}
	}
}

func drop(c batchv1.JobConditionType) func(*events.Job) {
	return func(j *events.Job) {
		for i := range j.Status.Conditions {
			if j.Status.Conditions[i].Type == c {
				j.Status.Conditions[i].Status = corev1.ConditionFalse
			}
		}
	}
}
