package job

import (
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// command turns the rows into effects. Each is repeated until an observation shows that it is done.
func command(s State, c count, now time.Time, at *effect.Wake) []effect.Effect {
	var creates, others, deletes []effect.Effect
	// Pods are deleted for a failure only once it is recorded, because the deletion may remove the evidence.
	_, failing := s.Job.Condition(batchv1.JobFailureTarget)
	for _, serial := range s.serials() {
		r := s.Pods[serial]
		p := r.Pod
		switch {
		case r.intended() && r.Withdrawn:
			others = append(others, effect.FindPod{Name: p.Name, Serial: serial})
		case r.intended():
			creates = append(creates, create(s.Job, p))
		case !r.live() || !mine(s.Job, p):
		case r.Surplus && (p.Held || !p.Deleting): // at the observed version: another worker may just have restored the finalizer
			deletes = append(deletes, effect.DeletePod{Name: p.Name, UID: p.UID, Version: p.Version, RemoveFinalizer: p.Held})
		case p.Deleting:
		case failing:
			deletes = append(deletes, effect.DeletePod{Name: p.Name, UID: p.UID})
		case overdue(s.Job, p, now, at):
			deletes = append(deletes, giveUp(s.Job, p))
		case !p.Held:
			others = append(others, effect.AddFinalizer{Name: p.Name, UID: p.UID, Version: p.Version})
		}
	}
	if s.Job.Untouched() {
		creates = slices.DeleteFunc(creates, func(e effect.Effect) bool { return !s.findable(e.(effect.CreatePod)) })
	}
	// Pods that were intended before a failure wait for its backoff like later ones.
	if s.Job.Suspended || !s.haveParameters() || !backoffEnds(s, c, now).IsZero() {
		creates = nil
	}
	creates = creates[:min(len(creates), slowStart(s, c))]
	for _, u := range s.unplaced(true) {
		deletes = append(deletes, u.remove())
	}
	return append(append(creates, others...), deletes...)
}

// findable reports whether a new State would intend this very Pod of an untouched Job: then nothing is lost by an inventory without a
// list of Pods, because the creation finds the Pod that exists.
func (s State) findable(e effect.CreatePod) bool {
	return e.Serial < min(wanted(s.Job, count{}), s.limits.MaxPodChanges) && (!s.Job.Indexed || e.Index == e.Serial)
}

// starting reports whether the status write with the start of the Job waits for Pods that the plan creates, so that it has their
// number, too. What becomes of their creation wakes the next plan.
func (s State) starting(c count, plan []effect.Effect) bool {
	creates := func(e effect.Effect) bool { return e.Kind() == effect.KindCreatePod }
	return s.Job.Status.StartTime == nil && !s.backingOff() && int(c.active) < s.limits.MaxPodChanges && slices.ContainsFunc(plan, creates)
}

func create(j events.Job, p events.Pod) effect.CreatePod {
	return effect.CreatePod{Job: j.Name, Name: p.Name, Serial: p.Serial, Index: p.Index, Generation: j.Generation,
		PerIndex: j.BackoffLimitPerIndex != nil, IndexFailures: p.IndexFailures, IndexIgnoredFailures: p.IndexIgnoredFailures,
		Parameters: j.Options.Parameters}
}

// overdue reports whether the Pod has been Pending for longer than the Job's annotation allows. Until then it requests a plan at
// that time.
func overdue(j events.Job, p events.Pod, now time.Time, at *effect.Wake) bool {
	if j.Options.PendingDeadlineSeconds == nil || p.Phase != events.Pending {
		return false
	}
	end := p.Created.Add(time.Duration(*j.Options.PendingDeadlineSeconds) * time.Second)
	if now.Before(end) {
		at.By(end)
		return false
	}
	return true
}

// giveUp deletes a Pod that does not start, and leaves the finalizer on it, so that it counts as failed. If the Pod has started
// after all, its version differs and nothing happens.
func giveUp(j events.Job, p events.Pod) effect.DeletePod {
	why := p.Waiting
	if why == "" {
		why = "no reason is known"
	}
	return effect.DeletePod{Name: p.Name, UID: p.UID, Version: p.Version, Report: effect.Report{Warning: true, Reason: "PendingDeadlineExceeded",
		Message: fmt.Sprintf("Pod %s did not start within %d s (%s): %s is over, it is deleted and counts as failed",
			p.Name, *j.Options.PendingDeadlineSeconds, why, v1alpha1.PendingDeadlineSecondsAnnotation)}}
}
