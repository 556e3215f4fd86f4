package show

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

var ticker = events.Reference{Name: "ticker", UID: "ticker"}

// tick returns the verdict on the nominal time that many seconds after the story began; a Started one has a Job.
func tick(second int, verdict events.Verdict, reason string) events.TickDecided {
	e := events.TickDecided{ScheduledJob: ticker, Verdict: verdict, Reason: reason, Nominal: at(1000 * second), Count: 1}
	if verdict == events.Started {
		e.Job = &events.Reference{Name: runName(second)}
	}
	return e
}

func runName(second int) string { return "ticker-" + at(1000*second).Format("05") }

// scheduled returns a stage with a ScheduledJob that fires every three seconds.
func scheduled(t *testing.T) *stage {
	t.Helper()
	s := newStage()
	o := &v1alpha1.ScheduledJob{ObjectMeta: metav1.ObjectMeta{Name: ticker.Name, UID: ticker.UID, CreationTimestamp: metav1.Time{Time: began}},
		Spec: v1alpha1.ScheduledJobSpec{Schedule: "*/3 * * * * *", ConcurrencyPolicy: v1alpha1.ForbidConcurrent}}
	moments, err := s.Scheduled(o, began)
	if err != nil {
		t.Fatal(err)
	}
	s.tell(moments)
	return s
}

// ran records a Job for that second, and its JobFinish.
func (s *stage) ran(second int) {
	uid := types.UID(runName(second))
	s.job(1000*second+20, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: runName(second), UID: uid,
		OwnerReferences: []metav1.OwnerReference{{Kind: v1alpha1.ScheduledJobKind, Name: ticker.Name, Controller: ptr.To(true)}}}})
	s.tell(s.Received(events.JobFinished{Job: events.Reference{Name: runName(second), UID: uid}, Result: events.JobSucceeded, Succeeded: 1, DurationSeconds: 4,
		End: at(1000*second + 4000), Owner: &events.RunOwner{ScheduledJob: ticker}}, at(1000*second+4030)))
}

func (s *stage) verdicts(verdicts ...events.TickDecided) {
	for _, v := range verdicts {
		s.tell(s.Received(v, v.Nominal.Add(50*time.Millisecond)))
	}
}

// suspend records the ScheduledJob as suspended, with that many active Jobs.
func (s *stage) suspend(active int) {
	o := &v1alpha1.ScheduledJob{Status: v1alpha1.ScheduledJobStatus{Active: make([]corev1.ObjectReference, active)}}
	o.Status.Conditions = []metav1.Condition{{Type: v1alpha1.SuspendedCondition, Status: metav1.ConditionTrue}}
	s.SawSchedule(o)
}

func TestScheduleIsReported(t *testing.T) {
	s := scheduled(t)
	s.verdicts(tick(3, events.Started, ""), tick(6, events.Skipped, "Overlap"))
	s.ran(3)
	missed := tick(9, events.Missed, "Superseded")
	missed.Until, missed.Count = at(12000), 2
	s.verdicts(missed, tick(15, events.Started, ""))
	s.suspend(1)
	if s.Schedule.Over() {
		t.Error("over while a Job is active")
	}
	s.suspend(0)
	if s.Schedule.Over() {
		t.Error("over before the Job of a verdict was seen")
	}
	s.ran(15)
	if !s.Schedule.Over() || !s.AsExpected() {
		t.Error("not over, or not as expected")
	}
	s.expect(t,
		"0.000s  ticker      applied: */3 * * * * *, Forbid",
		"3.050s  ticker      12:00:03: Started: Job ticker-03",
		"6.050s  ticker      12:00:06: Skipped (Overlap)",
		"7.030s  subscriber  JobFinish of ticker-03: Succeeded, 1 succeeded, 0 failed, 4 s",
		"9.050s  ticker      12:00:09 to 12:00:12, 2 times: Missed (Superseded)",
		"15.050s  ticker      12:00:15: Started: Job ticker-15",
		"19.030s  subscriber  JobFinish of ticker-15: Succeeded, 1 succeeded, 0 failed, 4 s",
	)
	expectLines(t, s.Schedule.Summary(),
		"ScheduledJob ticker, */3 * * * * *:",
		"  verdicts     5: 2 Missed (Superseded), 1 Skipped (Overlap), 2 Started",
		"  runs         2 Jobs made, 2 JobFinish received",
		"  exact        yes: each nominal time since it was applied has one verdict, and each that started one Job",
	)
}

func TestVerdictsThatAreNotExact(t *testing.T) {
	wide := tick(3, events.Missed, "Deadline")
	wide.Until, wide.Count = at(9000), 2
	for _, tt := range []struct {
		name     string
		verdicts []events.TickDecided
		runs     []int
		want     string
	}{
		{"the first is missing", []events.TickDecided{tick(6, events.Skipped, "Overlap")}, nil, "Skipped(Overlap) 2026-11-21T12:00:06Z came where 2026-11-21T12:00:03Z was expected"},
		{"one in between is missing", []events.TickDecided{tick(3, events.Skipped, "Overlap"), tick(9, events.Skipped, "Overlap")}, nil, "Skipped(Overlap) 2026-11-21T12:00:09Z came where 2026-11-21T12:00:06Z was expected"},
		{"a range that counts too few", []events.TickDecided{wide}, nil, "2 times came where 2026-11-21T12:00:03Z was expected"},
		{"started without a Job", []events.TickDecided{tick(3, events.Started, "")}, nil, "1 nominal times started, but 0 Jobs were made, and 0 JobFinish received"},
		{"a Job without a verdict", []events.TickDecided{tick(3, events.Started, "")}, []int{3, 6}, "1 nominal times started, but 2 Jobs were made, and 2 JobFinish received"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := scheduled(t)
			s.verdicts(tt.verdicts...)
			for _, second := range tt.runs {
				s.ran(second)
			}
			if text := strings.Join(s.Schedule.Summary(), "\n"); !strings.Contains(text, "  NOT EXACT    ") || !strings.Contains(text, tt.want) || strings.Contains(text, "yes:") {
				t.Errorf("the summary says:\n%s\nwant: %s", text, tt.want)
			}
			if s.AsExpected() {
				t.Error("that is as expected")
			}
		})
	}
}
