package scheduledjob

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// account returns the write of the wanted status, and whether that differs from the observed one. One write moves decidedUntil,
// records the verdicts on the times that it passes, lists their Jobs, and counts the ends of the listed ones. So each is counted
// once, whatever is lost in between, and no verdict is announced that may yet change.
func account(s State, t Times, p *Problem, now time.Time) (effect.WriteScheduleStatus, bool) {
	b := book{State: s, now: now, status: *s.Object.Status.DeepCopy()}
	st := &b.status
	if st.ObservedGeneration != s.Object.Generation || s.Object.PauseAfterFailures == 0 {
		st.ConsecutiveFailures = 0
	}
	st.ObservedGeneration = s.Object.Generation
	if len(s.Due) == 0 && p == nil { // due times belong to the observed schedule
		st.ObservedSchedule = Text(s.Object)
	}
	if !s.begun() {
		begin := metav1.NewTime(Beginning(s.Object))
		st.DecidedUntil = &begin
	} else {
		b.settleActive()
		b.enter()
		b.reportEdit()
	}
	st.NextScheduleTime = nil
	if t != nil && !b.stopped() {
		if next, ok := t.Next(st.DecidedUntil.Time); ok {
			st.NextScheduleTime = &metav1.Time{Time: next.UTC()}
		}
	}
	st.ActiveCount, st.Queued = new(int32(len(st.Active))), 0
	if s.Object.ConcurrencyPolicy == v1alpha1.QueueConcurrent {
		st.Queued = int32(s.queued()) //nolint:gosec // queueLimit is at most 100
	}
	b.conditions(t, p)
	write := effect.WriteScheduleStatus{ScheduledJob: s.Object.Name, Version: s.Object.Version, Status: b.status, Reports: b.reports, Unannounced: b.dropped}
	differs := !equality.Semantic.DeepEqual(b.status, s.Object.Status)
	for i, v := range st.Recent {
		st.Recent[i].Announced = v.Announced || s.Acked[events.PublicID(public(s.Object, v))]
	}
	write.Status = b.status
	return write, differs
}

// book is a status that is being written.
type book struct {
	State
	now     time.Time
	status  v1alpha1.ScheduledJobStatus
	reports []effect.Report
	// started is the name of the last Job that this write records as started on schedule.
	started string
	// left are the verdicts that this write does not record yet.
	left []v1alpha1.TickVerdict
	// dropped are the verdicts that leave the status before the bus has confirmed them.
	dropped []events.TickDecided
}

// stopped reports whether no Jobs are created for now, as of the observed status or of the one that is being written. So the status
// in which a pause ends still shows it, and a function that has lost its state before the next one still skips the times of the pause.
func (b *book) stopped() bool {
	j := b.Object
	j.Status = b.status
	return j.Stopped() || b.Object.Stopped()
}

func (b *book) report(warning bool, reason, format string, args ...any) {
	b.reports = append(b.reports, effect.Report{Warning: warning, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// settleActive removes Jobs that have ended from status.active, and counts them.
func (b *book) settleActive() {
	b.status.Active = slices.DeleteFunc(b.status.Active, func(ref corev1.ObjectReference) bool {
		r, known := b.Runs[ref.UID]
		if known && (r.active() || r.Missed) {
			return false
		}
		r.Gone = r.Gone || !known // the inventory did not show it
		r.Run.Name, r.Run.UID = ref.Name, ref.UID
		b.count(r)
		return true
	})
}

// enter moves decidedUntil over the verdicts, up to the first time that is still due, and lists their Jobs. A verdict that is not
// announced yet keeps its place in status.recent, unless the bus is unavailable.
func (b *book) enter() {
	st := &b.status
	until := b.decidedUntil()
	unannounced := len(announce(b.State))
	for i, v := range b.Pending {
		alone := v.Reason == events.ReasonExcluded && i == len(b.Pending)-1 // it waits for the verdict on the time after it
		if len(b.Due) > 0 && (alone || !last(v).Before(b.Due[0].Nominal)) || !b.room(unannounced) {
			b.left = b.Pending[i:]
			break
		}
		b.take(v)
		unannounced++
		until = last(v)
	}
	b.enterByHand(unannounced, until)
	b.makeRoom()
	if len(b.Due)+len(b.left) == 0 {
		until = later(until, b.Until) // a new schedule may begin where there was no nominal time
	}
	st.DecidedUntil = &metav1.Time{Time: until}
}

// take accounts for one verdict.
func (b *book) take(t v1alpha1.TickVerdict) {
	st := &b.status
	st.Recent = append(st.Recent, t)
	st.LastDecision = t.Verdict
	switch events.Verdict(t.Verdict) {
	case events.Started:
		st.LastScheduleTime = &metav1.Time{Time: t.Time.UTC()}
		b.report(false, "SuccessfulCreate", "Created job %s", t.JobName)
		b.started = t.JobName
		r, known := b.Runs[t.JobUID]
		if known && r.active() {
			b.list(r)
			return
		}
		r.Run.Name, r.Run.UID, r.Run.Nominal = t.JobName, t.JobUID, t.Time.UTC()
		b.count(r)
	case events.Skipped:
		if t.Reason == "Overlap" {
			b.report(false, "JobAlreadyActive", "Not starting job because prior execution is running and concurrency policy is Forbid")
		}
	default:
		st.Failed += t.Count
		st.Missed += t.Count
		b.reportMissed(t)
	}
}

func (b *book) reportMissed(t v1alpha1.TickVerdict) {
	when := t.Time.UTC().Format(time.RFC3339)
	switch {
	case t.Count > 1:
		b.report(true, "MissSchedule", "Missed %d scheduled times from %s to %s: %s", t.Count, when, t.Until.UTC().Format(time.RFC3339), t.Message)
	case t.Verdict == string(events.Missed):
		b.report(true, "MissSchedule", "Missed scheduled time to start a job: %s: %s", when, t.Message)
	default:
		b.report(true, "FailedCreate", "No job for %s: %s", when, t.Message)
	}
}

// reportEdit warns a user whose edit of the schedule has started a Job at once, for a time of the new schedule that has passed.
func (b *book) reportEdit() {
	was, is := b.Object.Status.ObservedSchedule, b.status.ObservedSchedule
	if was == "" || was == is || b.started == "" {
		return
	}
	b.report(true, "StartedByEdit", "the new schedule has a time that has passed since the last one of the old: job %s is created for it at once; set onScheduleChange to Wait if an edit shall start none", b.started)
}

func (b *book) list(r Row) {
	b.status.Active = append(b.status.Active, corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job",
		Namespace: b.Object.Namespace, Name: r.Run.Name, UID: r.Run.UID})
}

// conditions sets the conditions of the ScheduledJob.
func (b *book) conditions(t Times, p *Problem) {
	ready, reason, message := metav1.ConditionTrue, "Scheduled", "Jobs are made when their time comes"
	switch {
	case p != nil:
		ready, reason, message = metav1.ConditionFalse, p.Reason, p.Message
	case b.Object.Suspended:
		ready, reason, message = metav1.ConditionFalse, v1alpha1.ReasonSuspended, "spec.suspend is true: what comes meanwhile is skipped"
	case b.stopped():
		ready, reason, message = metav1.ConditionFalse, v1alpha1.ReasonFailedRuns, fmt.Sprintf("the last %d Jobs failed, and pauseAfterFailures is %d: what comes meanwhile is skipped; "+
			"mend the cause, then edit the spec or run: kubectl jobstream resume %s", max(b.status.ConsecutiveFailures, b.Object.Status.ConsecutiveFailures), b.Object.PauseAfterFailures, b.Object.Name)
		if condition(b.Object.Status.Conditions, v1alpha1.SuspendedCondition).Reason != reason {
			b.report(true, reason, "%s", message)
		}
	}
	b.flag(v1alpha1.StalledCondition, p != nil, reason, message)
	if p != nil && !b.was(v1alpha1.StalledCondition, reason, message) {
		b.report(true, reason, "%s", message)
	}
	b.setSuspended(message)

	blocked := slices.IndexFunc(b.Due, func(d Due) bool { return d.Refused != "" })
	if blocked >= 0 {
		d := b.Due[blocked]
		if !b.was(v1alpha1.BlockedCondition, d.Refused, d.Message) {
			b.report(true, "FailedCreate", "Error creating job: %s", d.Message)
		}
		b.flag(v1alpha1.BlockedCondition, true, d.Refused, d.Message)
		if ready == metav1.ConditionTrue {
			ready, reason, message = metav1.ConditionFalse, d.Refused, d.Message
		}
	} else {
		b.flag(v1alpha1.BlockedCondition, false, "", "")
	}
	b.set(v1alpha1.ReadyCondition, ready, reason, message)
	b.setFinished(t, p)
}

// setFinished sets the condition Finished when no time is left, by runAt or notAfter, and the last Job has ended.
func (b *book) setFinished(t Times, p *Problem) {
	more := true
	if p == nil && t != nil && (!b.Object.RunAt.IsZero() || !b.Object.NotAfter.IsZero()) {
		_, more = t.Next(b.status.DecidedUntil.Time)
	}
	if more || len(b.status.Active)+len(b.Due) > 0 {
		b.flag(v1alpha1.FinishedCondition, false, "", "")
		return
	}
	how, message := cmp.Or(b.status.LastDecision, "Done"), "its one time has come and gone"
	if l := b.status.LastRun; l != nil {
		how = l.Result
	}
	if b.Object.RunAt.IsZero() {
		message = "no time is left until notAfter"
	}
	b.flag(v1alpha1.FinishedCondition, true, how, message)
}

// setSuspended keeps the condition Suspended until the verdict on the times that passed meanwhile is in the status, for that of a state
// that is lost before is derived from it.
func (b *book) setSuspended(paused string) {
	left := slices.IndexFunc(b.left, func(v v1alpha1.TickVerdict) bool {
		return v.Reason == v1alpha1.ReasonSuspended || v.Reason == v1alpha1.ReasonFailedRuns
	})
	switch {
	case left >= 0 && b.left[left].Reason != stoppedBy(b.Object), left >= 0 && !b.stopped():
		b.flag(v1alpha1.SuspendedCondition, true, b.left[left].Reason, "the times that passed meanwhile are not accounted for yet")
	case b.Object.Suspended:
		b.flag(v1alpha1.SuspendedCondition, true, v1alpha1.ReasonSuspended, "spec.suspend is true")
	case b.stopped():
		b.flag(v1alpha1.SuspendedCondition, true, v1alpha1.ReasonFailedRuns, paused)
	default:
		b.flag(v1alpha1.SuspendedCondition, false, "", "")
	}
}

// was reports whether the condition is True already, with that reason and message.
func (b *book) was(kind, reason, message string) bool {
	c := condition(b.Object.Status.Conditions, kind)
	return c.Status == metav1.ConditionTrue && c.Reason == reason && c.Message == message
}

// flag sets a condition that exists only while it is true.
func (b *book) flag(kind string, on bool, reason, message string) {
	if on {
		b.set(kind, metav1.ConditionTrue, reason, message)
		return
	}
	meta.RemoveStatusCondition(&b.status.Conditions, kind)
}

func (b *book) set(kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&b.status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message,
		ObservedGeneration: b.Object.Generation, LastTransitionTime: metav1.NewTime(b.now.Truncate(time.Second))})
}

// condition returns a condition, or the zero value if it is not set.
func condition(all []metav1.Condition, kind string) metav1.Condition {
	if c := meta.FindStatusCondition(all, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// holds reports whether the ScheduledJob has the condition with status True.
func holds(j events.ScheduledJob, kind string) bool {
	return condition(j.Status.Conditions, kind).Status == metav1.ConditionTrue
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
