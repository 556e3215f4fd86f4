package differential_test

import (
	"fmt"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"pgregory.net/rapid"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/intervals"
	"github.com/jobstream/jobstream/functions/policy"
	"github.com/jobstream/jobstream/test/differential/upstream"
	"github.com/jobstream/jobstream/test/oracle/draw"
)

// theirs converts jobstream's set to the built-in controller's type.
func theirs(s intervals.Set) (out upstream.Intervals) {
	for _, v := range s {
		out = append(out, upstream.Interval{First: v.First, Last: v.Last})
	}
	return out
}

// set draws a set of numbers below 40, in few or many intervals.
func set(t *rapid.T, label string) intervals.Set { return setFrom(t, 0, label) }

// setFrom draws a set of the 40 numbers from the first on.
func setFrom(t *rapid.T, first int, label string) (out intervals.Set) {
	for _, n := range rapid.SliceOfN(rapid.IntRange(first, first+39), 0, 30).Draw(t, label) {
		out = out.With(n)
	}
	return out
}

// TestIntervals compares reading, adding, counting and writing of sets of indexes, small ones and the largest possible. The
// built-in controller cannot subtract or intersect: there the test uses its Has.
func TestIntervals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.SampledFrom([]int{0, 80, 99_980, 1<<31 - 41}).Draw(t, "first")
		a, b := setFrom(t, first, "a"), setFrom(t, first, "b")
		same(t, "String", a.String(), upstream.Text(theirs(a)))
		same(t, "Union", a.Union(b).String(), upstream.Text(upstream.Merge(theirs(a), theirs(b))))
		same(t, "Len", a.Len(), upstream.Total(theirs(a)))
		n := first + rapid.IntRange(0, 41).Draw(t, "n")
		var without, both []int
		for i := first; i < first+40; i++ {
			if upstream.Has(theirs(a), i) && i != n {
				without = append(without, i)
			}
			if upstream.Has(theirs(a), i) && upstream.Has(theirs(b), i) {
				both = append(both, i)
			}
		}
		same(t, "Without", a.Without(n).String(), upstream.Text(upstream.WithIndexes(nil, without)))
		same(t, "Intersect", a.Intersect(b).String(), upstream.Text(upstream.WithIndexes(nil, both)))
		same(t, "Has", a.Has(n), upstream.Has(theirs(a), n))
		same(t, "With", a.With(n).String(), upstream.Text(upstream.WithIndexes(theirs(a), []int{n})))
		parsed, err := intervals.Parse(a.String())
		if err != nil {
			t.Fatal(err)
		}
		same(t, "Parse", parsed.Below(n).String(), upstream.Text(upstream.ParseIntervals(klog.Logger{}, a.String(), n)))
	})
}

// TestIntervalTexts: whatever the API server would store as a set of indexes, both read in the same way. What it would refuse,
// jobstream may refuse.
func TestIntervalTexts(t *testing.T) {
	good := 0
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.StringMatching(`[0-9]{1,2}(-[0-9]{1,2})?(,[0-9]{1,2}(-[0-9]{1,2})?){0,3}`), rapid.StringMatching(`[-0-9,+ ]{0,6}`)).Draw(t, "text")
		total, err := upstream.ValidateIndexes(text, 100)
		if err != nil {
			return
		}
		good++
		ours, err := intervals.Parse(text)
		if err != nil {
			t.Fatalf("the API server stores %q, but jobstream cannot parse it: %v", text, err)
		}
		same(t, "Len", ours.Len(), int(total))
		same(t, "String", ours.String(), upstream.Text(upstream.ParseIntervals(klog.Logger{}, text, 100)))
	})
	if good == 0 {
		t.Error("no text was valid")
	}
}

// failedPod draws a Pod that the built-in controller counts as failed: by its phase, or because it is being deleted.
func failedPod(t *rapid.T) *corev1.Pod {
	for i := 0; ; i++ {
		if p := draw.Pod(t, draw.Job(t), i); p != nil && (p.Status.Phase == corev1.PodFailed || p.DeletionTimestamp != nil && p.Status.Phase != corev1.PodSucceeded) {
			return p
		}
		if i == 20 {
			t.Skip("no Pod has failed")
		}
	}
}

func TestPodFailurePolicy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod, p := failedPod(t), draw.PodFailurePolicy(t, true)
		if rapid.IntRange(0, 9).Draw(t, "unknown action") == 0 {
			p.Rules[0].Action = "Restart" // from a newer API server
		}
		message, counts, action := upstream.MatchPodFailurePolicy(p, pod)
		got := policy.Failure(p, pod.Namespace, events.ProjectPod(pod))
		same(t, "message", got.Message, deref(message))
		same(t, "counts", got.Counts, counts)
		same(t, "action", got.Action, deref(action))
	})
}

func TestSuccessPolicy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		completions := rapid.IntRange(1, 8).Draw(t, "completions")
		p := draw.SuccessPolicy(t, rapid.IntRange(1, 10).Draw(t, "former completions"))
		completed := set(t, "completed").Below(completions)
		message, met := upstream.MatchSuccessPolicy(klog.Logger{}, p, int32(completions), theirs(completed))
		gotMessage, gotMet := policy.Success(p, completions, completed)
		same(t, "met", gotMet, met)
		same(t, "message", gotMessage, message)
	})
	if _, met := policy.Success(&batchv1.SuccessPolicy{}, 1, intervals.Of(0)); met {
		t.Error("no rule is met")
	}
}

// TestFinishedTime, except for one oddity of the built-in controller: if a container has no end and a sidecar has, it takes the
// sidecar's for the Pod's. jobstream looks for better evidence then, as the built-in controller does without a sidecar.
func TestFinishedTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod := draw.Pod(t, draw.Job(t), 0)
		if pod == nil || odd(pod) {
			t.Skip("it is gone, or odd")
		}
		if p := events.ProjectPod(pod); p.Terminal() || p.Deleting {
			same(t, "Finished", p.Finished, upstream.FinishedTime(pod).UTC())
		}
	})
}

// odd reports whether a Pod has a sidecar, and a container without an end.
func odd(p *corev1.Pod) bool {
	return len(p.Spec.InitContainers) > 0 && p.Spec.InitContainers[0].RestartPolicy != nil &&
		slices.ContainsFunc(p.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
			return c.State.Terminated == nil || c.State.Terminated.FinishedAt.IsZero()
		})
}

func same[T comparable](t *rapid.T, what string, ours, theirs T) {
	t.Helper()
	if ours != theirs {
		t.Fatalf("%s: ours %v, upstream's %v", what, fmt.Sprint(ours), fmt.Sprint(theirs))
	}
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
