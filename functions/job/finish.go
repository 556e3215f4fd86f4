package job

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// conclude adds conditions. The interim one is written before finalizers are removed, so that a verdict survives the Pods that
// caused it. The terminal one is written when nothing is left: no UID uncounted, no Pod active, terminating, held or unsure.
func conclude(st *batchv1.JobStatus, s State, c count, v outcome, now time.Time) {
	say := func(t batchv1.JobConditionType, reason, message string) {
		setCondition(st, t, corev1.ConditionTrue, reason, message, now)
	}
	setBlockedConditions(st, s, now)
	if v.kind == "" {
		pause(st, s.Job, c, now)
		return
	}
	say(v.kind, v.reason, v.message)
	u := st.UncountedTerminatedPods
	if s.Crowded || c.active+c.intended+c.terminating > 0 || c.held+c.unsure+len(u.Succeeded)+len(u.Failed) > 0 {
		return
	}
	if v.failing() {
		say(batchv1.JobFailed, v.reason, v.message)
	} else {
		say(batchv1.JobComplete, v.reason, v.message)
		st.CompletionTime = &metav1.Time{Time: now.Truncate(time.Second)}
	}
	neverRan := s.Job.Suspended && s.Job.Completions != nil && *s.Job.Completions == 0
	if st.StartTime == nil && !neverRan { // a finished Job must have started (status rule 20)
		st.StartTime = &metav1.Time{Time: now.Truncate(time.Second)}
	}
	if st.CompletionTime.Before(st.StartTime) { // by another clock (status rule 14); nil is before nothing
		st.CompletionTime = st.StartTime.DeepCopy()
	}
}

// pause sets the condition of a Job that was suspended or resumed. Suspending clears startTime and resuming sets it, because the
// deadline counts from there (Kubernetes 1.36; and a Job whose template may be changed has not started).
func pause(st *batchv1.JobStatus, j events.Job, c count, now time.Time) {
	_, was := j.Condition(batchv1.JobSuspended)
	switch {
	case j.Suspended && !was && c.active == 0: // a Pod without a serial gets one before it is deleted
		setCondition(st, batchv1.JobSuspended, corev1.ConditionTrue, "JobSuspended", j.SuspendedMessage(), now)
		st.StartTime = nil
	case !j.Suspended && was:
		setCondition(st, batchv1.JobSuspended, corev1.ConditionFalse, "JobResumed", "Job resumed", now)
		st.StartTime = &metav1.Time{Time: now.Truncate(time.Second)}
	}
}

// setBlockedConditions sets the conditions for whatever keeps the Job from going on: what the API server refuses, and what this
// version does not support.
func setBlockedConditions(st *batchv1.JobStatus, s State, now time.Time) {
	set := func(blocked bool, t batchv1.JobConditionType, reason, message, otherwise string) {
		if blocked {
			setCondition(st, t, corev1.ConditionTrue, reason, message, now)
		} else {
			setCondition(st, t, corev1.ConditionFalse, otherwise, "", now)
		}
	}
	unsupported, ignored := s.Job.Unsupported, s.Job.Options.Ignored
	set(len(unsupported) > 0, v1alpha1.UnsupportedCondition, "NotImplemented",
		"this version of jobstream starts no Pods for a Job with "+strings.Join(unsupported, ", "), "Implemented")
	set(len(ignored) > 0, v1alpha1.IgnoredCondition, "BadAnnotation", strings.Join(ignored, "; "), "Accepted")
	set(s.AdoptsNone, v1alpha1.NotAdoptingCondition, "TooManySelectors", fmt.Sprintf(
		"this namespace has more than %d unfinished Jobs with a selector of their own: the oldest adopt Pods, this one runs with those that it makes; "+
			"let others finish, delete them, or do without manualSelector", events.MaxAdoptingJobs), "Adopting")
	for _, what := range slices.Sorted(maps.Keys(s.Waits)) {
		if w := s.Waits[what]; w.Reason != "" && what != effect.KindAnnounce {
			refusal(st, w.Reason, fmt.Sprintf("%s: %s", what, w.Message), now)
			return
		}
	}
	if s.Crowded || len(s.Pods) >= unsettledMax {
		refusal(st, "TooManyPods", fmt.Sprintf("%d Pods wait to be counted, adopted or tried again, more are created and adopted as these settle", unsettledMax), now)
		return
	}
	setCondition(st, v1alpha1.RefusedCondition, corev1.ConditionFalse, "Accepted", "", now)
}

// refusal sets the condition that explains what is refused. Messages of the API server name the Pod and the quota's use, so they
// differ each time: one a minute is enough.
func refusal(st *batchv1.JobStatus, reason, message string, now time.Time) {
	for _, c := range st.Conditions {
		if c.Type == v1alpha1.RefusedCondition && c.Status == corev1.ConditionTrue && c.Reason == reason && now.Sub(c.LastProbeTime.Time) < time.Minute {
			return
		}
	}
	setCondition(st, v1alpha1.RefusedCondition, corev1.ConditionTrue, reason, message, now)
}

// setCondition changes a condition in place. A condition that has never been True is not added as False (upstream:
// ensureJobConditionStatus). Conditions of other controllers are left alone.
func setCondition(st *batchv1.JobStatus, t batchv1.JobConditionType, status corev1.ConditionStatus, reason, message string, now time.Time) {
	at := metav1.Time{Time: now.Truncate(time.Second)}
	for i := range st.Conditions {
		old := &st.Conditions[i]
		if old.Type != t {
			continue
		}
		if old.Status != status {
			old.LastTransitionTime = at
		}
		if old.Status != status || old.Reason != reason || old.Message != message {
			old.Status, old.Reason, old.Message, old.LastProbeTime = status, reason, message, at
		}
		return
	}
	if status == corev1.ConditionTrue {
		st.Conditions = append(st.Conditions, batchv1.JobCondition{Type: t, Status: status, Reason: reason, Message: message,
			LastProbeTime: at, LastTransitionTime: at})
	}
}
