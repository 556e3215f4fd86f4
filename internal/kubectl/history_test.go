package kubectl

import (
	"net/http"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/functions/scheduledjob"
)

// theLastTen is where a history without NATS comes from.
const theLastTen = "note: the last ten verdicts, and the Jobs that still exist; with --nats-url, all that the stream holds\n"

// withHistory creates a ScheduledJob with a verdict on each of the last five hours: complete, failed and deleted since, skipped, complete with
// a Job that exists, active.
func (w *world) withHistory(now time.Time) *v1alpha1.ScheduledJob {
	w.Helper()
	sj := w.newScheduled("hourly", func(s *v1alpha1.ScheduledJob) { s.Spec.Schedule, s.Spec.TimeZone = "0 * * * *", ptr.To("Asia/Tokyo") })
	at := func(hour int) metav1.Time {
		return metav1.NewTime(now.Truncate(time.Hour).Add(time.Duration(hour-5) * time.Hour))
	}
	started := func(hour int) v1alpha1.TickVerdict {
		return v1alpha1.TickVerdict{Time: at(hour), Count: 1, Verdict: "Started", JobName: scheduledjob.JobName(sj, at(hour).Time)}
	}
	recent := []v1alpha1.TickVerdict{started(1), started(2), {Time: at(3), Count: 1, Verdict: "Skipped", Reason: "Overlap", Message: "an earlier Job was running"}, started(4), started(5)}
	for i, how := range map[int]string{0: "Complete", 1: "Failed"} {
		recent[i].JobUID, recent[i].Result, recent[i].CompletionTime = "gone", how, ptr.To(metav1.NewTime(recent[i].Time.Add(time.Minute)))
	}
	recent[1].JobUID = "gone, too"
	for _, i := range []int{3, 4} {
		j := ofRun(scheduledjob.BuildJob(sj, recent[i].Time.Time, v1alpha1.DefaultManagedBy, time.UTC))
		made, err := w.BatchV1().Jobs(w.ns).Create(w.Context(), j, metav1.CreateOptions{})
		if err != nil {
			w.Fatal(err)
		}
		recent[i].JobUID = made.UID
	}
	w.end(recent[3].JobName, batchv1.JobSuccessCriteriaMet, batchv1.JobComplete)
	w.setStatus("hourly", v1alpha1.ScheduledJobStatus{ObservedGeneration: 1, Recent: recent})
	return sj
}

// TestHistory: the status and the Jobs that exist, together.
func TestHistory(t *testing.T) {
	w := newWorld(t)
	now := time.Now()
	w.withHistory(now)
	tokyo, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	at := func(hour int) string {
		return now.Truncate(time.Hour).Add(time.Duration(hour-5) * time.Hour).In(tokyo).Format("2006-01-02 15:04")
	}
	for _, tt := range []struct {
		args string
		want []string // the beginnings of the lines, with one blank between the cells
	}{
		{"hourly", []string{"hourly: 5 times since " + at(1) + " (Asia/Tokyo)", "", at(1) + " #x.#+", "# 2 complete x 1 failed + 1 active . 1 skipped", "",
			"TIME VERDICT RESULT DURATION JOB REASON", at(1) + " Started Complete hourly-", at(2) + " Started Failed hourly-", at(3) + " Skipped (Overlap) an earlier Job was running",
			at(4) + " Started Complete 0s hourly-", at(5) + " Started Waiting hourly-"}},
		{"scheduledjob/hourly --failed", []string{"hourly: 1 time since " + at(2) + " (Asia/Tokyo)", "", at(2) + " x", "x 1 failed", "", "TIME VERDICT", at(2) + " Started Failed hourly-"}},
		{"hourly --since=2h -o wide", []string{"hourly: 2 times since " + at(4), "", at(4) + " #+", "# 1 complete + 1 active", "", "TIME VERDICT", at(4), at(5)}},
	} {
		var requests []string
		got := call(t, "", append([]string{"history"}, strings.Fields(tt.args)...), w.here, paged(&requests))
		lines := strings.Split(strings.TrimSuffix(squeezed(got.out), "\n"), "\n")
		ok := got.code == 0 && got.err == theLastTen && len(lines) == len(tt.want)
		for i := 0; ok && i < len(lines); i++ {
			ok = strings.HasPrefix(strings.TrimSpace(lines[i]), tt.want[i])
		}
		if !ok {
			t.Errorf("%q: want\n%s\ngot %s", tt.args, strings.Join(tt.want, "\n"), got)
		}
		if all := strings.Join(requests, ", "); all != "GET hourly limit=, GET jobs limit=500" {
			t.Errorf("%q: it has asked for %s", tt.args, all)
		}
	}
	if got := w.call("history", "hourly", "-o", "jsonpath={range .items[*]}{.verdict}/{.job.result} {end}"); got.code != 0 || got.out != "Started/Complete Started/Failed Skipped/ Started/Complete Started/ " {
		t.Errorf("got %s", got)
	}
	if got := w.call("history", "hourly", "--failed", "--since=1m"); got.code != 0 || got.out != "" || !strings.Contains(got.err, "5 verdicts are known, and none of them is what the flags ask for: leave out --failed or --since\n") {
		t.Errorf("got %s", got)
	}
}

// TestHistoryWithGaps: what is missing is named, and the rest is shown.
func TestHistoryWithGaps(t *testing.T) {
	w := newWorld(t)
	w.withHistory(time.Now())
	w.newScheduled("fresh", nil)
	if got := w.call("history", "fresh"); got.code != 0 || got.out != "" || !strings.HasPrefix(got.err, `no time of the ScheduledJob fresh has a verdict yet: "kubectl jobstream next fresh" shows when it is due`+"\n") {
		t.Errorf("got %s", got)
	}
	if got := w.call("history", "fresh", "-o", "json"); got.code != 0 || shape(t, got.out) != "" {
		t.Errorf("got %s", got)
	}
	if got := w.call("history", "nowhere"); got.code != ExitFailed || !strings.HasPrefix(got.err, "error: there is no ScheduledJob nowhere in the namespace "+w.ns+": -n chooses another") {
		t.Errorf("got %s", got)
	}
	forbidden := onTheWay(func(q *http.Request) {
		if strings.HasSuffix(q.URL.Path, "/jobs") {
			q.Header.Set("Impersonate-User", "guest")
		}
	})
	got := call(t, "", []string{"history", "hourly"}, w.here, forbidden)
	if got.code != 0 || !strings.Contains(got.out, " #x.#+") && !strings.Contains(got.out, " #x.??") || !strings.HasPrefix(got.err, "warning: durations and reasons are missing: cannot list the Jobs: ") {
		t.Errorf("got %s", got)
	}
	vanishes := onTheWay(func(q *http.Request) { // the user deletes the ScheduledJob between the two requests
		if strings.HasSuffix(q.URL.Path, "/jobs") {
			if err := w.schedules().rest.Delete().Namespace(w.ns).Resource(v1alpha1.ScheduledJobResource).Name("hourly").Do(t.Context()).Error(); err != nil {
				t.Error(err)
			}
		}
	})
	if got := call(t, "", []string{"history", "hourly"}, w.here, vanishes); got.code != 0 || !strings.Contains(got.out, "hourly: 5 times since ") {
		t.Errorf("got %s", got)
	}
}
