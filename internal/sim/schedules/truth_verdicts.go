package schedules

import (
	"slices"
	"time"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/scheduledjob"
)

// What must hold of the verdicts on nominal times, in a status and on the ledger.

// gaps: no verdict is dropped unannounced while the bus confirms others, or while the status holds one that is announced and
// could make room. What the bus has stored is unknown if the worker died before it could record the confirmation.
func (t *Truth) gaps(e effect.WriteScheduleStatus) {
	const nearlyAMinute = 50 * time.Second // clocks differ
	for _, v := range e.Unannounced {
		if t.world.Now.Sub(t.confirmed) < nearlyAMinute {
			t.fail("%v is dropped at %s, though the bus confirmed another at %s", v, t.world.Now.Format(time.TimeOnly), t.confirmed.Format(time.TimeOnly))
		}
		if len(e.Status.Recent) != v1alpha1.RecentVerdicts || slices.ContainsFunc(e.Status.Recent, func(r v1alpha1.TickVerdict) bool { return r.Announced }) {
			t.fail("%v is dropped, though there was room for it", v)
		}
	}
}

// late checks that no time is given up for its deadline before that is over: it counts from when its Job may start, with jitter.
func (t *Truth) late(st v1alpha1.ScheduledJobStatus) {
	j := t.world.Object
	for _, v := range st.Recent {
		after := time.Minute // catchUp None
		if j.StartingDeadlineSeconds != nil && (j.CatchUp != v1alpha1.CatchUpNone || *j.StartingDeadlineSeconds < 60) {
			after = time.Duration(*j.StartingDeadlineSeconds) * time.Second
		}
		last := v.Time.Time
		if v.Until != nil {
			last = v.Until.Time
		}
		if over := last.Add(scheduledjob.Delay(*j)).Add(after); v.Reason == "Deadline" && !t.world.Now.Add(t.Ahead).After(over) {
			t.fail("%s is given up at %s for its deadline, which is over at %s", last.Format(time.TimeOnly), t.world.Now.Format(time.TimeOnly), over.Format(time.TimeOnly))
		}
	}
}

// onLedger checks that each nominal time up to decidedUntil has exactly one verdict: on the ledger, in the status on its way
// there, or among those that were dropped.
func (t *Truth) onLedger(st v1alpha1.ScheduledJobStatus, unannounced ...events.TickDecided) {
	if t.Edited {
		return
	}
	times, until := t.world.Times(), st.DecidedUntil.Time
	var told int64
	for _, v := range t.verdicts(st, unannounced...) {
		last := v.Nominal
		if !v.Until.IsZero() {
			last = v.Until
		}
		if last.After(until) {
			t.fail("%v is announced, though decidedUntil is %s", v, until.Format(time.TimeOnly))
		}
		if v.Reason == events.ReasonExcluded {
			t.leftOut(v)
			continue
		}
		if n := times.Count(v.Nominal.Add(-time.Second), last); n != v.Count {
			t.fail("%v should have count %d", v, n)
		}
		told += v.Count
	}
	if n := times.Count(t.begin(), until); n != told {
		t.fail("of %d times up to %s %d are on the ledger", n, until.Format(time.TimeOnly), told)
	}
}

// verdicts returns those about nominal times: on the ledger, dropped (including unannounced), and in the status.
func (t *Truth) verdicts(st v1alpha1.ScheduledJobStatus, unannounced ...events.TickDecided) []events.TickDecided {
	type what struct {
		nominal int64
		verdict events.Verdict
	}
	all, known := slices.DeleteFunc(slices.Clone(t.world.Ledger), ofUser), map[what]bool{}
	for _, v := range all {
		known[what{v.Nominal.Unix(), v.Verdict}] = true
	}
	add := func(v events.TickDecided) {
		if id := (what{v.Nominal.Unix(), v.Verdict}); !known[id] {
			known[id] = true
			all = append(all, v)
		}
	}
	for _, v := range slices.DeleteFunc(slices.Concat(t.world.Unannounced, unannounced), ofUser) {
		add(v)
	}
	for _, v := range st.Recent {
		if v.Verdict == string(events.Started) && v.Reason != "" {
			continue
		}
		tick := events.TickDecided{Verdict: events.Verdict(v.Verdict), Reason: v.Reason, Nominal: v.Time.Time, Count: v.Count}
		if v.Until != nil {
			tick.Until = v.Until.Time
		}
		add(tick)
	}
	return all
}
