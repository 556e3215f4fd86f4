package kubectl

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

// columns returns the lines of a table, cell by cell.
func columns(out string) (rows [][]string) {
	for line := range strings.Lines(out) {
		rows = append(rows, strings.Fields(line))
	}
	return rows
}

// TestNextOfASchedule: no request is sent, and --count times are printed.
func TestNextOfASchedule(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("HOME", t.TempDir())
	got := call(t, "", []string{"next", "--schedule=30 2 28 3 *", "--time-zone=Europe/Berlin", "--count=400"})
	rows := columns(got.out)
	if got.code != 0 || got.err != "" || len(rows) != 401 || strings.Join(rows[0], " ") != "TIME IN NOTE" {
		t.Fatalf("got %s", got)
	}
	before := time.Now()
	for _, row := range rows[1:] {
		at, err := time.Parse(time.RFC3339, row[0])
		if err != nil || !at.After(before) || len(row) < 2 {
			t.Fatalf("%q, after %v: %v", row, before, err)
		}
		before = at
		if moved := strings.HasPrefix(strings.Join(row[2:], " "), "moved: the clock jumps over 02:30"); moved != strings.Contains(row[0], "T03:00:00+02:00") {
			t.Errorf("%q", row)
		}
	}
	if !strings.Contains(got.out, "2100-03-28T03:00:00+02:00") {
		t.Errorf("got %s", got)
	}
}

// TestNextOfScheduledJobs: H, @every, startAfter and suspend depend on the object.
func TestNextOfScheduledJobs(t *testing.T) {
	w := newWorld(t)
	hashed := w.newScheduled("hashed", func(s *v1alpha1.ScheduledJob) { s.Spec.Schedule = "H H * * *" })
	for _, name := range []string{"other", "another"} {
		w.newScheduled(name, func(s *v1alpha1.ScheduledJob) { s.Spec.Schedule = "H H * * *" })
	}
	every := w.newScheduled("every", func(s *v1alpha1.ScheduledJob) {
		s.Spec.Schedule, s.Spec.Suspend, s.Spec.JitterSeconds = "@every 100h", ptr.To(true), ptr.To[int32](86400)
	})
	w.newScheduled("later", func(s *v1alpha1.ScheduledJob) {
		s.Spec.Schedule, s.Spec.TimeZone, s.Spec.StartAfter = "0 0 * * *", ptr.To("Asia/Tokyo"), &metav1.Time{Time: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}
	})
	w.newScheduled("once", func(s *v1alpha1.ScheduledJob) {
		s.Spec.Schedule, s.Spec.RunAt = "", &metav1.Time{Time: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}
	})
	w.newScheduled("passed", func(s *v1alpha1.ScheduledJob) {
		s.Spec.Schedule, s.Spec.RunAt = "", &metav1.Time{Time: time.Unix(1e9, 0)}
	})
	for _, tt := range []struct{ args, want, says string }{
		{"scheduledjob/every --count=2", "every " + every.CreationTimestamp.Add(100*time.Hour).UTC().Format(time.RFC3339) + " IN suspended\nevery " +
			every.CreationTimestamp.Add(200*time.Hour).UTC().Format(time.RFC3339) + " IN suspended\n", "Jobs of the ScheduledJob every are created "},
		{"later --count=1", "later 2100-01-02T00:00:00+09:00 IN\n", ""},
		{"once", "once 2100-01-01T00:00:00Z IN\n", ""},
		{"once later --count=1", "once 2100-01-01T00:00:00Z IN\nlater 2100-01-02T00:00:00+09:00 IN\n", ""},
		{"passed", "", "the ScheduledJob passed is not due any more\n"},
	} {
		got := w.call(append([]string{"next"}, strings.Fields(tt.args)...)...)
		rows, have := columns(got.out), ""
		for _, row := range rows[min(1, len(rows)):] {
			row[2] = "IN"
			have += strings.Join(row, " ") + "\n"
		}
		if got.code != 0 || have != tt.want || !strings.Contains(got.err, tt.says) || tt.says == "" && got.err != "" {
			t.Errorf("%s: want %q and %q, got %s", tt.args, tt.want, tt.says, got)
		}
	}
	clock := func(name string) string { return columns(w.call("next", name, "--count=1").out)[1][1][10:] }
	if a := clock("hashed"); a != clock("hashed") || a == clock("other") && a == clock("another") {
		t.Errorf("H of %s is %s, which it is for others, or not again", hashed.UID, a)
	}
	if got := w.call("next", "nowhere"); got.code != ExitFailed || !strings.Contains(got.err, "there is no ScheduledJob nowhere in the namespace "+w.ns+": -n chooses another\n") {
		t.Errorf("got %s", got)
	}
	if got := call(t, "", []string{"next", "later", "-n", "10"}, func(p *tool) { w.here(p); *p.config.Namespace = "10" }); got.code != ExitFailed ||
		!strings.Contains(got.err, "there is no ScheduledJob later in the namespace 10: -n chooses another; the number of times to show is --count=10\n") {
		t.Errorf("got %s", got)
	}
}
