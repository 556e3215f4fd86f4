package alarm

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

// memory is a sink that records notices, and can be made to fail.
type memory struct {
	mu       sync.Mutex
	notified []string
	ids      []string
	fails    error
}

func (m *memory) Publish(_ context.Context, f events.Fact) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fails != nil {
		return m.fails
	}
	m.notified = append(m.notified, fmt.Sprintf("%s %s", f.Key.UID, f.Event.(events.ScheduleDue).Nominal.Format(clockLayout)))
	m.ids = append(m.ids, f.ID())
	return nil
}

func (m *memory) breaks(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fails = err
}

// take returns the notices since the previous call.
func (m *memory) take() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := m.notified
	m.notified = nil
	return out
}

const clockLayout = "02 15:04:05"

// at is a time of January 2000, whose first day is a Saturday: "01 12:00:00", or "12:00:00" on the first.
func at(clock string) time.Time {
	if len(clock) == len("12:00:00") {
		clock = "01 " + clock
	}
	t, err := time.Parse("2006-01 "+clockLayout, "2000-01 "+clock)
	if err != nil {
		panic(err)
	}
	return t
}

// job returns a ScheduledJob that was created at midnight.
func job(uid types.UID, schedule string, change ...func(*events.ScheduledJob)) events.ScheduledJob {
	j := events.ScheduledJob{Namespace: "ns", Name: "name-" + string(uid), UID: uid, Created: at("00:00:00"), Schedule: schedule}
	for _, f := range change {
		f(&j)
	}
	return j
}

func decidedUntil(clock string) func(*events.ScheduledJob) {
	return func(j *events.ScheduledJob) { j.Status.DecidedUntil = &metav1.Time{Time: at(clock)} }
}

func runAt(clock string) func(*events.ScheduledJob) {
	return func(j *events.ScheduledJob) { j.Schedule, j.RunAt = "", at(clock) }
}

func suspended(j *events.ScheduledJob) { j.Suspended = true }
func deleting(j *events.ScheduledJob)  { j.Deleting = true }

func in(zone string) func(*events.ScheduledJob) {
	return func(j *events.ScheduledJob) { j.TimeZone = zone }
}

func finished(j *events.ScheduledJob) {
	j.Status.Conditions = []metav1.Condition{{Type: v1alpha1.FinishedCondition, Status: metav1.ConditionTrue}}
}

// step is one moment: the clock is set, changes are recorded, then the alarm looks at the clock.
type step struct {
	clock string
	saw   []events.ScheduledJob
	gone  types.UID
	reset bool
	due   []string
}

func TestRings(t *testing.T) {
	saw := func(j ...events.ScheduledJob) []events.ScheduledJob { return j }
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"each nominal time, when it has come", []step{
			{clock: "11:59:59", saw: saw(job("a", "0 * * * *", decidedUntil("11:00:00")))},
			{clock: "12:00:00", due: []string{"a 01 12:00:00"}},
			{clock: "12:00:10"},
			{clock: "12:59:59"},
			{clock: "13:00:00", due: []string{"a 01 13:00:00"}},
		}},
		{"the earliest of several first", []step{
			{clock: "11:00:00", saw: saw(job("a", "20 * * * *", decidedUntil("11:00:00")), job("b", "10 * * * *", decidedUntil("11:00:00")), job("c", "30 * * * *", decidedUntil("11:00:00")))},
			{clock: "11:25:00", due: []string{"b 01 11:10:00", "a 01 11:20:00"}},
			{clock: "11:30:00", due: []string{"c 01 11:30:00"}},
		}},
		{"after downtime once, for the latest", []step{
			{clock: "12:34:56", saw: saw(job("a", "*/5 * * * *", decidedUntil("03:00:00"))), due: []string{"a 01 12:30:00"}},
			{clock: "12:34:57"},
			{clock: "12:35:00", due: []string{"a 01 12:35:00"}},
		}},
		{"nothing where everything is decided", []step{{clock: "12:34:56", saw: saw(job("a", "*/5 * * * *", decidedUntil("12:30:00")))}}},
		{"nothing from before it was made", []step{
			{clock: "00:00:00", saw: saw(job("a", "0 * * * *"))},
			{clock: "01:00:00", due: []string{"a 01 01:00:00"}},
		}},
		{"after a jump ahead once, for the latest, and then as ever", []step{
			{clock: "12:00:30", saw: saw(job("a", "* * * * *", decidedUntil("12:00:00")))},
			{clock: "02 09:30:30", due: []string{"a 02 09:30:00"}},
			{clock: "02 09:31:00", due: []string{"a 02 09:31:00"}},
		}},
		{"not again what is decided, after the clock was set back", []step{
			{clock: "12:59:00", saw: saw(job("a", "0 * * * *", decidedUntil("12:00:00")))},
			{clock: "13:00:00", due: []string{"a 01 13:00:00"}},
			{clock: "13:00:01", saw: saw(job("a", "0 * * * *", decidedUntil("13:00:00")))},
			{clock: "12:00:05"}, // an hour back
			{clock: "13:00:05"},
			{clock: "14:00:00", due: []string{"a 01 14:00:00"}},
		}},
		{"again what a clock that was ahead has notified", []step{
			{clock: "12:30:00", saw: saw(job("a", "0 * * * *", decidedUntil("12:00:00")))},
			{clock: "02 12:00:00", due: []string{"a 02 12:00:00"}}, // a day ahead
			{clock: "12:30:10"},
			{clock: "13:00:00", due: []string{"a 01 13:00:00"}},
			{clock: "14:00:00", due: []string{"a 01 14:00:00"}},
		}},
		{"not while it is suspended, and then for what has passed since", []step{
			{clock: "12:00:00", saw: saw(job("a", "0 * * * *", decidedUntil("12:00:00"), suspended))},
			{clock: "13:00:00"},
			{clock: "13:30:00", saw: saw(job("a", "0 * * * *", decidedUntil("12:00:00"))), due: []string{"a 01 13:00:00"}},
		}},
		{"not for one that is being deleted", []step{
			{clock: "12:00:00", saw: saw(job("a", "0 * * * *", decidedUntil("12:00:00")))},
			{clock: "12:30:00", saw: saw(job("a", "0 * * * *", decidedUntil("12:00:00"), deleting))},
			{clock: "13:00:00"},
		}},
		{"not for one that is gone", []step{
			{clock: "12:00:00", saw: saw(job("a", "0 * * * *", decidedUntil("12:00:00")), job("b", "0 * * * *", decidedUntil("12:00:00")))},
			{clock: "12:30:00", gone: "a"},
			{clock: "13:00:00", due: []string{"b 01 13:00:00"}},
			{clock: "13:30:00", gone: "unknown"},
		}},
		{"not for those that a new list does not hold", []step{
			{clock: "12:00:00", saw: saw(job("a", "0 * * * *", decidedUntil("12:00:00")))},
			{clock: "12:30:00", reset: true, saw: saw(job("b", "0 * * * *", decidedUntil("12:00:00")))},
			{clock: "13:00:00", due: []string{"b 01 13:00:00"}},
		}},
		{"once more after a new list, if no verdict was given", []step{
			{clock: "13:00:00", saw: saw(job("a", "0 * * * *", decidedUntil("12:00:00"))), due: []string{"a 01 13:00:00"}},
			{clock: "13:10:00", reset: true, saw: saw(job("a", "0 * * * *", decidedUntil("12:00:00"))), due: []string{"a 01 13:00:00"}},
			{clock: "13:20:00"},
		}},
		{"runAt once", []step{
			{clock: "11:00:00", saw: saw(job("a", "", runAt("12:00:00")))},
			{clock: "12:00:00", due: []string{"a 01 12:00:00"}},
			{clock: "12:00:01", saw: saw(job("a", "", runAt("12:00:00"), decidedUntil("12:00:00")))},
			{clock: "13:00:00"},
		}},
		{"runAt that had passed when it was made", []step{
			{clock: "11:00:00", saw: saw(job("a", "", runAt("09:00:00"), func(j *events.ScheduledJob) { j.Created = at("10:00:00") })), due: []string{"a 01 09:00:00"}},
			{clock: "11:01:00"},
		}},
		{"not for one that has finished", []step{{clock: "13:00:00", saw: saw(job("a", "", runAt("12:00:00"), finished))}}},
		{"by a new schedule, for what has passed", []step{
			{clock: "12:31:00", saw: saw(job("a", "0 * * * *", decidedUntil("12:00:00")))},
			{clock: "12:31:10", saw: saw(job("a", "*/30 * * * *", decidedUntil("12:00:00"))), due: []string{"a 01 12:30:00"}},
			{clock: "13:00:00", due: []string{"a 01 13:00:00"}},
			{clock: "13:00:10", saw: saw(job("a", "0 0 * * *", decidedUntil("13:00:00")))},
			{clock: "02 00:00:00", due: []string{"a 02 00:00:00"}},
		}},
		{"by a new zone", []step{
			{clock: "12:00:00", saw: saw(job("a", "0 15 * * *", decidedUntil("12:00:00")))},
			{clock: "12:10:00", saw: saw(job("a", "0 15 * * *", decidedUntil("12:00:00"), in("Europe/Berlin")))},
			{clock: "14:00:00", due: []string{"a 01 14:00:00"}},
			{clock: "15:00:00"},
		}},
		{"seconds, and intervals since it was made", []step{
			{clock: "12:00:00", saw: saw(job("a", "*/15 * * * * *", decidedUntil("12:00:00")), job("b", "@every 7m", decidedUntil("12:00:00")))},
			{clock: "12:00:15", due: []string{"a 01 12:00:15"}},
			{clock: "12:03:00", due: []string{"a 01 12:03:00", "b 01 12:01:00"}}, // 103 intervals
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			sink, now := &memory{}, time.Time{}
			a := newAlarm(t, Config{Sink: sink, Now: func() time.Time { return now }})
			for _, s := range c.steps {
				now = at(s.clock)
				if s.reset {
					a.Reset()
				}
				for _, j := range s.saw {
					a.Saw(j)
				}
				if s.gone != "" {
					a.Gone(s.gone)
				}
				due, wait := a.look()
				if _, err := a.publish(t.Context(), due); err != nil {
					t.Fatal(err)
				}
				got := sink.take()
				slices.Sort(got)
				slices.Sort(s.due)
				if !slices.Equal(got, s.due) {
					t.Errorf("at %s fired %q, want %q", s.clock, got, s.due)
				}
				if wait <= 0 || wait > lookAtLeast {
					t.Errorf("at %s it waits %v", s.clock, wait)
				}
			}
		})
	}
}

func newAlarm(t *testing.T, c Config) *Alarm {
	t.Helper()
	c.Cluster = "c"
	a, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestWhatNeverRingsIsSaidOnce(t *testing.T) {
	for _, c := range []struct {
		name, want string
		job        events.ScheduledJob
	}{
		{"no schedule", "4 fields", job("a", "every now and then")},
		{"never due", "never due", job("a", "0 0 30 2 *")},
		{"no zone", "Atlantis", job("a", "0 0 * * *", in("Atlantis/Poseidonis"))},
		{"the local zone", "Local", job("a", "0 0 * * *", in("Local"))},
		{"both", "runAt", job("a", "0 0 * * *", func(j *events.ScheduledJob) { j.RunAt = at("12:00:00") })},
		{"a selector", "manualSelector", job("a", "0 0 * * *", func(j *events.ScheduledJob) { j.Invalid = "no manualSelector" })},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := &bytes.Buffer{}
			a := newAlarm(t, Config{Sink: &memory{}, Now: func() time.Time { return at("02 12:00:00") }, Log: slog.New(slog.NewTextHandler(log, nil))})
			for range 3 {
				a.Saw(c.job)
			}
			if due, _ := a.look(); len(due) > 0 {
				t.Errorf("it is due: %+v", due)
			}
			if said := log.String(); strings.Count(said, "\n") != 1 || !strings.Contains(said, "level=INFO") ||
				!strings.Contains(said, c.want) || !strings.Contains(said, "name-a") {
				t.Errorf("said %s", said)
			}
			c.job.Invalid, c.job.RunAt, c.job.TimeZone, c.job.Schedule = "", time.Time{}, "", "0 * * * *"
			a.Saw(c.job)
			if due, _ := a.look(); len(due) != 1 {
				t.Errorf("repaired, it is due: %+v", due)
			}
		})
	}
}

// TestTwoAlarmsAreOne: two alarms publish the same message for a nominal time.
func TestTwoAlarmsAreOne(t *testing.T) {
	var ids [2][]string
	for i := range ids {
		sink, now := &memory{}, at("12:00:00")
		a := newAlarm(t, Config{Sink: sink, Now: func() time.Time { return now }})
		a.Saw(job("a", "* * * * *", decidedUntil("12:00:00")))
		for range 3 {
			now = now.Add(time.Minute + time.Duration(i)*time.Second) // they look at different moments
			due, _ := a.look()
			if _, err := a.publish(t.Context(), due); err != nil {
				t.Fatal(err)
			}
		}
		ids[i] = sink.ids
	}
	if len(ids[0]) != 3 || !slices.Equal(ids[0], ids[1]) {
		t.Errorf("%q and %q", ids[0], ids[1])
	}
}

func TestNewRefuses(t *testing.T) {
	for want, c := range map[string]Config{"no sink": {Cluster: "c"}, "no name": {Sink: &memory{}}} {
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
