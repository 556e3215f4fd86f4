package chaos

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

// tally counts the Pods of a Job by their end.
type tally struct {
	succeeded, failed, ignored int
	// short ones have not ended when they were terminated.
	short int
	// lost have ended so, and may have counted or not: see checkStripped.
	lostSucceeded, lostFailed int
	// indexes are those of the succeeded Pods.
	indexes map[int]bool
}

// checkJobs: every Job has ended as it must, every completion ran, and the counts are those of the Pods.
func (w world) checkJobs(wrong *findings) {
	pods := map[types.UID]tally{}
	for _, l := range w.lives {
		pods[l.job] = pods[l.job].with(l)
	}
	done := map[types.UID][]line{}
	for _, l := range w.lines {
		if job := w.lives[l.uid].job; l.code == 0 {
			done[job] = append(done[job], l)
		}
	}
	for uid, j := range w.jobs {
		want, known := w.wants[j.Name]
		if !known && metav1.GetControllerOf(&j) != nil {
			want, known = want.child(), true
		}
		if !known {
			wrong.add("Job %s: no user and no schedule has asked for it", j.Name)
			continue
		}
		for _, why := range want.judge(j, pods[uid], done[uid]) {
			wrong.add("Job %s: %s; %+v: %s", j.Name, why, pods[uid], harness.Brief(j.Status))
		}
	}
	for name, t := range w.wants {
		if _, there := w.jobs[t.uid]; there == (t.Sort == Deleted) {
			wrong.add("Job %s exists: %t", name, there)
		}
	}
}

// child is how every Job of a ScheduledJob must end.
func (want) child() want {
	return want{intent: intent{end: batchv1.JobComplete, completions: 1}}
}

func (t tally) with(l life) tally {
	switch {
	case l.stripped && l.counts == corev1.PodSucceeded:
		t.lostSucceeded++
	case l.stripped && l.counts == corev1.PodFailed:
		t.lostFailed++
	case l.counts == corev1.PodSucceeded:
		t.succeeded++
		if i, err := strconv.Atoi(l.index); err == nil {
			if t.indexes == nil {
				t.indexes = map[int]bool{}
			}
			t.indexes[i] = true
		}
	case l.counts == corev1.PodFailed && l.disrupted:
		t.ignored++
	case l.counts == corev1.PodFailed:
		t.failed++
	case l.withdrawn:
		t.short++
	}
	return t
}

// judge returns what is wrong with a Job that has come to rest. The lines are those of its Pods that have done their work.
func (t want) judge(j batchv1.Job, pods tally, done []line) (wrong findings) {
	st := j.Status
	if u := st.UncountedTerminatedPods; st.Active > 0 || ptr.Deref(st.Terminating, 0) > 0 || u != nil && len(u.Succeeded)+len(u.Failed) > 0 {
		wrong.add("it has ended, but is not at rest")
	}
	if t.end == "" {
		return wrong
	}
	c := harness.Condition(&j, t.end)
	if c == nil || c.Status != corev1.ConditionTrue || t.reason != "" && c.Reason != t.reason {
		wrong.add("it should be %s (%s)", t.end, t.reason)
	}
	if n := ran(j, done); t.completions > 0 && n < t.completions {
		wrong.add("only %d of its %d completions have run", n, t.completions)
	}
	succeeded := pods.succeeded
	if ptr.Deref(j.Spec.CompletionMode, "") == batchv1.IndexedCompletion {
		succeeded = len(pods.indexes)
		if pods.lostSucceeded == 0 && st.CompletedIndexes != format(pods.indexes) {
			wrong.add("completedIndexes should be %q", format(pods.indexes))
		}
		if t.indexes != "" && st.CompletedIndexes != t.indexes {
			wrong.add("completedIndexes must be %q", t.indexes)
		}
	}
	within(&wrong, "succeeded", int(st.Succeeded), succeeded, succeeded+pods.lostSucceeded)
	least, most := pods.failed, pods.failed+pods.lostFailed
	if !t.excuses {
		least, most = least+pods.ignored, most+pods.ignored
	}
	if t.end == batchv1.JobFailed { // a Pod terminated by a failing Job counts as failed
		most += pods.short + pods.ignored
	}
	within(&wrong, "failed", int(st.Failed), least, most)
	if t.end == batchv1.JobComplete && t.completions > 0 && int(st.Succeeded) != t.completions {
		wrong.add("%d completions are counted, %d were asked for", st.Succeeded, t.completions)
	}
	return wrong
}

// ran returns how many completions have run: Pods, or distinct indexes.
func ran(j batchv1.Job, done []line) int {
	if ptr.Deref(j.Spec.CompletionMode, "") != batchv1.IndexedCompletion {
		return len(done)
	}
	indexes := map[string]bool{}
	for _, l := range done {
		indexes[l.index] = true
	}
	return len(indexes)
}

func within(wrong *findings, what string, is, least, most int) {
	switch {
	case is >= least && is <= most:
	case least == most:
		wrong.add("%s is %d, but %d Pods have", what, is, least)
	default:
		wrong.add("%s is %d, but between %d and %d Pods have", what, is, least, most)
	}
}

func allIndexes(n int) string {
	all := map[int]bool{}
	for i := range n {
		all[i] = true
	}
	return format(all)
}

// format writes indexes as the API does: "1,3-5,7".
func format(indexes map[int]bool) string {
	var sorted []int
	for i := range indexes {
		sorted = append(sorted, i)
	}
	slices.Sort(sorted)
	var parts []string
	for i := 0; i < len(sorted); {
		end := i
		for end+1 < len(sorted) && sorted[end+1] == sorted[end]+1 {
			end++
		}
		switch end {
		case i:
			parts = append(parts, strconv.Itoa(sorted[i]))
		case i + 1:
			parts = append(parts, strconv.Itoa(sorted[i]), strconv.Itoa(sorted[end]))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d", sorted[i], sorted[end]))
		}
		i = end + 1
	}
	return strings.Join(parts, ",")
}
