package app

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/engine"
)

// counters are all series of the Job metrics but the durations, without the prefix that they share, in order.
func counters(t *testing.T, m *metrics) []string {
	t.Helper()
	_, body := get(t, m.handler(), "/metrics")
	var out []string
	for _, line := range strings.Split(body, "\n") {
		if s, ours := strings.CutPrefix(line, "job_controller_"); ours && !strings.Contains(s, "_seconds") {
			out = append(out, s)
		}
	}
	return out
}

// counting is a reconciler's metrics.
func counting() *metrics {
	m := newMetrics()
	m.forReconciler()
	return m
}

func ended(kind batchv1.JobConditionType, reason string) []batchv1.JobCondition {
	return []batchv1.JobCondition{{Type: kind, Status: corev1.ConditionTrue, Reason: reason}}
}

func TestStatusWritten(t *testing.T) {
	nonIndexed := batchv1.JobSpec{CompletionMode: ptr.To(batchv1.NonIndexedCompletion)}
	ofIndexes := func(n int32) batchv1.JobSpec {
		return batchv1.JobSpec{CompletionMode: ptr.To(batchv1.IndexedCompletion), Completions: &n, Parallelism: &n}
	}
	perIndex := ofIndexes(4)
	perIndex.BackoffLimitPerIndex = ptr.To[int32](1)
	for _, tt := range []struct {
		name          string
		spec          batchv1.JobSpec
		before, after batchv1.JobStatus
		handled       map[batchv1.PodFailurePolicyAction]int
		want          []string
	}{
		{"nothing ended", nonIndexed, batchv1.JobStatus{Active: 1}, batchv1.JobStatus{Active: 2}, nil, nil},
		{"no completion mode at all", batchv1.JobSpec{}, batchv1.JobStatus{}, batchv1.JobStatus{Succeeded: 1}, nil,
			[]string{`job_pods_finished_total{completion_mode="NonIndexed",result="succeeded"} 1`}},
		{"Pods ended", nonIndexed, batchv1.JobStatus{Succeeded: 1, Failed: 2}, batchv1.JobStatus{Succeeded: 4, Failed: 3}, nil, []string{
			`job_pods_finished_total{completion_mode="NonIndexed",result="failed"} 1`,
			`job_pods_finished_total{completion_mode="NonIndexed",result="succeeded"} 3`}},
		{"Pods are listed and not counted yet", nonIndexed, batchv1.JobStatus{},
			batchv1.JobStatus{UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{Succeeded: []types.UID{"a"}}}, nil, nil},
		{"it completes", nonIndexed, batchv1.JobStatus{Succeeded: 1, Conditions: ended(batchv1.JobSuccessCriteriaMet, "CompletionsReached")},
			batchv1.JobStatus{Succeeded: 1, Conditions: ended(batchv1.JobComplete, "CompletionsReached")}, nil,
			[]string{`jobs_finished_total{completion_mode="NonIndexed",reason="CompletionsReached",result="succeeded"} 1`}},
		{"it fails", ofIndexes(2), batchv1.JobStatus{}, batchv1.JobStatus{Failed: 1, Conditions: ended(batchv1.JobFailed, "BackoffLimitExceeded")}, nil, []string{
			`job_pods_finished_total{completion_mode="Indexed",result="failed"} 1`,
			`jobs_finished_total{completion_mode="Indexed",reason="BackoffLimitExceeded",result="failed"} 1`}},
		{"it is about to fail", nonIndexed, batchv1.JobStatus{}, batchv1.JobStatus{Conditions: ended(batchv1.JobFailureTarget, "DeadlineExceeded")}, nil, nil},
		{"it has ended before", nonIndexed, batchv1.JobStatus{Conditions: ended(batchv1.JobFailed, "DeadlineExceeded")},
			batchv1.JobStatus{Conditions: ended(batchv1.JobFailed, "DeadlineExceeded")}, nil, nil},
		{"indexes succeed", ofIndexes(10), batchv1.JobStatus{Succeeded: 1, CompletedIndexes: "3"}, batchv1.JobStatus{Succeeded: 5, CompletedIndexes: "1,3-6"}, nil, []string{
			`job_finished_indexes_total{backoffLimit="global",status="succeeded"} 4`,
			`job_pods_finished_total{completion_mode="Indexed",result="succeeded"} 4`}},
		{"indexes succeed and fail for good", perIndex, batchv1.JobStatus{Failed: 1, FailedIndexes: ptr.To("")},
			batchv1.JobStatus{Succeeded: 1, Failed: 4, CompletedIndexes: "0", FailedIndexes: ptr.To("1,2")}, nil, []string{
				`job_finished_indexes_total{backoffLimit="perIndex",status="failed"} 2`,
				`job_finished_indexes_total{backoffLimit="perIndex",status="succeeded"} 1`,
				`job_pods_finished_total{completion_mode="Indexed",result="failed"} 3`,
				`job_pods_finished_total{completion_mode="Indexed",result="succeeded"} 1`}},
		{"the first failed indexes of all", perIndex, batchv1.JobStatus{}, batchv1.JobStatus{FailedIndexes: ptr.To("3")}, nil,
			[]string{`job_finished_indexes_total{backoffLimit="perIndex",status="failed"} 1`}},
		{"an elastic Job shrinks", ofIndexes(2), batchv1.JobStatus{Succeeded: 5, CompletedIndexes: "0-4"}, batchv1.JobStatus{Succeeded: 2, CompletedIndexes: "0,1"}, nil, nil},
		{"an elastic Job shrinks while an index succeeds", ofIndexes(2), batchv1.JobStatus{Succeeded: 3, CompletedIndexes: "1-3"},
			batchv1.JobStatus{Succeeded: 2, CompletedIndexes: "0,1"}, nil, []string{
				`job_finished_indexes_total{backoffLimit="global",status="succeeded"} 1`,
				`job_pods_finished_total{completion_mode="Indexed",result="succeeded"} 1`}},
		{"an elastic Job shrinks to nothing", ofIndexes(0), batchv1.JobStatus{Succeeded: 3, CompletedIndexes: "0-2"}, batchv1.JobStatus{}, nil, nil},
		{"an elastic Job grows and does again what it forgot", ofIndexes(4), batchv1.JobStatus{Succeeded: 2, CompletedIndexes: "0,1"},
			batchv1.JobStatus{Succeeded: 4, CompletedIndexes: "0-3"}, nil, []string{
				`job_finished_indexes_total{backoffLimit="global",status="succeeded"} 2`,
				`job_pods_finished_total{completion_mode="Indexed",result="succeeded"} 2`}},
		{"counters that another client has raised", nonIndexed, batchv1.JobStatus{Succeeded: 9, Failed: 9}, batchv1.JobStatus{Succeeded: 1, Failed: 1}, nil, nil},
		{"unreadable indexes", ofIndexes(4), batchv1.JobStatus{CompletedIndexes: "what"}, batchv1.JobStatus{CompletedIndexes: "0-3"}, nil, nil},
		{"a failure policy", nonIndexed, batchv1.JobStatus{}, batchv1.JobStatus{},
			map[batchv1.PodFailurePolicyAction]int{"Ignore": 2, "FailJob": 1, "Count": 0}, []string{
				`pod_failures_handled_by_failure_policy_total{action="FailJob"} 1`,
				`pod_failures_handled_by_failure_policy_total{action="Ignore"} 2`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := counting()
			m.jobs.StatusWritten(&batchv1.Job{Spec: tt.spec, Status: tt.before}, &batchv1.Job{Spec: tt.spec, Status: tt.after}, tt.handled)
			if got := counters(t, m); !slices.Equal(got, tt.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

func TestPodCreation(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	ending := apierrors.NewForbidden(pods, "p", errors.New("it ends"))
	ending.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	onlyFailed := batchv1.JobSpec{PodReplacementPolicy: ptr.To(batchv1.Failed)}
	failed := batchv1.JobStatus{Failed: 1}
	for _, tt := range []struct {
		name   string
		spec   batchv1.JobSpec
		status batchv1.JobStatus
		err    error
		want   string
	}{
		{"the first", batchv1.JobSpec{}, batchv1.JobStatus{}, nil, `reason="new",status="succeeded"`},
		{"beside good ones", batchv1.JobSpec{}, batchv1.JobStatus{Succeeded: 3, Active: 1}, nil, `reason="new",status="succeeded"`},
		{"after a failed one", batchv1.JobSpec{}, failed, nil, `reason="recreate_terminating_or_failed",status="succeeded"`},
		{"after one that failed and is not counted yet", batchv1.JobSpec{},
			batchv1.JobStatus{UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{Failed: []types.UID{"a"}}}, nil, `reason="recreate_terminating_or_failed",status="succeeded"`},
		{"beside one that ends", batchv1.JobSpec{}, batchv1.JobStatus{Terminating: ptr.To[int32](1)}, nil, `reason="recreate_terminating_or_failed",status="succeeded"`},
		{"after a failed one, of a Job that waits for the end", onlyFailed, failed, nil, `reason="recreate_failed",status="succeeded"`},
		{"refused", batchv1.JobSpec{}, batchv1.JobStatus{}, apierrors.NewForbidden(pods, "p", errors.New("exceeded quota")), `reason="new",status="failed"`},
		{"again, and it was there already", batchv1.JobSpec{}, batchv1.JobStatus{}, apierrors.NewAlreadyExists(pods, "p"), ""},
		{"in a namespace that ends", batchv1.JobSpec{}, batchv1.JobStatus{}, ending, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := counting()
			m.jobs.PodCreation(&batchv1.Job{Spec: tt.spec, Status: tt.status}, tt.err)
			var want []string
			if tt.want != "" {
				want = []string{"job_pods_creation_total{" + tt.want + "} 1"}
			}
			if got := counters(t, m); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestFinalizerRemoved(t *testing.T) {
	m := counting()
	m.jobs.FinalizerRemoved()
	if got := counters(t, m); !slices.Equal(got, []string{`terminated_pods_tracking_finalizer_total{event="delete"} 1`}) {
		t.Errorf("got %q", got)
	}
}

func TestSyncs(t *testing.T) {
	observation := func(indexed bool) events.Event { return events.JobObserved{Job: events.Job{Indexed: indexed}} }
	pod := func(index int) events.Event { return events.PodObserved{Pod: events.Pod{Index: index}} }
	fired := events.TimerFired{Name: "plan"}
	create := func(index int) effect.Effect { return effect.CreatePod{Index: index} }
	for _, tt := range []struct {
		name  string
		facts []events.Event
		tried []effect.Effect
		err   error
		want  string
	}{
		{"a Job", []events.Event{observation(false)}, nil, nil, `action="tracking",completion_mode="NonIndexed",result="success"`},
		{"an Indexed Job that makes Pods", []events.Event{observation(true)}, []effect.Effect{effect.WriteJobStatus{}, create(0)}, nil,
			`action="pods_created",completion_mode="Indexed",result="success"`},
		{"a Pod", []events.Event{fired, pod(events.NoIndex)}, nil, nil, `action="tracking",completion_mode="NonIndexed",result="success"`},
		{"a Pod with an index", []events.Event{pod(3)}, nil, nil, `action="tracking",completion_mode="Indexed",result="success"`},
		{"a snapshot", []events.Event{events.JobListed{Job: &events.Job{Indexed: true}}}, nil, nil, `action="tracking",completion_mode="Indexed",result="success"`},
		{"the end of a backoff", []events.Event{fired}, []effect.Effect{create(events.NoIndex)}, nil, `action="pods_created",completion_mode="NonIndexed",result="success"`},
		{"a timer, and nothing came of it", []events.Event{fired}, nil, nil, `action="tracking",completion_mode="unknown",result="success"`},
		{"a snapshot without the Job", []events.Event{events.JobListed{}}, nil, nil, `action="tracking",completion_mode="unknown",result="success"`},
		{"deletions count before creations", []events.Event{observation(false)}, []effect.Effect{create(events.NoIndex), effect.DeletePod{}}, nil,
			`action="pods_deleted",completion_mode="NonIndexed",result="success"`},
		{"a failure", []events.Event{observation(false)}, nil, engine.Retry{Err: errors.New("busy")}, `action="tracking",completion_mode="NonIndexed",result="error"`},
		{"the end of the program", []events.Event{observation(false)}, nil, engine.Retry{Err: context.Canceled}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := counting()
			m.turned(engine.Turned{Function: "job", Facts: tt.facts, Tried: tt.tried, Err: tt.err, Duration: 5 * time.Millisecond})
			var want []string
			if tt.want != "" {
				want = []string{"job_syncs_total{" + tt.want + "} 1"}
			}
			if got := counters(t, m); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			_, body := get(t, m.handler(), "/metrics")
			if duration := "job_controller_job_sync_duration_seconds_count{" + tt.want + "} 1"; tt.want != "" && !strings.Contains(body, duration) {
				t.Errorf("no %s", duration)
			}
		})
	}
}

func TestTurnsOfOtherFunctionsAreNoSyncs(t *testing.T) {
	m := counting()
	m.turned(engine.Turned{Function: "another", Facts: []events.Event{events.JobObserved{}}})
	if got := counters(t, m); len(got) > 0 {
		t.Errorf("got %q", got)
	}
}

// Kubernetes' names, labels and buckets: dashboards and alerts know them (pkg/controller/job/metrics/metrics.go, 1.36).
func TestNamesOfKubernetes(t *testing.T) {
	want := map[string]string{
		"job_controller_job_sync_duration_seconds":                    "action completion_mode result",
		"job_controller_job_syncs_total":                              "action completion_mode result",
		"job_controller_jobs_finished_total":                          "completion_mode reason result",
		"job_controller_job_pods_finished_total":                      "completion_mode result",
		"job_controller_pod_failures_handled_by_failure_policy_total": "action",
		"job_controller_terminated_pods_tracking_finalizer_total":     "event",
		"job_controller_job_finished_indexes_total":                   "backoffLimit status",
		"job_controller_job_pods_creation_total":                      "reason status",
	}
	m := counting()
	perIndex := &batchv1.Job{Spec: batchv1.JobSpec{CompletionMode: ptr.To(batchv1.IndexedCompletion), Completions: ptr.To[int32](2), BackoffLimitPerIndex: ptr.To[int32](1)}}
	after := perIndex.DeepCopy()
	after.Status = batchv1.JobStatus{CompletedIndexes: "0", FailedIndexes: ptr.To("1"), Conditions: ended(batchv1.JobFailed, "FailedIndexes")}
	m.jobs.StatusWritten(perIndex, after, map[batchv1.PodFailurePolicyAction]int{"FailIndex": 1})
	m.jobs.PodCreation(after, nil)
	m.jobs.FinalizerRemoved()
	m.turned(engine.Turned{Function: "job"})
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "job_controller_") {
			continue
		}
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		got[f.GetName()] = strings.Join(labels, " ")
		if h := f.GetMetric()[0].GetHistogram(); h != nil && (len(h.GetBucket()) != 15 || h.GetBucket()[0].GetUpperBound() != 0.004) {
			t.Errorf("%s has the buckets %v", f.GetName(), h.GetBucket())
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
