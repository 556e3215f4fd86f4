package job

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// command turns the fleet's State into effects. Each is repeated until an observation shows that it is done.
func command(s State, c count, now time.Time, at *effect.Wake) []effect.Effect {
	var creates, others, deletes []effect.Effect
	// Pods are deleted for a failure only once it is recorded: the evidence for it may go with them.
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
		case r.Surplus && p.Held:
			deletes = append(deletes, effect.DeletePod{Name: p.Name, UID: p.UID, Version: p.Version, RemoveFinalizer: true})
		case p.Deleting:
		case r.Surplus: // as it was seen: another worker may just have put the finalizer back, and then it would count
			deletes = append(deletes, effect.DeletePod{Name: p.Name, UID: p.UID, Version: p.Version})
		case failing:
			deletes = append(deletes, effect.DeletePod{Name: p.Name, UID: p.UID})
		case overdue(s.Job, p, now, at):
			deletes = append(deletes, giveUp(s.Job, p))
		case !p.Held:
			others = append(others, effect.AddFinalizer{Name: p.Name, UID: p.UID, Version: p.Version})
		}
	}
	// A Job that has not started has no Pods: inventory relies on it (see events.JobListed and the cluster adapter).
	// What was intended before a failure waits for it like what comes after it.
	if s.Job.Status.StartTime == nil || s.Job.Suspended || !s.haveParameters() || !backoffEnds(s, c, now).IsZero() {
		creates = nil
	}
	creates = creates[:min(len(creates), slowStart(s, c))]
	for _, u := range s.unplaced(true) {
		deletes = append(deletes, u.remove())
	}
	return append(append(creates, others...), deletes...)
}

// slowStart is how many Pods may be tried at once: one first, and then twice as many as have proved that they are let in,
// so that a quota or a webhook that refuses them all is asked once and not 500 times (upstream: slowStartBatch). After a
// refusal they feel their way likewise.
func slowStart(s State, c count) int {
	if s.backingOff() {
		return s.Allowed
	}
	return max(1, 2*int(c.active))
}

func create(j events.Job, p events.Pod) effect.CreatePod {
	return effect.CreatePod{Job: j.Name, Name: p.Name, Serial: p.Serial, Index: p.Index, Generation: j.Generation,
		PerIndex: j.BackoffLimitPerIndex != nil, IndexFailures: p.IndexFailures, IndexIgnoredFailures: p.IndexIgnoredFailures,
		Parameters: j.Options.Parameters}
}

// overdue says that the Pod has been Pending for longer than the Job's annotation allows.
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

// giveUp deletes a Pod that does not start, and keeps it held, so that it counts as failed. If it has started after all,
// it has another version.
func giveUp(j events.Job, p events.Pod) effect.DeletePod {
	why := p.Waiting
	if why == "" {
		why = "no reason is known"
	}
	return effect.DeletePod{Name: p.Name, UID: p.UID, Version: p.Version, Report: effect.Report{Warning: true, Reason: "PendingDeadlineExceeded",
		Message: fmt.Sprintf("Pod %s did not start within %d s (%s): %s is over, it is deleted and counts as failed",
			p.Name, *j.Options.PendingDeadlineSeconds, why, v1alpha1.PendingDeadlineSecondsAnnotation)}}
}
