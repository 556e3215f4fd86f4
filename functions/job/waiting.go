package job

import (
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/waiting"
)

// longWait is how long a Pod may wait before the Job shows it: longer than a Pod takes to start whose image is on its node.
const longWait = 30 * time.Second

// waits returns the Pods that have waited for too long to start, or for the finalizer of another program to be deleted.
//
// It requests a plan for the moment when one has, but only if the scheduler or the kubelet has given a reason: a Pod that starts at
// once costs no more than one timer, which the next one replaces. A Pod without a reason shows with the next plan, at a relist at the
// latest.
func waits(s State, v outcome, now time.Time, at *effect.Wake) waiting.Pods {
	all := waiting.Pods{}
	for _, r := range s.Pods {
		p, since := r.Pod, r.Pod.Created
		switch {
		case p.Phase != events.Pending || !r.live() || !mine(s.Job, p):
			continue
		case p.Deleting && strings.HasPrefix(p.Waiting, events.FinalizerPrefix):
			since = p.Finished // its deletion
		case p.Deleting || r.Surplus || v.kind != "":
			continue
		}
		if end := since.Add(longWait); !now.Before(end) {
			all.Add(p)
		} else if p.Waiting != "" {
			at.By(end)
		}
	}
	return all
}

// showWaiting sets the condition of a Job whose Pods wait. This is worth a status write of its own, since nothing else may happen to
// the Job before a user looks at it. It becomes True, or gets another message, once a minute at most: in a large fleet the numbers
// change all the time.
func showWaiting(st *batchv1.JobStatus, all waiting.Pods, c count, now time.Time, at *effect.Wake) {
	if len(all) == 0 {
		return // hideWaiting
	}
	reason, message := all.Condition(int(c.active + c.terminating))
	for _, old := range st.Conditions {
		again := old.LastProbeTime.Add(time.Minute)
		if old.Type == v1alpha1.PodsWaitingCondition && old.Message != message && now.Before(again) {
			at.By(again)
			return
		}
	}
	setCondition(st, v1alpha1.PodsWaitingCondition, corev1.ConditionTrue, reason, message, now)
}

// hideWaiting sets the condition of a Job none of whose Pods wait any more. It goes with a status write that is made anyway.
func hideWaiting(st *batchv1.JobStatus, all waiting.Pods, now time.Time) {
	if len(all) == 0 {
		setCondition(st, v1alpha1.PodsWaitingCondition, corev1.ConditionFalse, "NoPodsWaiting", "", now)
	}
}
