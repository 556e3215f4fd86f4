package job

import (
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/backoff"
	"github.com/jobstream/jobstream/functions/effect"
)

// Pacing is what is delayed, and until when: by refusals, after failed Pods, and between status writes.
type Pacing struct {
	// Written is the time of the last status write.
	Written time.Time
	// Allowed is the number of intended Pods that may be created at once after a refusal: 1, then 2, 4, …; 0 is no limit.
	Allowed int
	// Waits are the effects that the API server refuses now, or refused earlier.
	Waits backoff.Waits
	// Overgrown records that the State had become too large to be saved, and what follows from that.
	Overgrown Overgrown
	// Parameters is the number of completions for which the ConfigMap of per-completion values has values, 0 until it has been
	// read.
	Parameters int
}

// accept notes that effects of the kind are accepted. name is that of the object that the effect was about, or "".
func (p *Pacing) accept(kind, name string) {
	p.Waits.Accept(kind, name)
	if kind == effect.KindCreatePod {
		p.Allowed = 0
	}
}

// allowMore notes that a Pod has been created. After a refusal, twice as many may be tried next, up to most.
func (p *Pacing) allowMore(most int) {
	if p.Allowed == 0 {
		return
	}
	w := p.Waits[effect.KindCreatePod]
	w.Count, w.Until = 0, time.Time{}
	p.Waits[effect.KindCreatePod] = w
	if p.Allowed *= 2; p.Allowed > most {
		p.accept(effect.KindCreatePod, "")
	}
}

// backingOff reports whether Pods are refused, or were so recently that not all of them have been tried again.
func (p Pacing) backingOff() bool { return p.Allowed > 0 }

// clearBackoff drops refusals of effects that the plan no longer wants.
func clearBackoff(s State, wanted []effect.Effect) State {
	s.Waits.Forget(wanted)
	for _, kind := range s.Waits.Kinds() {
		wants := func(e effect.Effect) bool { return e.Kind() == kind }
		// These may be wanted and delayed for other reasons than a refusal.
		announce := kind == effect.KindAnnounce
		write := kind == effect.KindWriteJobStatus && s.Known && !s.Gone
		create := kind == effect.KindCreatePod && slices.ContainsFunc(slices.Collect(maps.Values(s.Pods)), func(r Row) bool { return r.intended() && !r.Withdrawn })
		if !announce && !write && !create && !slices.ContainsFunc(wanted, wants) {
			s.accept(kind, "")
		}
	}
	return s
}

// slowStart returns how many Pods may be tried at once: first one, then twice as many as are active, so that a quota or a webhook
// that refuses all of them is called once and not 500 times (upstream: slowStartBatch). After a refusal the number grows from 1
// likewise.
func slowStart(s State, c count) int {
	if s.backingOff() {
		return s.Allowed
	}
	return max(1, 2*int(c.active))
}

func (s State) podBackoff() backoff.Policy { return s.limits.PodBackoffOf(s.Job) }

// PodBackoffOf returns the delay of the Job's Pod creation after failures: that of the flags, or the one that its annotation sets.
func (l Limits) PodBackoffOf(j events.Job) backoff.Policy {
	p := l.PodBackoff
	if w := j.Options.BackoffSeconds; w != nil {
		p.Base = time.Duration(*w) * time.Second
		p.Max = max(p.Max, p.Base)
	}
	return p
}

// backoffEnds returns when Pods may be created again after failures; zero if they may be now.
func backoffEnds(s State, c count, now time.Time) time.Time {
	if s.Job.BackoffLimitPerIndex != nil {
		return time.Time{} // each index waits for itself
	}
	b := backoff.After(s.Job.Backoff, c.succeeded, append(unrecorded(s.Job, c.ignored), c.failed...))
	if ends := b.Last.Add(s.podBackoff().Delay(b.Failures)); b.Failures > 0 && now.Before(ends) {
		return ends
	}
	return time.Time{}
}

// record returns the backoff record that belongs to a status: of the Pods that it lists and no others. Ignored failures delay,
// too, and no list has them: they are in the record as soon as they have ended.
func record(j events.Job, c count, st batchv1.JobStatus) events.Backoff {
	if j.BackoffLimitPerIndex != nil {
		return events.Backoff{} // each index has its own delay
	}
	b := backoff.After(j.Backoff, written(c.succeeded, st, j), append(written(c.failed, st, j), unrecorded(j, c.ignored)...))
	if b.Failures == 0 && j.PodFailurePolicy == nil {
		return events.Backoff{}
	}
	return b
}

// unrecorded returns the ignored Pods that the backoff record does not cover yet.
func unrecorded(j events.Job, ignored []events.Pod) (out []events.Pod) {
	for _, p := range ignored {
		if p.Finished.After(j.Backoff.Last) {
			out = append(out, p)
		}
	}
	return out
}
