package differential_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	upstreamjob "k8s.io/kubernetes/pkg/controller/job"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/backoff"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/test/differential/upstream"
	"github.com/jobstream/jobstream/test/oracle/draw"
)

// TestBackoff keeps both records over some turns, with any newly ended Pods in each. They must differ in one thing only: a
// failure that is observed late does not shorten the delay. The built-in controller takes the end of the newest Pod of the last
// turn, even if an earlier turn had one that ended later; jobstream's record never goes back, nor behind the success that it
// began with.
func TestBackoff(t *testing.T) {
	if backoff.Pods != (backoff.Policy{Base: upstreamjob.DefaultJobPodFailureBackOff, Max: upstreamjob.MaxJobPodFailureBackOff}) {
		t.Fatalf("jobstream's delays are %v", backoff.Pods)
	}
	late := 0
	rapid.Check(t, func(t *rapid.T) {
		store, ours := upstream.NewBackoffStore(), events.Backoff{}
		for turn := range rapid.IntRange(1, 4).Draw(t, "turns") {
			succeeded, failed := ended(t, turn, corev1.PodSucceeded), ended(t, turn, corev1.PodFailed)
			theirs := upstream.NewBackoffRecord(store, "key", succeeded, failed)
			if err := upstream.UpdateBackoffRecord(store, theirs); err != nil {
				t.Fatal(err)
			}
			ours = backoff.After(ours, projected(succeeded), projected(failed))
			same(t, "failures", ours.Failures, int(theirs.FailuresAfterLastSuccess))
			if ours.Failures == 0 {
				continue
			}
			if theirs.LastFailureTime.Before(ours.Last) {
				late++
				theirs.LastFailureTime = &ours.Last
			}
			now := draw.Now.Add(time.Duration(rapid.IntRange(0, 200).Draw(t, "later")) * 5 * time.Second)
			left := max(0, ours.Last.Add(backoff.Pods.Delay(ours.Failures)).Sub(now))
			same(t, "remaining", left, upstream.RemainingTime(theirs, clocktesting.NewFakeClock(now),
				upstreamjob.DefaultJobPodFailureBackOff, upstreamjob.MaxJobPodFailureBackOff))
		}
	})
	t.Logf("%d times a failure was late", late)
}

// ended draws Pods that have ended that way.
func ended(t *rapid.T, turn int, phase corev1.PodPhase) (out []*corev1.Pod) {
	j := draw.Job(t)
	for i := range rapid.IntRange(0, 3).Draw(t, string(phase)) {
		p := draw.Pod(t, j, 10*turn+i)
		if p == nil || p.Status.Phase == corev1.PodPending || p.Status.Phase == corev1.PodRunning {
			continue
		}
		if p.Status.Phase = phase; !odd(p) {
			out = append(out, p)
		}
	}
	return out
}

func projected(pods []*corev1.Pod) (out []events.Pod) {
	for _, p := range pods {
		out = append(out, events.ProjectPod(p))
	}
	return out
}

// TestBackoffPerIndex compares when the Pod may be created that takes over an index from a failed one, and the number of
// failures that it carries.
func TestBackoffPerIndex(t *testing.T) {
	now := draw.Now
	rapid.Check(t, func(t *rapid.T) {
		j := draw.Job(t)
		s := &j.Spec
		s.CompletionMode, s.Completions, s.Parallelism = new(batchv1.IndexedCompletion), new(int32(1)), new(int32(1))
		s.BackoffLimitPerIndex, s.BackoffLimit, s.MaxFailedIndexes = new(int32(9)), new(int32(1<<31-1)), nil
		s.Suspend, s.ActiveDeadlineSeconds, s.SuccessPolicy = new(false), nil, nil
		j.Status.StartTime, j.Status.FailedIndexes = new(metav1.NewTime(draw.Epoch)), new("")
		p := draw.Pod(t, j, 0)
		if p == nil || odd(p) || p.Status.Phase != corev1.PodFailed || len(p.Finalizers) == 0 || p.Annotations[batchv1.JobCompletionIndexAnnotation] != "0" {
			t.Skip("no Pod of the index has failed")
		}
		p.Annotations[batchv1.JobIndexFailureCountAnnotation] = strconv.Itoa(rapid.IntRange(0, 8).Draw(t, "failures"))
		_, _, action := upstream.MatchPodFailurePolicy(s.PodFailurePolicy, p)
		if a := deref(action); a == batchv1.PodFailurePolicyActionFailJob || a == batchv1.PodFailurePolicyActionFailIndex {
			t.Skip("it is not retried")
		}
		left := rests(p)
		failures, ignored := upstream.NewIndexFailureCounts(klog.Logger{}, j, p)
		effects := decide(t, j, []*corev1.Pod{p}, now)
		creates := only[effect.CreatePod](effects)
		if left > 0 {
			if len(creates) > 0 || !slices.Contains(effects, effect.Effect(effect.SetTimer{Name: "wake", At: now.Add(left)})) {
				t.Fatalf("%v are left, jobstream: %v", left, effects)
			}
			return
		}
		if len(creates) != 1 {
			t.Fatalf("ours: %v", effects)
		}
		same(t, "failures", creates[0].IndexFailures, failures)
		same(t, "ignored failures", creates[0].IndexIgnoredFailures, ignored)
	})
}
