// Package backfill makes up for nominal times of a ScheduledJob that have passed. It decides which times those are, which of them
// have a Job already, and which Job comes next. It has no I/O and no clock: times.go reads the range, work.go goes through it.
package backfill

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/scheduledjob"
)

// Most is the largest number of nominal times in one backfill.
const Most = 1000

// Range is what the user asks for; both ends belong to it. An end without an offset is in the schedule's zone.
type Range struct{ From, To string }

// Run is one nominal time and its Job.
type Run struct {
	// Nominal is in the schedule's zone.
	Nominal time.Time
	// Job is the name of its Job.
	Job string
	// Verdict is the verdict that the status has for the time, such as "Missed (Deadline)"; "" if it has none.
	Verdict string
	// Ran reports whether the verdict shows that a Job was made.
	Ran bool
}

// layouts are the accepted forms of a time besides RFC 3339. The first is a whole day.
var layouts = []string{"2006-01-02", "2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02 15:04:05"}

// parse reads a time. With last, a day stands for its end instead of its beginning.
func parse(flag, text string, zone *time.Location, last bool) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t.In(zone), nil
	}
	for i, layout := range layouts {
		t, err := time.ParseInLocation(layout, text, zone)
		switch {
		case err != nil:
			continue
		case i == 0 && last:
			return t.AddDate(0, 0, 1).Add(-time.Second), nil
		}
		return t, nil
	}
	return time.Time{}, fmt.Errorf("%s=%q is no time: write a day such as 2026-11-01, or 2026-11-01T02:30, which are in the zone of the schedule, or a time with an offset such as 2026-11-01T02:30:00Z", flag, text)
}

// Check returns an error if the range is wrong in any time zone.
func (r Range) Check() error {
	if r.From == "" {
		return fmt.Errorf("--from is missing: write when the backfill begins, such as --from=2026-11-01")
	}
	if _, err := parse("--from", r.From, time.UTC, false); err != nil {
		return err
	}
	if r.To == "" {
		return nil
	}
	_, err := parse("--to", r.To, time.UTC, true)
	return err
}

// Runs returns the nominal times of the range, in order, up to the last one that the reconciler has decided: it decides the later
// ones itself. For a suspended ScheduledJob the reconciler decides nothing, so the range may extend to now. An empty To means the
// latest time allowed. The errors tell the user what to type instead.
func Runs(sj *v1alpha1.ScheduledJob, zones scheduledjob.Zones, r Range, now time.Time) ([]Run, error) {
	j := events.ProjectScheduledJob(sj)
	times, problem := scheduledjob.Timetable(j, zones)
	if problem != nil {
		return nil, fmt.Errorf("the ScheduledJob %s has no nominal times: %w", sj.Name, problem)
	}
	if sj.Status.DecidedUntil == nil {
		return nil, fmt.Errorf("the ScheduledJob %s has not been taken up by a reconciler yet: see why with: kubectl describe scheduledjob %s", sj.Name, sj.Name)
	}
	zone, err := zones(ptr.Deref(sj.Spec.TimeZone, ""))
	if err != nil {
		return nil, err
	}
	last := sj.Status.DecidedUntil.Time
	if ptr.Deref(sj.Spec.Suspend, false) && now.After(last) {
		last = now.Truncate(time.Second)
	}
	from, to, err := r.read(zone, last)
	if err != nil {
		return nil, err
	}
	switch n := times.Count(from.Add(-time.Second), to); {
	case n == 0:
		return nil, fmt.Errorf("the ScheduledJob %s has no nominal time from %s to %s: see its times with: kubectl jobstream next %s", sj.Name, from.Format(time.RFC3339), to.Format(time.RFC3339), sj.Name)
	case n > Most:
		return nil, fmt.Errorf("the ScheduledJob %s has %d nominal times from %s to %s, and one backfill takes %d: move --from and --to closer together", sj.Name, n, from.Format(time.RFC3339), to.Format(time.RFC3339), Most)
	}
	var runs []Run
	for at, ok := times.Next(from.Add(-time.Second)); ok && !at.After(to); at, ok = times.Next(at) {
		verdict := remembered(sj, at)
		runs = append(runs, Run{Nominal: at.In(zone), Job: scheduledjob.JobName(sj, at), Verdict: verdict, Ran: strings.HasPrefix(verdict, string(events.Started))})
	}
	return runs, nil
}

// read parses both ends. It limits the second to the time up to which the schedule has decided.
func (r Range) read(zone *time.Location, decided time.Time) (from, to time.Time, err error) {
	if from, err = parse("--from", r.From, zone, false); err != nil {
		return from, to, err
	}
	to = decided.In(zone)
	if r.To != "" {
		last, err := parse("--to", r.To, zone, true)
		switch {
		case err != nil:
			return from, to, err
		case last.Before(from):
			return from, to, fmt.Errorf("--to=%s is before --from=%s: write the earlier one into --from", r.To, r.From)
		case last.Before(to):
			to = last
		}
	}
	if from.After(to) {
		return from, to, fmt.Errorf("--from=%s is later than %s, up to which everything is decided: what comes later is made by the schedule itself", r.From, to.Format(time.RFC3339))
	}
	return from, to, nil
}

// remembered returns the verdict that the status has for a nominal time.
func remembered(sj *v1alpha1.ScheduledJob, at time.Time) (verdict string) {
	for _, v := range sj.Status.Recent {
		last := v.Time.Time
		if v.Until != nil {
			last = v.Until.Time
		}
		if at.Before(v.Time.Time) || at.After(last) || v.Reason == events.ReasonManual {
			continue
		}
		if verdict = v.Verdict; v.Reason != "" {
			verdict += " (" + v.Reason + ")"
		}
	}
	return verdict
}
