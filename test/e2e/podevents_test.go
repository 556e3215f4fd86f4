package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// With --event-pods a subscriber receives the end of each Pod once by source and id, as it counts, before the end of its Job,
// though reconcilers are killed meanwhile. With --core-events each Job has one Event of its start and one of its end, even after
// the bus was wiped and the public events are announced again.
func TestSubscriberReceivesTheEndOfEachPod(t *testing.T) {
	t.Parallel()
	s := own(t, harness.Config{Reconcilers: 2, ReconcilerFlags: []string{"--event-pods", "--core-events", "--pod-failure-backoff-base=1s"}})
	p := s.Space(t)
	subscriber := p.Subscribe()

	once := filepath.Join(t.TempDir(), "once")
	p.Apply(harness.Shell("indexed", "true", harness.Size(6, 3, 0), harness.Indexed))
	p.Apply(harness.Shell("bad", "exit 3", harness.Size(1, 1, 1))) // one after the other, so that the verdict deletes no running Pod
	p.Apply(harness.Shell("ignored", "mkdir "+once+" && exit 42; true", harness.Size(1, 1, 0), ignores(42)))
	jobs := map[string]batchv1.JobConditionType{"indexed": batchv1.JobComplete, "bad": batchv1.JobFailed, "ignored": batchv1.JobComplete}
	for name, end := range jobs {
		p.AwaitEnd(name, end, timeout)
	}
	coreEvents(t, p, jobs) // before a reconciler is killed that has announced an end, and has not sent the Event about it yet
	p.Apply(harness.Shell("wide", "sleep 0.5", harness.Size(60, 10, 0)))
	for i, r := range s.Reconcilers {
		p.Await("wide", timeout, "to have progressed", func(j *batchv1.Job) bool { return int(j.Status.Succeeded) >= 10+20*i })
		if err := r.Kill(); err != nil {
			t.Fatal(err)
		}
		startAll(t, s)
	}
	jobs["wide"] = batchv1.JobComplete
	p.AwaitEnd("wide", jobs["wide"], timeout)
	ends := receivesPods(t, p, subscriber, jobs)
	for name := range jobs {
		j, count := p.Job(name), map[events.PodResult]int32{}
		for _, e := range ends {
			if e.Job.UID == j.UID {
				count[e.Result]++
			}
		}
		if count[events.PodSucceeded] != j.Status.Succeeded || count[events.PodFailed] != j.Status.Failed || count[events.PodIgnored] > 0 != (name == "ignored") {
			t.Errorf("%s: %v, and its status is %s", name, count, harness.Brief(j.Status))
		}
	}
	received := subscriber.Received()
	stored := len(received)
	if distinct := len(byKey(received)); distinct != stored {
		t.Errorf("%d messages of %d events: the stream has stored some twice", stored, distinct)
	}
	coreEvents(t, p, jobs)

	replaceBus(t, s, 0)
	harness.Until(t, timeout, "the ends of Jobs to be announced again", func(context.Context) error {
		again := 0
		for _, r := range subscriber.Received()[stored:] {
			if _, ok := r.Event.(events.JobFinished); ok {
				again++
			}
		}
		if again < len(jobs) {
			return fmt.Errorf("%d are", again)
		}
		return nil
	})
	p.Apply(harness.Shell("afterwards", "true", harness.Size(1, 1, 0)))
	p.AwaitEnd("afterwards", batchv1.JobComplete, timeout)
	jobs["afterwards"] = batchv1.JobComplete
	receivesPods(t, p, subscriber, jobs)
	coreEvents(t, p, jobs)
	t.Logf("%d Pods, %d messages, then %d more", len(ends), stored, len(subscriber.Received())-stored)
}

// ignores adds a rule that ignores failures with that exit code.
func ignores(code int32) func(*batchv1.JobSpec) {
	return func(s *batchv1.JobSpec) {
		s.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{Action: batchv1.PodFailurePolicyActionIgnore,
			OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{code}}}}}
	}
}

// receivesPods waits until the subscriber has received the end of each Pod, and compares it with the Pod.
func receivesPods(t *testing.T, p *harness.Space, subscriber *harness.Subscriber, jobs map[string]batchv1.JobConditionType) map[types.UID]events.PodFinished {
	t.Helper()
	pods := map[types.UID]corev1.Pod{}
	for job := range jobs {
		for _, pod := range p.Pods(job) {
			pods[pod.UID] = pod
		}
	}
	var received map[types.UID]events.PodFinished
	var late []events.PodFinished
	harness.Until(t, timeout, "the subscriber to have received every Pod and Job", func(context.Context) error {
		ends := map[string]bool{}
		received, late = map[types.UID]events.PodFinished{}, nil
		for _, r := range subscriber.Received() {
			switch e := r.Event.(type) {
			case events.PodFinished:
				if _, again := received[e.Pod.UID]; ends[e.Job.Name] && !again {
					late = append(late, e)
				}
				received[e.Pod.UID] = e
			case events.JobFinished:
				ends[e.Job.Name] = true
			}
		}
		if len(received) < len(pods) || len(ends) < len(jobs) {
			return fmt.Errorf("%d of %d Pods, %d of %d Jobs", len(received), len(pods), len(ends), len(jobs))
		}
		return nil
	})
	if len(late) > 0 {
		t.Errorf("these come after the end of their Job: %v", late)
	}
	for uid, e := range received {
		pod, ok := pods[uid]
		if !ok {
			t.Errorf("%v: no such Pod exists", e)
			continue
		}
		ended := pod.Status.ContainerStatuses[0].State.Terminated
		want := map[int32]events.PodResult{0: events.PodSucceeded, 3: events.PodFailed, 42: events.PodIgnored}[ended.ExitCode]
		if e.Result != want || e.Container == nil || e.Container.Name != "main" || e.Container.ExitCode != ended.ExitCode || e.Node != pod.Spec.NodeName ||
			!e.Start.Equal(pod.Status.StartTime.Time) || !e.End.Equal(ended.FinishedAt.Time) || e.Pod.Name != pod.Name || e.Index != nil != (e.Job.Name == "indexed") {
			t.Errorf("%+v of %s, which ended as %+v", e, pod.Name, ended)
		}
	}
	return received
}

// coreEvents: one Event of the start of each Job and one of its end, each counted once.
func coreEvents(t *testing.T, p *harness.Space, jobs map[string]batchv1.JobConditionType) {
	t.Helper()
	for name, end := range jobs {
		want := []string{"JobFinish Normal x1", "JobStart Normal x1"}
		if end == batchv1.JobFailed {
			want[0] = "JobFinish Warning x1"
		}
		harness.Until(t, timeout, "the Events of "+name, func(context.Context) error {
			var got []string
			for _, e := range p.Events(name) {
				if e.Reason == "JobStart" || e.Reason == "JobFinish" {
					got = append(got, fmt.Sprintf("%s %s x%d", e.Reason, e.Type, e.Count))
				}
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				return fmt.Errorf("they are %q", got)
			}
			return nil
		})
	}
}
