package show

import (
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// Crash records the kill of the only reconciler in the middle of a Job, and its consequences.
type Crash struct {
	Job string
	// At is when it was killed; Resumed is when a status of the Job first counted more Pods than before.
	At, Resumed time.Time
	// Counted is the number of Pods that the Job's status accounted for while the reconciler was dead: succeeded, failed and
	// uncounted ones. Recounted is that number in the first status from another reconciler.
	Counted, Recounted int
	// Missed is the number of Pods that had ended by then and had not been counted before the crash.
	Missed int
}

// Accounted returns how many Pods the status accounts for: those in its counters, and those about to be counted.
func Accounted(st *batchv1.JobStatus) int {
	n := int(st.Succeeded + st.Failed)
	if u := st.UncountedTerminatedPods; u != nil {
		n += len(u.Succeeded) + len(u.Failed)
	}
	return n
}

// Crashed records that the reconciler was killed and another was started, with the Job's status in between.
func (s *Story) Crashed(j *batchv1.Job, dead, next int, at time.Time) []Moment {
	s.Crash = &Crash{Job: j.Name, At: at, Counted: Accounted(&j.Status)}
	k := s.job(j.Name)
	return []Moment{
		{At: at, Who: reconciler, Text: fmt.Sprintf("process %d got SIGKILL in the middle of %s: %d of %d Pods counted", dead, j.Name, s.Crash.Counted, k.Completions)},
		{At: at, Who: reconciler, Text: fmt.Sprintf("process %d starts in its place", next)},
	}
}

// resumed records, once, that a reconciler counts again.
func (s *Story) resumed(k *Job, j *batchv1.Job, at time.Time) []Moment {
	c := s.Crash
	if c == nil || c.Job != k.Name || !c.Resumed.IsZero() || Accounted(&j.Status) <= c.Counted {
		return nil
	}
	c.Resumed, c.Recounted = at, Accounted(&j.Status)
	for _, p := range k.pods {
		if ended(p.phase) {
			c.Missed++
		}
	}
	c.Missed = max(0, c.Missed-c.Counted) // a watch may lag behind the status
	return []Moment{{At: at, Who: reconciler, Text: fmt.Sprintf("%s goes on %s after the kill: %s had ended meanwhile, %d of %d counted now",
		c.Job, span(at.Sub(c.At)), count(int32(c.Missed), "Pod"), c.Recounted, k.Completions)}}
}

// Witness is a Pod after the end of its Job, with the output of its container.
type Witness struct {
	Pod *corev1.Pod
	Log string
}

// Exact compares the Job of the crash, at its end, with the Pods that have really run.
type Exact struct {
	// Made is how many of its Pods were ever seen; Ran is how many containers ran, each of which prints one line.
	Made, Ran int
	// Succeeded and Failed are the numbers of Pods that did.
	Succeeded, Failed int
	// Faults are the deviations from the Job's status, a sentence each; with none, the counts are exact.
	Faults []string
}

// Exact compares the Job of the crash with its Pods: all that the API server has, and all that the story has seen.
func (s *Story) Exact(j *batchv1.Job, pods []Witness) Exact {
	var e Exact
	k := s.job(j.Name)
	for _, w := range pods {
		switch w.Pod.Status.Phase {
		case corev1.PodSucceeded:
			e.Succeeded++
		case corev1.PodFailed:
			e.Failed++
		}
		e.Ran += strings.Count(w.Log, "\n")
		if slices.Contains(w.Pod.Finalizers, batchv1.JobTrackingFinalizer) {
			e.fault(true, "Pod %s still has its finalizer", w.Pod.Name)
		}
	}
	e.Made = len(k.pods)
	st := &j.Status
	e.fault(int(st.Succeeded) != e.Succeeded || int(st.Failed) != e.Failed, "the status says %d succeeded and %d failed, the Pods say %d and %d", st.Succeeded, st.Failed, e.Succeeded, e.Failed)
	e.fault(Accounted(st) != e.Made, "%d Pods are accounted for, %d were made", Accounted(st), e.Made)
	e.fault(len(pods) != e.Made, "%d Pods were seen, %d are there in the end", e.Made, len(pods))
	e.fault(e.Ran != e.Made, "%d Pods were made, and containers ran %d times", e.Made, e.Ran)
	e.fault(!k.agrees(), "JobFinish and the status differ")
	return e
}

// fault records a deviation, if there is one.
func (e *Exact) fault(wrong bool, format string, args ...any) {
	if wrong {
		e.Faults = append(e.Faults, fmt.Sprintf(format, args...))
	}
}

// Summary describes the crash and its outcome.
func (c *Crash) Summary(e Exact) []string {
	lines := []string{
		fmt.Sprintf("kill -9 of the reconciler in the middle of %s:", c.Job),
		fmt.Sprintf("  before       %s counted", count(int32(c.Counted), "Pod")),
		fmt.Sprintf("  meanwhile    %s ended, and no reconciler was there", count(int32(c.Missed), "Pod")),
		fmt.Sprintf("  after        %d counted by another process, %s after the kill", c.Recounted, span(c.Resumed.Sub(c.At))),
		fmt.Sprintf("  in the end   %s made, %d containers run, %d Pods succeeded, %d failed", count(int32(e.Made), "Pod"), e.Ran, e.Succeeded, e.Failed),
	}
	if len(e.Faults) == 0 {
		return append(lines, "  exact        yes: the Job's status counts each of them once, and JobFinish agrees")
	}
	return append(lines, told(e.Faults)...)
}
