package replay

import (
	"iter"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// wroteJob reports whether the fact shows the Job after that write of its status; no fact after the first newer one can.
func wroteJob(x events.Event, e effect.WriteJobStatus) (shows, further bool) {
	j, gone := jobOf(x)
	if gone || j.Version <= e.Version {
		return gone, true
	}
	return sameCounts(j.Status, e.Status), false
}

// sameCounts reports whether two statuses account for the same Pods and have the same conditions. What runs at the moment does not count: a
// reconciler may have seen more of it.
func sameCounts(a, b batchv1.JobStatus) bool {
	conditions := func(s batchv1.JobStatus) (all []string) {
		for _, c := range s.Conditions {
			all = append(all, string(c.Type)+" "+string(c.Status))
		}
		slices.Sort(all)
		return all
	}
	return samePods(a, b) && slices.Equal(conditions(a), conditions(b))
}

// samePods reports whether two statuses account for the same Pods, and both for a Job that was started, or that was not.
func samePods(a, b batchv1.JobStatus) bool {
	uncounted := func(s batchv1.JobStatus) (all []string) {
		if u := s.UncountedTerminatedPods; u != nil {
			for _, uid := range u.Succeeded {
				all = append(all, "succeeded "+string(uid))
			}
			for _, uid := range u.Failed {
				all = append(all, "failed "+string(uid))
			}
		}
		slices.Sort(all)
		return all
	}
	return a.Succeeded == b.Succeeded && a.Failed == b.Failed && a.CompletedIndexes == b.CompletedIndexes && ptr.Deref(a.FailedIndexes, "") == ptr.Deref(b.FailedIndexes, "") &&
		(a.StartTime == nil) == (b.StartTime == nil) && slices.Equal(uncounted(a), uncounted(b))
}

// wroteSchedule reports whether the fact shows the ScheduledJob after that write of its status; no fact after the first newer one can.
func wroteSchedule(x events.Event, e effect.WriteScheduleStatus) (shows, further bool) {
	j, gone := scheduleOf(x)
	if gone || j.Version <= e.Version {
		return gone, true
	}
	return sameRuns(j.Status, e.Status), false
}

// sameRuns reports whether two statuses account for the same Jobs and times.
func sameRuns(a, b v1alpha1.ScheduledJobStatus) bool {
	return a.Successful == b.Successful && a.Failed == b.Failed && a.Missed == b.Missed && len(a.Active) == len(b.Active) && a.DecidedUntil.Equal(b.DecidedUntil)
}

// strays reports whether the fact shows that the reconciler has accounted for Pods or Jobs in its status as no decision here does. Other
// controllers may add conditions.
func (w *world) strays(f fact) bool {
	if w.told[f.place] {
		return false
	}
	switch x := f.event.(type) {
	case events.JobObserved:
		return w.job != nil && x.Job.Version > w.job.Version && !samePods(x.Job.Status, w.job.Status)
	case events.ScheduledJobObserved:
		return w.schedule != nil && x.ScheduledJob.Version > w.schedule.Version && !sameRuns(x.ScheduledJob.Status, w.schedule.Status)
	}
	return false
}

func jobOf(x events.Event) (j events.Job, gone bool) {
	switch x := x.(type) {
	case events.JobObserved:
		return x.Job, false
	case events.JobGone:
		return j, true
	}
	return j, false
}

func scheduleOf(x events.Event) (j events.ScheduledJob, gone bool) {
	switch x := x.(type) {
	case events.ScheduledJobObserved:
		return x.ScheduledJob, false
	case events.ScheduledJobGone:
		return j, true
	}
	return j, false
}

func podOf(x events.Event) (p events.Pod, gone bool) {
	switch x := x.(type) {
	case events.PodObserved:
		return x.Pod, false
	case events.PodGone:
		return x.Pod, true
	}
	return p, false
}

func runOf(x events.Event) (r events.Run, gone bool) {
	switch x := x.(type) {
	case events.RunObserved:
		return x.Run, false
	case events.RunGone:
		return x.Run, true
	}
	return r, false
}

// A trigger does not publish what the reconciler knows from its own request (job.Redundant): that a Pod was created, and that its
// finalizer was removed. Other facts show both.

// asCreated returns the Pod as it was when it was created, from the first fact about it.
func asCreated(p events.Pod) events.Pod {
	return events.Pod{Name: p.Name, UID: p.UID, Version: max(p.Version, 2) - 1, Owner: p.Owner, Serial: p.Serial, Index: p.Index, Phase: events.Pending, Held: true,
		Labels: p.Labels, Created: p.Created, IndexFailures: p.IndexFailures, IndexIgnoredFailures: p.IndexIgnoredFailures}
}

// released returns the Pod without its finalizer if a later fact shows that the Job goes on, and does not list the Pod as not yet counted.
func (w *world) released(e effect.RemoveFinalizer, at time.Time) answer {
	for _, j := range w.laterJobs(at) {
		if !uncounted(j.Status, e.UID) {
			return w.lastSeen(e)
		}
	}
	return unseen
}

// early reports whether the next write of the Job's status, other than its own at that place, shows that it came before the effect: the
// reconciler has then decided on that write first, with facts that follow.
func (w *world) early(e effect.Effect, own int, at time.Time) bool {
	for i, j := range w.laterJobs(at) {
		if i == own || w.told[i] || w.job == nil || sameCounts(j.Status, w.job.Status) { // the last: a user has changed something else
			continue
		}
		switch e := e.(type) {
		case effect.CreatePod:
			return j.NextSerial <= e.Serial
		case effect.RemoveFinalizer:
			return uncounted(j.Status, e.UID)
		}
		break
	}
	return false
}

func uncounted(s batchv1.JobStatus, uid types.UID) bool {
	u := s.UncountedTerminatedPods
	return u != nil && (slices.Contains(u.Succeeded, uid) || slices.Contains(u.Failed, uid))
}

// counted returns a Pod about which there is no fact, if a later fact shows that the Job has active Pods, and this serial is used. Its UID is
// not known.
func (w *world) counted(e effect.CreatePod, at time.Time) answer {
	for _, j := range w.laterJobs(at) {
		refused := slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
			return c.Type == v1alpha1.RefusedCondition && c.Status == corev1.ConditionTrue
		})
		if j.NextSerial > e.Serial && j.Status.Active > 0 && !refused {
			p := events.Pod{Name: e.Name, UID: "unknown-" + types.UID(e.Name), Version: 2, Owner: j.Name, Serial: e.Serial, Index: e.Index, Created: at}
			return itself(events.PodObserved{Pod: asCreated(p)})
		}
	}
	return unseen
}

// laterJobs iterates over the Job as the facts show it that follow within the time for an answer, and their places.
func (w *world) laterJobs(at time.Time) iter.Seq2[int, events.Job] {
	return func(yield func(int, events.Job) bool) {
		from, _ := slices.BinarySearch(w.jobs, w.position)
		for _, i := range w.jobs[from:] {
			if w.facts[i].Stored.After(at.Add(answeredWithin)) {
				return
			}
			if j, gone := jobOf(w.facts[i].event); !gone && !yield(i, j) {
				return
			}
		}
	}
}

// lastSeen returns the last fact about the Pod that has been folded, without the finalizer.
func (w *world) lastSeen(e effect.RemoveFinalizer) answer {
	for _, i := range slices.Backward(w.pods[e.Name]) {
		p, gone := podOf(w.facts[i].event)
		if p.UID == e.UID && !gone && p.Version <= w.known[e.UID] {
			p.Held, p.Version = false, p.Version+1
			return itself(events.PodObserved{Pod: p})
		}
	}
	return unseen
}

func createdAt(x events.Event) time.Time {
	switch x := x.(type) {
	case events.JobObserved:
		return x.Job.Created
	case events.ScheduledJobObserved:
		return x.ScheduledJob.Created
	case events.PodObserved, events.PodGone:
		p, _ := podOf(x)
		return p.Created
	case events.RunObserved, events.RunGone:
		r, _ := runOf(x)
		return r.Created
	}
	return time.Time{}
}
