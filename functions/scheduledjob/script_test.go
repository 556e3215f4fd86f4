package scheduledjob_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/scheduledjob"
	"github.com/jobstream/jobstream/internal/sim/schedules"
	"github.com/jobstream/jobstream/internal/zone"
)

// TestScripts runs the transcripts in testdata: what a user and the clock do, and what follows from it. Each is one behaviour of
// the proposal, and has its name. Rewrite them with -rewrite, and read what has changed.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &stage{api: schedules.NewAPI(clock(t, "10:00:00"))}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return s.play(t, d) })
	})
}

// stage is one ScheduledJob in one small cluster, on the first of July 2026.
type stage struct {
	api   *schedules.API
	state scheduledjob.State
	fired time.Time
	away  bool // no reconciler runs: facts wait
	out   strings.Builder
}

func clock(t *testing.T, s string) time.Time {
	t.Helper()
	for _, layout := range []string{"2006-01-02T15:04:05", "15:04:05"} {
		if at, err := time.Parse(layout, s); err == nil {
			if at.Year() == 0 {
				at = at.AddDate(2026, 6, 0)
			}
			return at.UTC()
		}
	}
	t.Fatalf("%q is no time", s)
	return time.Time{}
}

func (s *stage) play(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	s.out.Reset()
	name := ""
	if len(d.CmdArgs) > 0 {
		name = d.CmdArgs[0].Key
	}
	switch d.Cmd {
	case "create": // "create schedule": a ScheduledJob of the name nightly
		j := events.ScheduledJob{Namespace: "shop", Name: "nightly", ConcurrencyPolicy: v1alpha1.AllowConcurrent, CatchUp: v1alpha1.CatchUpLatest,
			OnScheduleChange: v1alpha1.ChangeCatchesUp, SuccessfulJobs: 3, FailedJobs: 1}
		edit(t, d, &j)
		s.api.Create(j)
		s.state, s.fired = scheduledjob.State{}, s.api.Now
		if after := j.StartAfter; !after.IsZero() && after.Before(s.fired) {
			s.fired = after
		}
	case "edit":
		s.api.Edit(func(j *events.ScheduledJob) { edit(t, d, j) })
	case "delete":
		s.api.Delete()
	case "clock": // "clock 11:00:00": the time passes until then, all at once
		s.api.Now = clock(t, d.CmdArgs[0].String())
	case "wait": // "wait 11:00:00": the time passes until then, and all timers fire that come meanwhile; counts what is done
		to := clock(t, d.CmdArgs[0].String())
		for s.api.Timer.After(s.api.Now) && !s.api.Timer.After(to) {
			s.api.Now = s.api.Timer
			s.turns()
		}
		s.api.Now = to
		s.turns()
		return s.counted()
	case "due": // "due 11:00:00": a due notice of a trigger whose clock is ahead
		s.api.Facts = append(s.api.Facts, events.ScheduleDue{Nominal: clock(t, d.CmdArgs[0].String())})
	case "finish", "fail": // "finish 1": the oldest Job that runs; "finish NAME" another
		result := map[string]events.RunResult{"finish": events.RunComplete, "fail": events.RunFailed}[d.Cmd]
		s.api.Finish(s.job(t, name), result)
	case "remove": // the Job is deleted for good, or its Pods are gone at last
		s.api.Remove(s.job(t, name))
	case "orphan": // "orphan 11:00:00": the ScheduledJob is deleted and its Jobs stay
		s.api.Object = nil
	case "leftover": // "leftover 11:00:00": a Job has the name that the Job of that time would have
		s.api.AddJob("nightly-"+events.NominalHash(clock(t, d.CmdArgs[0].String())), false)
	case "by-hand": // "by-hand NAME": a user creates a Job from the template
		s.api.AddJob(name, true)
	case "backfill": // "backfill 11:00:00": a user makes the Job of that time
		s.api.Backfill(clock(t, name))
	case "refuse": // "refuse Forbidden": the API server makes no Jobs; "refuse" alone: it does again
		s.api.Refuse = name
	case "away": // "away on": no reconciler runs; "away off": they are back; "away off count" counts what they do
		s.away = name == "on"
		if len(d.CmdArgs) > 1 {
			s.turns()
			return s.counted()
		}
	case "stream": // "stream away": the bus takes no announcements; "stream back": it does again
		s.api.BusDown = name == "away"
	case "unread": // what waits is in a format that only a newer reconciler can read
		s.api.Facts = []events.Event{events.TimerFired{Name: events.Unread, At: s.api.Now}}
	case "lose": // the state is lost
		s.state = scheduledjob.State{}
		s.api.Facts = nil
	case "status":
		return s.status()
	case "ledger":
		for _, v := range s.api.Ledger {
			fmt.Fprintf(&s.out, "%v\n", v)
		}
		return s.names(s.out.String())
	default:
		d.Fatalf(t, "unknown command %q", d.Cmd)
	}
	s.turns()
	if s.out.Len() == 0 {
		return "ok\n"
	}
	return s.names(s.out.String())
}

// job finds a Job by its position among the running ones, or by its name.
func (s *stage) job(t *testing.T, which string) string {
	t.Helper()
	if n, err := strconv.Atoi(which); err == nil {
		return s.api.Running()[n-1]
	}
	if at, ok := strings.CutPrefix(which, "nightly-<01T"); ok {
		return "nightly-" + events.NominalHash(clock(t, strings.TrimSuffix(at, ">")+":00"))
	}
	return which
}

// turns decides and acts until nothing is left to do.
func (s *stage) turns() {
	if s.away {
		return
	}
	s.fire()
	f := scheduledjob.New(zone.Load)
	for range 100 {
		batch := s.api.Facts
		s.api.Facts = nil
		state, effects := f.Decide(s.state, batch, s.api.Now)
		s.state = state
		for _, e := range effects {
			set := s.api.Timer
			s.api.Facts = append(s.api.Facts, s.api.Act(e)...)
			if _, timer := e.(effect.SetTimer); timer && set.Equal(s.api.Timer) {
				continue // said already
			}
			fmt.Fprintf(&s.out, "%v\n", e)
		}
		if len(s.api.Facts) == 0 {
			return
		}
	}
	s.out.WriteString("never comes to rest\n")
}

// counted returns how many effects of each kind there were.
func (s *stage) counted() string {
	kinds := map[string]int{}
	for line := range strings.Lines(s.out.String()) {
		kinds[strings.Fields(line)[0]]++
	}
	out := ""
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		out += fmt.Sprintf("%d %s\n", kinds[kind], kind)
	}
	return out
}

// fire publishes what the trigger would: one due notice for the latest time that has come.
func (s *stage) fire() {
	if !s.api.Timer.IsZero() && !s.api.Timer.After(s.api.Now) {
		s.api.Timer = time.Time{}
		s.api.Facts = append(s.api.Facts, events.TimerFired{Name: "wake"})
	}
	j := s.api.Object
	if j == nil || j.Stopped() {
		return
	}
	if !j.RunAt.IsZero() {
		if !j.RunAt.Equal(s.fired) && !j.RunAt.After(s.api.Now) {
			s.notify(j.RunAt)
		}
		return
	}
	times, problem := scheduledjob.Timetable(*j, zone.Load)
	if problem != nil {
		return
	}
	if last, ok := times.Prev(s.api.Now); ok && last.After(s.fired) {
		s.notify(last)
	}
}

func (s *stage) notify(nominal time.Time) {
	s.fired = nominal
	s.api.Facts = append(s.api.Facts, events.ScheduleDue{Nominal: nominal})
}

func (s *stage) status() string {
	st := s.api.Object.Status
	fmt.Fprintf(&s.out, "decidedUntil=%s", st.DecidedUntil.UTC().Format(time.RFC3339))
	if t := st.NextScheduleTime; t != nil {
		fmt.Fprintf(&s.out, " next=%s", t.UTC().Format(time.RFC3339))
	}
	if t := st.LastScheduleTime; t != nil {
		fmt.Fprintf(&s.out, " last=%s", t.UTC().Format(time.RFC3339))
	}
	fmt.Fprintf(&s.out, " successful=%d failed=%d missed=%d\n", st.Successful, st.Failed, st.Missed)
	for _, ref := range st.Active {
		fmt.Fprintf(&s.out, "active: %s\n", ref.Name)
	}
	if l := st.LastRun; l != nil {
		fmt.Fprintf(&s.out, "last run: %s %s", l.JobName, strings.TrimSpace(l.Result+" "+l.Reason))
		if l.ScheduledTime != nil {
			fmt.Fprintf(&s.out, ", of %s", l.ScheduledTime.UTC().Format(time.RFC3339))
		}
		fmt.Fprintf(&s.out, ", ended %s; last decision: %s\n", l.CompletionTime.UTC().Format(time.RFC3339), st.LastDecision)
	}
	for _, c := range st.Conditions {
		fmt.Fprintf(&s.out, "%s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	for _, r := range s.api.Reports {
		fmt.Fprintf(&s.out, "Event %s: %s\n", r.Reason, r.Message)
	}
	s.api.Reports = nil
	return s.names(s.out.String())
}

// names writes the nominal time in place of its hash, which is unreadable, and leaves out the date.
func (s *stage) names(text string) string {
	for t := s.api.Now.AddDate(0, 0, -7).Truncate(time.Hour); t.Before(s.api.Now.AddDate(0, 0, 2)); t = t.Add(time.Minute) {
		text = strings.ReplaceAll(text, "nightly-"+events.NominalHash(t), "nightly-<"+t.Format("02T15:04")+">")
	}
	return zulu.ReplaceAllString(strings.ReplaceAll(text, "2026-07-01T", ""), "$1")
}

var zulu = regexp.MustCompile(`(:\d\d)Z`)

// edit reads "policy=Forbid deadline=60 catch-up=All …". The input is the schedule, or several, a line
// each; a line "except …" is left out.
func edit(t *testing.T, d *datadriven.TestData, j *events.ScheduledJob) {
	t.Helper()
	if in := strings.TrimSpace(d.Input); in != "" {
		schedules, exclude := []string{}, []string{}
		for line := range strings.Lines(in) {
			if out, ok := strings.CutPrefix(strings.TrimSpace(line), "except "); ok {
				exclude = append(exclude, out)
			} else {
				schedules = append(schedules, strings.TrimSpace(line))
			}
		}
		if j.Schedule, j.Schedules, j.Exclude = "", nil, exclude; len(schedules) == 1 {
			j.Schedule = schedules[0]
		} else {
			j.Schedules = schedules
		}
	}
	for _, a := range d.CmdArgs {
		value := strings.Join(a.Vals, ",")
		switch a.Key {
		case "policy":
			j.ConcurrencyPolicy = v1alpha1.ConcurrencyPolicy(value)
		case "catch-up":
			j.CatchUp = v1alpha1.CatchUpPolicy(value)
		case "on-change":
			j.OnScheduleChange = v1alpha1.ScheduleChangePolicy(value)
		case "zone":
			j.TimeZone = value
		case "run-at":
			j.RunAt, j.Schedule = clock(t, value), ""
		case "start-after":
			j.StartAfter = clock(t, value)
		case "not-before":
			j.NotBefore = clock(t, value)
		case "not-after":
			j.NotAfter = clock(t, value)
		case "suspended":
			j.Suspended = true
		case "resumed":
			j.Suspended = false
		case "template": // another template: the projection does not contain it
		default:
			n, err := strconv.Atoi(value)
			if err != nil {
				d.Fatalf(t, "%s: %v", a.Key, err)
			}
			switch a.Key {
			case "deadline":
				j.StartingDeadlineSeconds = new(int64(n))
			case "jitter":
				j.JitterSeconds = int32(n)
			case "successful":
				j.SuccessfulJobs = int32(n)
			case "failed":
				j.FailedJobs = int32(n)
			case "queue-limit":
				j.QueueLimit = int32(n)
			case "pause-after":
				j.PauseAfterFailures = int32(n)
			case "ttl":
				j.TTLSecondsAfterFinished = new(int32(n))
			default:
				d.Fatalf(t, "unknown argument %q", a.Key)
			}
		}
	}
}
