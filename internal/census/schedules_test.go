package census

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

// scheduled is a ScheduledJob that was created so many minutes after noon.
func scheduled(name string, minutes int, change ...func(*events.ScheduledJob)) *events.ScheduledJob {
	j := &events.ScheduledJob{Namespace: "shop", Name: name, UID: types.UID("uid of " + name), Schedule: "0 2 * * *",
		Created: noon.Add(time.Duration(minutes) * time.Minute)}
	for _, f := range change {
		f(j)
	}
	return j
}

func names(c *Census) (out []string) {
	for _, s := range c.Schedules() {
		out = append(out, s.Name)
	}
	return out
}

func TestSchedules(t *testing.T) {
	for _, tt := range []struct {
		name  string
		room  int
		steps func(*Census)
		want  []string
	}{
		{"by name", 9, func(c *Census) { c.SawSchedule(*scheduled("b", 0)); c.SawSchedule(*scheduled("a", 1)) }, []string{"a", "b"}},
		{"seen again", 9, func(c *Census) { c.SawSchedule(*scheduled("a", 0)); c.SawSchedule(*scheduled("a", 0)) }, []string{"a"}},
		{"gone", 9, func(c *Census) {
			c.SawSchedule(*scheduled("a", 0))
			c.SawSchedule(*scheduled("b", 0))
			c.MissedSchedule("uid of a")
		}, []string{"b"}},
		{"gone, and never seen", 9, func(c *Census) { c.MissedSchedule("uid of a") }, nil},
		{"a list replaces what was there", 9, func(c *Census) {
			c.SawSchedule(*scheduled("a", 0))
			c.ListedSchedules(slices.Values([]*events.ScheduledJob{scheduled("b", 0), scheduled("c", 0)}))
		}, []string{"b", "c"}},
		{"no room at all", 0, func(c *Census) {
			c.ListedSchedules(slices.Values([]*events.ScheduledJob{scheduled("a", 0)}))
			c.SawSchedule(*scheduled("b", 0))
		}, nil},
		{"the younger one finds no room", 2, func(c *Census) {
			c.SawSchedule(*scheduled("b", 1))
			c.SawSchedule(*scheduled("a", 2))
			c.SawSchedule(*scheduled("c", 3))
		}, []string{"a", "b"}},
		{"the older one takes the place of the youngest", 2, func(c *Census) {
			c.SawSchedule(*scheduled("b", 1))
			c.SawSchedule(*scheduled("c", 3))
			c.SawSchedule(*scheduled("a", 2))
		}, []string{"a", "b"}},
		{"one that was left out comes with its next change", 1, func(c *Census) {
			c.SawSchedule(*scheduled("a", 1))
			c.SawSchedule(*scheduled("b", 2))
			c.MissedSchedule("uid of a")
			c.SawSchedule(*scheduled("b", 2))
		}, []string{"b"}},
		{"created again under its name before the deletion is seen", 9, func(c *Census) {
			c.SawSchedule(*scheduled("a", 1))
			c.SawSchedule(*scheduled("a", 2, func(j *events.ScheduledJob) { j.UID = "another" }))
		}, []string{"a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := New(Config{Schedules: tt.room})
			tt.steps(c)
			if got := names(c); !slices.Equal(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestWhatAScheduleShows(t *testing.T) {
	c := New(Config{Schedules: 1})
	c.SawSchedule(*scheduled("nightly", 0, func(j *events.ScheduledJob) { j.Suspended = true }))
	if got := c.Schedules()[0]; !got.Suspended || got.TimeZone != "UTC" || !got.Next.IsZero() || got.Active != 0 {
		t.Errorf("by default: %+v", got)
	}
	c.SawSchedule(*scheduled("nightly", 0, func(j *events.ScheduledJob) { j.Schedule, j.Schedules = "", []string{"0 2 * * *", "0 9 * * MON"} }))
	if got := c.Schedules()[0]; got.Schedule != "0 2 * * *; 0 9 * * MON" {
		t.Errorf("several schedules: %+v", got)
	}
	deadline, next, last, good := int64(30), metav1.NewTime(noon.Add(time.Hour)), metav1.NewTime(noon), metav1.NewTime(noon.Add(time.Minute))
	c.SawSchedule(*scheduled("nightly", 0, func(j *events.ScheduledJob) {
		j.TimeZone, j.ConcurrencyPolicy, j.StartingDeadlineSeconds, j.SuccessfulJobs, j.FailedJobs = "Europe/Berlin", v1alpha1.ForbidConcurrent, &deadline, 3, 1
		j.Status = v1alpha1.ScheduledJobStatus{NextScheduleTime: &next, LastScheduleTime: &last, LastSuccessfulTime: &good, Active: make([]corev1.ObjectReference, 2)}
	}))
	got := c.Schedules()[0]
	got.uid, got.StartingDeadlineSeconds = "", nil
	want := Schedule{Namespace: "shop", Name: "nightly", Schedule: "0 2 * * *", TimeZone: "Europe/Berlin", ConcurrencyPolicy: "Forbid", SuccessfulLimit: 3,
		FailedLimit: 1, Active: 2, Created: noon, Next: next.Time, LastScheduled: last.Time, LastSuccessful: good.Time}
	if got != want {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

// An older definition may have accepted any text. A label has to be valid UTF-8, and not long.
func TestTextsOfASchedule(t *testing.T) {
	c := New(Config{Schedules: 1})
	c.SawSchedule(*scheduled("a", 0, func(j *events.ScheduledJob) {
		j.Schedule, j.TimeZone = strings.Repeat("x", longest-1)+"é"+strings.Repeat("y", 1000), "\xff\xfeEurope"
	}))
	got := c.Schedules()[0]
	if len(got.Schedule) != longest-1 || !utf8.ValidString(got.Schedule) || got.TimeZone != "Europe" {
		t.Errorf("%d bytes of %q, zone %q", len(got.Schedule), got.Schedule, got.TimeZone)
	}
}

// Whatever the order in which they are seen, it is the oldest that are shown, by every trigger the same, and very many younger ones
// displace none.
func TestTheOldestSchedulesAreShown(t *testing.T) {
	const room, many = 50, 5000
	var all []*events.ScheduledJob
	var want []string
	for i := range many {
		all = append(all, scheduled(fmt.Sprintf("a-%04d", many-i), i/3)) // three at a time
	}
	oldest := slices.SortedFunc(slices.Values(all), func(a, b *events.ScheduledJob) int {
		if c := a.Created.Compare(b.Created); c != 0 {
			return c
		}
		return strings.Compare(string(a.UID), string(b.UID))
	})
	for _, j := range oldest[:room] {
		want = append(want, j.Name)
	}
	slices.Sort(want)
	for trigger := range uint64(5) {
		r := rand.New(rand.NewPCG(trigger, 1))
		r.Shuffle(many, func(i, k int) { all[i], all[k] = all[k], all[i] })
		c := New(Config{Schedules: room})
		c.ListedSchedules(slices.Values(all))
		for _, j := range all[:many/2] { // and their changes
			c.SawSchedule(*j)
		}
		if got := names(c); !slices.Equal(got, want) {
			t.Fatalf("trigger %d shows %q\nwant %q", trigger, got, want)
		}
	}
}
