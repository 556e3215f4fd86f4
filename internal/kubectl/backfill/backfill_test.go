package backfill

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/zone"
)

func nightly(schedule string) *v1alpha1.ScheduledJob {
	decided := metav1.NewTime(time.Date(2026, 11, 10, 12, 0, 0, 0, time.UTC))
	at := func(day int) metav1.Time { return metav1.NewTime(time.Date(2026, 11, day, 1, 30, 0, 0, time.UTC)) }
	until := at(8)
	return &v1alpha1.ScheduledJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nightly", UID: "uid-1", CreationTimestamp: at(5)},
		Spec:       v1alpha1.ScheduledJobSpec{Schedule: schedule, TimeZone: new("Europe/Berlin")},
		Status: v1alpha1.ScheduledJobStatus{DecidedUntil: &decided, Recent: []v1alpha1.TickVerdict{
			{Time: at(7), Until: &until, Count: 2, Verdict: "Missed", Reason: "Deadline"},
			{Time: at(9), Count: 1, Verdict: "Started"},
			{Time: at(9), Count: 1, Verdict: "Started", Reason: "Manual"},
		}},
	}
}

var now = time.Date(2026, 11, 10, 15, 0, 0, 0, time.UTC)

// TestRuns: both ends belong to the range, a day is in the schedule's zone, and times not decided yet stay with the schedule.
func TestRuns(t *testing.T) {
	for _, tt := range []struct {
		name, schedule, from, to string
		want                     string // nominal times, or the error
	}{
		{"days", "30 2 * * *", "2026-11-07", "2026-11-08", "2026-11-07T02:30:00+01:00 Missed (Deadline), 2026-11-08T02:30:00+01:00 Missed (Deadline)"},
		{"a time of the day, and no end", "30 2 * * *", "2026-11-08T02:31", "", "2026-11-09T02:30:00+01:00 Started, 2026-11-10T02:30:00+01:00"},
		{"both ends belong to it", "30 2 * * *", "2026-11-08T01:30:00Z", "2026-11-09 02:30", "2026-11-08T02:30:00+01:00 Missed (Deadline), 2026-11-09T02:30:00+01:00 Started"},
		{"from before the object was made", "30 2 * * *", "2026-11-01", "2026-11-01", "2026-11-01T02:30:00+01:00"},
		{"the hour that the clock shows twice", "30 2 * * *", "2026-10-25", "2026-10-25", "2026-10-25T02:30:00+02:00"},
		{"the hour that does not exist", "30 2 * * *", "2026-03-29", "2026-03-29", "2026-03-29T03:00:00+02:00"},
		{"no later than decided", "0 * * * *", "2026-11-10T12:00", "2027-01-01", "2026-11-10T12:00:00+01:00, 2026-11-10T13:00:00+01:00"},
		{"none in between", "30 2 * * *", "2026-11-09T03:00", "2026-11-09T04:00", "the ScheduledJob nightly has no nominal time from 2026-11-09T03:00:00+01:00 to 2026-11-09T04:00:00+01:00: see its times with"},
		{"too many", "* * * * *", "2026-11-01", "", "has 13741 nominal times from 2026-11-01T00:00:00+01:00 to 2026-11-10T13:00:00+01:00, and one backfill takes 1000: move --from and --to closer together"},
		{"backwards", "30 2 * * *", "2026-11-09", "2026-11-08", "--to=2026-11-08 is before --from=2026-11-09"},
		{"in the future", "30 2 * * *", "2026-12-01", "", "--from=2026-12-01 is later than 2026-11-10T13:00:00+01:00, up to which everything is decided"},
		{"no time", "30 2 * * *", "monday", "", `--from="monday" is no time: write a day such as 2026-11-01`},
		{"no schedule", "30 25 * * *", "2026-11-01", "", "the ScheduledJob nightly has no nominal times: spec.schedule: hour \"25\""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			runs, err := Runs(nightly(tt.schedule), zone.Load, Range{tt.from, tt.to}, now)
			if err != nil {
				if !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v, want %s", err, tt.want)
				}
				return
			}
			var got []string
			for _, r := range runs {
				got = append(got, strings.TrimSpace(stamp(r.Nominal)+" "+r.Verdict))
			}
			if strings.Join(got, ", ") != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
	suspended := nightly("0 * * * *")
	suspended.Spec.Suspend = new(true)
	runs, err := Runs(suspended, zone.Load, Range{From: "2026-11-10T13:00"}, now)
	if err != nil || len(runs) != 4 || stamp(runs[3].Nominal) != "2026-11-10T16:00:00+01:00" {
		t.Errorf("of one that is suspended: %v, %v", runs, err)
	}
	fresh := nightly("30 2 * * *")
	fresh.Status = v1alpha1.ScheduledJobStatus{}
	if _, err := Runs(fresh, zone.Load, Range{From: "2026-11-01"}, now); err == nil || !strings.Contains(err.Error(), "has not been taken up by a reconciler yet") {
		t.Error(err)
	}
}

func job(name string, uid types.UID, how ...batchv1.JobConditionType) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid}}
	for _, c := range how {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: c, Status: corev1.ConditionTrue, Reason: "Because", Message: "of a test"})
	}
	return j
}

// TestTimesThatHaveRun: times with a verdict that a Job was made are left out, unless the user wants them again.
func TestTimesThatHaveRun(t *testing.T) {
	runs, err := Runs(nightly("30 2 * * *"), zone.Load, Range{From: "2026-11-08", To: "2026-11-10"}, now)
	if err != nil {
		t.Fatal(err)
	}
	for again, want := range map[bool]string{false: "3 nominal times: 0 complete, 1 had run, 2 waiting", true: "3 nominal times: 0 complete, 3 waiting"} {
		if w := New(runs, again); w.String() != want || w.Unknown() != 1 {
			t.Errorf("%v, %d unknown, want %s", w, w.Unknown(), want)
		}
	}
}

// TestWork plays some backfills: what happens to Jobs, and which Job comes next.
func TestWork(t *testing.T) {
	start := func(parallelism int, with func(*Work)) *Work {
		w := New([]Run{{Job: "a"}, {Job: "b"}, {Job: "c"}}, false)
		if w.Parallelism = parallelism; with != nil {
			with(w)
		}
		return w
	}
	next := func(w *Work) string {
		r, ok := w.Next()
		if !ok {
			return map[bool]string{true: "over", false: "wait"}[w.Over()]
		}
		w.Made(job(r.Job, types.UID("uid-"+r.Job)))
		return r.Job
	}
	end := func(name string, how batchv1.JobConditionType) func(*Work) {
		return func(w *Work) { w.Saw(job(name, types.UID("uid-"+name), how)) }
	}
	saw := func(name string, uid types.UID, how ...batchv1.JobConditionType) func(*Work) {
		return func(w *Work) { w.Saw(job(name, uid, how...)) }
	}
	gone := func(name string, uid types.UID, how ...batchv1.JobConditionType) func(*Work) {
		return func(w *Work) { w.Gone(job(name, uid, how...)) }
	}
	for _, tt := range []struct {
		name        string
		parallelism int
		with        func(*Work)
		happens     []func(*Work)
		asked       string // the next time before each event, and at the end
		summary     string
	}{
		{"one after another", 1, nil, []func(*Work){end("a", batchv1.JobComplete), end("b", batchv1.JobComplete), end("c", batchv1.JobComplete)},
			"a wait; b wait; c wait; over", "3 nominal times: 3 complete"},
		{"two at once", 2, nil, []func(*Work){end("b", batchv1.JobComplete), end("a", batchv1.JobComplete), end("c", batchv1.JobComplete)},
			"a b wait; c wait; wait; over", "3 nominal times: 3 complete"},
		{"a failure stops it, and what runs is waited for", 2, nil, []func(*Work){end("a", batchv1.JobFailed), end("b", batchv1.JobComplete)},
			"a b wait; wait; over", "3 nominal times: 1 complete, 1 failed, 1 waiting"},
		{"a failure does not stop it where it shall go on", 1, func(w *Work) { w.KeepGoing = true }, []func(*Work){end("a", batchv1.JobFailed), end("b", batchv1.JobComplete), end("c", batchv1.JobComplete)},
			"a wait; b wait; c wait; over", "3 nominal times: 2 complete, 1 failed"},
		{"what exists is left out", 1, func(w *Work) {
			w.Saw(job("a", "before", batchv1.JobFailed))
			w.Saw(job("b", "before", batchv1.JobComplete))
		}, []func(*Work){end("c", batchv1.JobComplete)},
			"c wait; over", "3 nominal times: 1 complete, 2 existed"},
		{"what exists and runs is one of those that run at once", 2, func(w *Work) { w.Saw(job("a", "before")); w.Saw(job("tick", "t")) },
			[]func(*Work){saw("a", "before", batchv1.JobComplete), end("b", batchv1.JobComplete), end("c", batchv1.JobComplete)},
			"b wait; c wait; wait; over", "3 nominal times: 2 complete, 1 existed"},
		{"alone it waits for others", 1, func(w *Work) { w.Alone = true; w.Saw(job("b", "runs")); w.Saw(job("tick", "t")) },
			[]func(*Work){saw("tick", "t", batchv1.JobComplete), gone("b", "runs"), end("a", batchv1.JobComplete), end("c", batchv1.JobComplete)},
			"wait; wait; a wait; c wait; over", "3 nominal times: 2 complete, 1 existed"},
		{"a Job that is deleted before its end has failed", 1, nil, []func(*Work){gone("a", "uid-a")},
			"a wait; over", "3 nominal times: 0 complete, 1 failed, 2 waiting"},
		{"one that the history limit deletes has ended as it was seen last", 1, nil, []func(*Work){gone("a", "uid-a", batchv1.JobComplete), end("b", batchv1.JobComplete), end("c", batchv1.JobComplete)},
			"a wait; b wait; c wait; over", "3 nominal times: 3 complete"},
		{"a namesake is another Job", 1, nil, []func(*Work){saw("a", "other", batchv1.JobFailed), gone("a", "other"), end("a", batchv1.JobComplete), end("b", batchv1.JobComplete), end("c", batchv1.JobComplete)},
			"a wait; wait; wait; b wait; c wait; over", "3 nominal times: 3 complete"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := start(tt.parallelism, tt.with)
			ask := func() string {
				var all []string
				for {
					all = append(all, next(w))
					if last := all[len(all)-1]; last == "wait" || last == "over" {
						return strings.Join(all, " ")
					}
				}
			}
			asked := []string{ask()}
			for _, happen := range tt.happens {
				happen(w)
				asked = append(asked, ask())
			}
			if got := strings.Join(asked, "; "); got != tt.asked {
				t.Errorf("%s, want %s", got, tt.asked)
			}
			if w.String() != tt.summary {
				t.Errorf("%s, want %s", w, tt.summary)
			}
		})
	}
}

// TestNoMessageMovesTheCursor: the text of a Job's status cannot add lines to the plugin's output.
func TestNoMessageMovesTheCursor(t *testing.T) {
	w := New([]Run{{Job: "a"}}, false)
	w.Made(job("a", "uid-a"))
	failed := job("a", "uid-a", batchv1.JobFailed)
	failed.Status.Conditions[0].Message = "all is well\x1b[1A\n1 nominal times: 1 complete"
	if line := w.Saw(failed); strings.ContainsAny(line, "\x1b\n") || !strings.Contains(line, "failed in") {
		t.Errorf("%q", line)
	}
}
