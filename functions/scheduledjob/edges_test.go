package scheduledjob

import (
	"math"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/backoff"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/zone"
)

// A deadline counts from the delayed start. With catchUp None, a minute is the longest.
func TestDeadlines(t *testing.T) {
	for _, c := range []struct {
		name    string
		catchUp v1alpha1.CatchUpPolicy
		seconds *int64
		after   time.Duration
		ok      bool
	}{
		{"none", v1alpha1.CatchUpLatest, nil, 0, false},
		{"the user's", v1alpha1.CatchUpLatest, new(int64(90)), 90 * time.Second, true},
		{"longer than a Duration holds", v1alpha1.CatchUpAll, new(int64(1 << 62)), time.Duration(longest) * time.Second, true},
		{"catchUp None", v1alpha1.CatchUpNone, nil, time.Minute, true},
		{"catchUp None, and a longer one", v1alpha1.CatchUpNone, new(int64(90)), time.Minute, true},
		{"catchUp None, and a shorter one", v1alpha1.CatchUpNone, new(int64(30)), 30 * time.Second, true},
	} {
		j := events.ScheduledJob{UID: "s", CatchUp: c.catchUp, StartingDeadlineSeconds: c.seconds, JitterSeconds: 300}
		if after, ok := deadline(j); after != c.after || ok != c.ok {
			t.Errorf("%s: %v, %v", c.name, after, ok)
		}
		if c.after > time.Hour {
			continue
		}
		end := ten.Add(Delay(j)).Add(c.after)
		if late(j, ten, end) || late(j, ten, end.Add(time.Nanosecond)) != c.ok {
			t.Errorf("%s: it ends at %v", c.name, end)
		}
	}
}

// The delay of a ScheduledJob is one of the seconds from 0 to jitterSeconds, each of which some have.
func TestDelays(t *testing.T) {
	for _, jitter := range []int32{-1, 0, 1, 3} {
		seen := map[time.Duration]bool{}
		for i := range 200 {
			d := Delay(events.ScheduledJob{UID: types.UID(strings.Repeat("u", i)), JitterSeconds: jitter})
			if seen[d] = true; d < 0 || d > time.Duration(max(jitter, 0))*time.Second {
				t.Fatalf("jitterSeconds is %d, the delay %v", jitter, d)
			}
		}
		if len(seen) != int(max(jitter, 0))+1 {
			t.Errorf("jitterSeconds is %d, and only %d delays occur", jitter, len(seen))
		}
	}
}

// With catchUp All, as many Jobs are due at once as one decision creates, and the rest follows.
func TestHowManyTimesAreDueAtOnce(t *testing.T) {
	s := everyMinute()
	s.Object.CatchUp, s.Object.StartingDeadlineSeconds = v1alpha1.CatchUpAll, new(int64(3600))
	if made := decideAt[effect.CreateJob](&s, minute(30)); len(made) != dueAtOnce || !made[0].Nominal.Equal(minute(1)) || !made[dueAtOnce-1].Nominal.Equal(minute(dueAtOnce)) {
		t.Errorf("%d Jobs: %v", len(made), made)
	}
	s = everyMinute()
	s.Object.CatchUp = v1alpha1.CatchUpAll
	decideAt[effect.CreateJob](&s, minute(caughtUp+1).Add(30*time.Second)) // the latest has just come, so a hundred others are made up for
	if len(s.Pending) != 0 || !s.Due[0].Nominal.Equal(minute(1)) {
		t.Errorf("of %d times and the latest, %q have a verdict", caughtUp, verdicts(s))
	}
	s = everyMinute()
	s.Object.CatchUp = v1alpha1.CatchUpAll
	decideAt[effect.CreateJob](&s, minute(caughtUp+3).Add(30*time.Second))
	if got := verdicts(s); len(got) != 1 || got[0] != "Missed(Superseded) 2026-07-01T10:01:00Z to 2026-07-01T10:02:00Z, 2 times" {
		t.Errorf("of two more: %q", got)
	}
}

// A Job that is gone, and whose end was never observed, has failed. If the policy Replace has deleted it, users were told.
func TestAMissingJob(t *testing.T) {
	for _, c := range []struct {
		name     string
		deleting bool
		policy   v1alpha1.ConcurrencyPolicy
		replaced bool
	}{
		{"replaced", true, v1alpha1.ReplaceConcurrent, true},
		{"deleted by a user", true, v1alpha1.ForbidConcurrent, false},
		{"gone before it was replaced", false, v1alpha1.ReplaceConcurrent, false},
	} {
		s := everyMinute()
		s.Object.ConcurrencyPolicy = c.policy
		b := book{State: s, now: minute(3)}
		b.count(Row{Run: events.Run{Name: "nightly-x", UID: "x", Deleting: c.deleting}, Gone: true})
		warned := len(b.reports) == 1 && b.reports[0].Reason == "MissingJob"
		if l := b.status.LastRun; (l.Reason == "Replaced") != c.replaced || warned == c.replaced || l.Result != "Missing" || b.status.Failed != 1 {
			t.Errorf("%s: %+v, reports %v", c.name, l, b.reports)
		}
	}
}

// Jobs may end in another order than they are counted in: the last run is the one that ended last, and of two in a second the one that is
// counted last.
func TestTheLastRunIsTheOneThatEndedLast(t *testing.T) {
	b := book{State: everyMinute(), now: minute(9)}
	for i, c := range []struct {
		second    int
		last      string
		successes int
	}{{5, "a", 5}, {3, "a", 5}, {5, "c", 5}, {7, "d", 7}} {
		name := string(rune('a' + i))
		b.count(Row{Run: events.Run{Name: name, UID: types.UID(name), Result: events.RunComplete, Finished: ten.Add(time.Duration(c.second) * time.Second)}})
		if b.status.LastRun.JobName != c.last || !b.status.LastSuccessfulTime.Time.Equal(ten.Add(time.Duration(c.successes)*time.Second)) {
			t.Errorf("after %s, the last is %s, and the last success at %v", name, b.status.LastRun.JobName, b.status.LastSuccessfulTime)
		}
	}
}

// The condition Suspended keeps its reason until the verdicts that it explains are in the status.
func TestSuspendedUntilItsVerdictsAreWritten(t *testing.T) {
	skipped := func(reason string) v1alpha1.TickVerdict {
		return v1alpha1.TickVerdict{Verdict: "Skipped", Reason: reason, Time: metav1.NewTime(minute(1)), Count: 1}
	}
	for _, c := range []struct {
		name      string
		suspended bool
		left      []v1alpha1.TickVerdict
		want      string // the reason
	}{
		{"it runs", false, nil, ""},
		{"it runs, and other verdicts are left", false, []v1alpha1.TickVerdict{skipped("Overlap")}, ""},
		{"it was paused", false, []v1alpha1.TickVerdict{skipped(v1alpha1.ReasonFailedRuns)}, v1alpha1.ReasonFailedRuns},
		{"it was suspended, and another verdict is left", false, []v1alpha1.TickVerdict{skipped("Overlap"), skipped(v1alpha1.ReasonSuspended)}, v1alpha1.ReasonSuspended},
		{"it was paused, and is suspended by now", true, []v1alpha1.TickVerdict{skipped(v1alpha1.ReasonFailedRuns)}, v1alpha1.ReasonFailedRuns},
		{"it is suspended", true, []v1alpha1.TickVerdict{skipped(v1alpha1.ReasonSuspended)}, v1alpha1.ReasonSuspended},
		{"it is suspended, and nothing is left", true, nil, v1alpha1.ReasonSuspended},
	} {
		b := book{State: everyMinute(), now: minute(9), left: c.left}
		b.Object.Suspended = c.suspended
		b.setSuspended("")
		if got := condition(b.status.Conditions, v1alpha1.SuspendedCondition).Reason; got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A status that is full takes no further verdict before the bus has confirmed one: all others wait, in order, whatever they are about.
func TestVerdictsWaitForRoomInOrder(t *testing.T) {
	s := everyMinute()
	for n := range v1alpha1.RecentVerdicts {
		s.Object.Status.Recent = append(s.Object.Status.Recent, v1alpha1.TickVerdict{Verdict: "Missed", Reason: "Deadline", Time: metav1.NewTime(minute(n - 20)), Count: 1})
	}
	s.say(events.Skipped, v1alpha1.ReasonSuspended, "", minute(1))
	s.say(events.Skipped, "Overlap", "", minute(2))
	b := book{State: s, now: minute(3), status: *s.Object.Status.DeepCopy()}
	if b.enter(); len(b.left) != 2 || len(b.status.Recent) != v1alpha1.RecentVerdicts || !b.status.DecidedUntil.Time.Equal(ten) {
		t.Errorf("%d wait, %d are in the status, which has decided until %v", len(b.left), len(b.status.Recent), b.status.DecidedUntil)
	}
	s.Object.Status.Recent[4].Announced = true
	b = book{State: s, now: minute(3), status: *s.Object.Status.DeepCopy()}
	if b.enter(); len(b.left) != 1 || len(b.status.Recent) != v1alpha1.RecentVerdicts || len(b.dropped) != 0 || !b.status.DecidedUntil.Time.Equal(minute(1)) {
		t.Errorf("with one announced: %d wait, %d are in the status, which has decided until %v", len(b.left), len(b.status.Recent), b.status.DecidedUntil)
	}
	for refusals, dropped := range map[int]int{unavailableAfter - 1: 0, unavailableAfter: 2} { // the bus is away for a minute
		s.Object.Status.Recent[4].Announced = false
		s.Waits = backoff.Waits{effect.KindAnnounce: {Count: refusals}}
		b = book{State: s, now: minute(3), status: *s.Object.Status.DeepCopy()}
		if b.enter(); len(b.dropped) != dropped || len(b.status.Recent) != v1alpha1.RecentVerdicts {
			t.Errorf("after %d refusals, %d verdicts are dropped", refusals, len(b.dropped))
		}
	}
}

// A Job of a time that exclude leaves out by now was observed after all: the verdict on the excluded times is cut by these times.
func TestARangeOfExcludedTimesIsCutAroundAJob(t *testing.T) {
	j := everyMinute().Object
	j.Exclude = []string{"* 11 * * *"}
	times, problem := Timetable(j, zone.Load)
	if problem != nil {
		t.Fatal(problem)
	}
	eleven := ten.Add(time.Hour)
	s := leaveOut(State{Object: j, Until: ten.Add(59 * time.Minute)}, times, eleven.Add(time.Hour))
	if len(s.Pending) != 1 || s.Pending[0].Count != 60 {
		t.Fatalf("%q", verdicts(s))
	}
	s.retract(eleven.Add(10*time.Minute), times)
	if got := strings.Join(verdicts(s), "; "); got != "Skipped(Excluded) 2026-07-01T11:00:00Z to 2026-07-01T11:09:00Z, 10 times; Skipped(Excluded) 2026-07-01T11:11:00Z to 2026-07-01T11:59:00Z, 49 times" {
		t.Errorf("%s", got)
	}
}

// The one time of runAt, and the limits of a window, belong to what they limit.
func TestTimesAtTheirLimits(t *testing.T) {
	every, problem := Timetable(everyMinute().Object, zone.Load)
	if problem != nil {
		t.Fatal(problem)
	}
	limited := window{every, minute(2), minute(4)}
	for name, c := range map[string]struct {
		of          Times
		first, last int
		n           int64
	}{"runAt": {once(minute(3)), 3, 3, 1}, "a window": {limited, 2, 4, 3}, "a window without a beginning": {window{every, time.Time{}, minute(4)}, 1, 4, 4}} {
		if at, ok := c.of.Next(minute(c.first).Add(-time.Second)); !ok || !at.Equal(minute(c.first)) {
			t.Errorf("%s: the first is %v, %v", name, at, ok)
		}
		if at, ok := c.of.Next(minute(c.last)); ok {
			t.Errorf("%s: after the last comes %v", name, at)
		}
		if at, ok := c.of.Prev(minute(c.last)); !ok || !at.Equal(minute(c.last)) {
			t.Errorf("%s: the last is %v, %v", name, at, ok)
		}
		if at, ok := c.of.Prev(minute(9)); !ok || !at.Equal(minute(c.last)) {
			t.Errorf("%s: the last is %v, %v", name, at, ok)
		}
		if n := c.of.Count(minute(c.first).Add(-time.Second), minute(c.last)); n != c.n {
			t.Errorf("%s: %d times", name, n)
		}
		if n := c.of.Count(minute(c.first), minute(9)); n != c.n-1 {
			t.Errorf("%s: %d times after the first", name, n)
		}
	}
	for name, of := range map[string]Times{"runAt": once(minute(3)), "a window": window{every, minute(3), time.Time{}}} {
		if at, ok := of.Prev(minute(3).Add(-time.Second)); ok {
			t.Errorf("%s: before the first comes %v", name, at)
		}
	}
}

// A text of a timetable that is too long for the status ends in a hash of all of it.
func TestTextsAreBounded(t *testing.T) {
	text := func(n int) string { return Text(events.ScheduledJob{Schedule: strings.Repeat("x", n)}) }
	if got := text(longestText); got != strings.Repeat("x", longestText) {
		t.Errorf("the longest has %d bytes", len(got))
	}
	if got, other := text(longestText+1), text(longestText+2); len(got) > longestText || got == other {
		t.Errorf("%d bytes, and two texts are equal: %v", len(got), got == other)
	}
	for _, c := range []struct {
		j    events.ScheduledJob
		want string
	}{
		{events.ScheduledJob{Schedule: "@daily", TimeZone: "Europe/Berlin", Exclude: []string{"a", "b"}, NotBefore: minute(0), NotAfter: minute(1)},
			"@daily Europe/Berlin except a; b from 2026-07-01T10:00:00Z to 2026-07-01T10:01:00Z"},
		{events.ScheduledJob{Schedules: []string{"@daily", "@weekly"}}, "@daily; @weekly"},
		{events.ScheduledJob{RunAt: minute(2)}, "at 2026-07-01T10:02:00Z"},
	} {
		if got := Text(c.j); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// A new ScheduledJob has no times before its creation, unless its user wants them.
func TestWhereAScheduledJobBegins(t *testing.T) {
	created := ten.Add(500 * time.Millisecond)
	for _, c := range []struct {
		name string
		j    events.ScheduledJob
		want time.Time
	}{
		{"its creation", events.ScheduledJob{}, ten},
		{"startAfter, earlier", events.ScheduledJob{StartAfter: minute(-9)}, minute(-9)},
		{"startAfter, later", events.ScheduledJob{StartAfter: minute(9)}, minute(9)},
		{"runAt, later", events.ScheduledJob{RunAt: minute(9)}, ten},
		{"runAt, in the second of its creation", events.ScheduledJob{RunAt: ten}, ten.Add(-time.Second)},
		{"runAt, earlier", events.ScheduledJob{RunAt: minute(-9)}, minute(-9).Add(-time.Second)},
		{"runAt, whatever startAfter is", events.ScheduledJob{RunAt: minute(-9), StartAfter: minute(5)}, minute(-9).Add(-time.Second)},
	} {
		c.j.Created = created
		if got := Beginning(c.j); !got.Equal(c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// A request that may still be under way would create a Job again that is deleted before it arrives.
func TestHowLongAJobMayReturn(t *testing.T) {
	over := minute(1).Add(underWay)
	for _, c := range []struct {
		name  string
		again time.Time
		now   time.Time
		want  bool
	}{
		{"it was decided once", time.Time{}, minute(1), false},
		{"a request is under way", minute(1), over.Add(-time.Nanosecond), true},
		{"none is any more", minute(1), over, false},
	} {
		var at effect.Wake
		if got := (Row{Again: c.again}).mayReturn(c.now, &at); got != c.want || (len(at.Timer()) > 0) != c.want {
			t.Errorf("%s: %v, timer %v", c.name, got, at.Timer())
		}
	}
}

// A ScheduledJob that has run once is deleted at the end of its time to live, not before, and not while a verdict waits.
func TestTheEndOfTheTimeToLive(t *testing.T) {
	for _, c := range []struct {
		name    string
		now     time.Time
		pending int
		deleted bool
	}{
		{"before", minute(1).Add(-time.Nanosecond), 0, false},
		{"then", minute(1), 0, true},
		{"then, with a verdict that is not written", minute(1), 1, false},
	} {
		s := everyMinute()
		s.Object.Schedule, s.Object.RunAt, s.Object.TTLSecondsAfterFinished = "", ten, new(int32(60))
		s.Object.Status.Conditions = []metav1.Condition{{Type: v1alpha1.FinishedCondition, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(ten)}}
		s.Pending = make([]v1alpha1.TickVerdict, c.pending)
		var at effect.Wake
		if got := expire(s, c.now, &at); (len(got) == 1) != c.deleted || (len(at.Timer()) == 1) != (!c.deleted && c.pending == 0) {
			t.Errorf("%s: %v, timer %v", c.name, got, at.Timer())
		}
	}
}

// Failures in succession are counted up to the largest number of their field: users may write the status, too.
func TestConsecutiveFailuresDoNotOverflow(t *testing.T) {
	for before, want := range map[int32]int32{0: 1, math.MaxInt32 - 1: math.MaxInt32, math.MaxInt32: math.MaxInt32} {
		b := book{State: everyMinute(), now: minute(3)}
		b.Object.PauseAfterFailures, b.status.ConsecutiveFailures = 1, before
		if b.count(Row{Run: events.Run{Name: "j", Result: events.RunFailed}}); b.status.ConsecutiveFailures != want {
			t.Errorf("%d, and one more: %d, not %d", before, b.status.ConsecutiveFailures, want)
		}
	}
}
