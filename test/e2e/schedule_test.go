package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/dev/size"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// A Job every second, while programs are killed and the bus is wiped: each second gets one Job, one verdict, and one run.
func TestEverySecondRunsOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		harm func(t *testing.T, s *harness.System, r *harness.Recorder, until time.Time)
	}{
		{"WhileProgramsAreKilled", killNowAndThen},
		{"WhileTheBusIsWipedTwice", wipeTwice},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := own(t, harness.Config{Triggers: 3, Reconcilers: 3})
			p, received := s.Space(t), s.Record(t)
			ran := filepath.Join(t.TempDir(), "ran")
			made := p.Schedule(harness.Every("tick", "* * * * * *", "echo $SCHEDULE $RUN >> "+ran, harness.KeepAll, catchUpAll))
			c.harm(t, s, received, time.Now().Add(size.ScheduleTime))
			startAll(t, s)
			p.Reschedule("tick", `{"suspend":true}`)
			end := p.AwaitSchedule("tick", time.Minute, "to be suspended, and its Jobs to have ended", func(j *v1alpha1.ScheduledJob) bool {
				return meta.IsStatusConditionTrue(j.Status.Conditions, v1alpha1.SuspendedCondition) && len(j.Status.Active) == 0 && j.Status.LastScheduleTime != nil
			})
			checkEachSecond(t, p, made, end, received, ran)
		})
	}
}

func catchUpAll(s *v1alpha1.ScheduledJobSpec) { s.CatchUp = v1alpha1.CatchUpAll }

// killNowAndThen kills one of the programs every ten seconds, and restarts it.
func killNowAndThen(t *testing.T, s *harness.System, _ *harness.Recorder, until time.Time) {
	t.Helper()
	all := append(slices.Clone(s.Triggers), s.Reconcilers...)
	for time.Now().Before(until) {
		harness.Pass(t, 8*time.Second)
		victim := all[rand.IntN(len(all))]
		if err := victim.Kill(); err != nil {
			t.Fatal(err)
		}
		harness.Pass(t, 2*time.Second)
		startAll(t, s)
	}
}

func wipeTwice(t *testing.T, s *harness.System, r *harness.Recorder, until time.Time) {
	t.Helper()
	third := time.Until(until) / 3
	for range 2 {
		harness.Pass(t, third)
		r.Ticks(t) // the wipe deletes what the stream holds
		replaceBus(t, s, 0)
	}
	harness.Pass(t, time.Until(until))
}

// checkEachSecond compares the cluster, the bus and the node with the clock.
func checkEachSecond(t *testing.T, p *harness.Space, made, end *v1alpha1.ScheduledJob, received *harness.Recorder, ran string) {
	t.Helper()
	runs := p.Runs(made.UID)
	verdicts := map[string][]events.TickDecided{}
	harness.Until(t, timeout, "all verdicts to be on the bus", func(context.Context) error {
		clear(verdicts)
		for _, v := range received.Ticks(t) {
			if v.ScheduledJob.UID == made.UID && v.Verdict == events.Started {
				at := v.Nominal.UTC().Format(time.RFC3339)
				verdicts[at] = append(verdicts[at], v)
			}
		}
		if len(verdicts) < len(runs) {
			return fmt.Errorf("%d Jobs, %d verdicts", len(runs), len(verdicts))
		}
		return nil
	})
	seconds := 0
	for at := made.CreationTimestamp.Add(time.Second); !at.After(end.Status.LastScheduleTime.Time); at = at.Add(time.Second) {
		key := at.UTC().Format(time.RFC3339)
		seconds++
		if len(runs[key]) != 1 || len(verdicts[key]) != 1 {
			t.Errorf("%s: %d Jobs, %d verdicts", key, len(runs[key]), len(verdicts[key]))
		}
	}
	if st := end.Status; len(runs) != seconds || int(st.Successful) != seconds || st.Failed != 0 || st.Missed != 0 {
		t.Errorf("%d seconds, %d Jobs: successful=%d failed=%d missed=%d", seconds, len(runs), st.Successful, st.Failed, st.Missed)
	}
	text, err := os.ReadFile(ran)
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]int{}
	for line := range strings.Lines(string(text)) {
		told[strings.TrimSpace(line)]++
	}
	for at := range runs {
		if told["tick "+at] != 1 {
			t.Errorf("the container of %s has run %d times", at, told["tick "+at])
		}
	}
	if len(told) != len(runs) {
		t.Errorf("%d Jobs, and containers for %v", len(runs), slices.Sorted(maps.Keys(told)))
	}
	t.Logf("%d seconds, %d Jobs, %d verdicts, %d runs", seconds, len(runs), len(verdicts), len(told))
}

// A clock that is set back an hour creates nothing twice. Decisions by the wrong time stay.
func TestClockSetBackRunsNothingTwice(t *testing.T) {
	t.Parallel()
	s := own(t, harness.Config{Flags: []string{"--clock-offset=1h"}})
	p := s.Space(t)
	made := p.Schedule(harness.Every("tick", "* * * * * *", "true", harness.KeepAll))
	p.AwaitSchedule("tick", time.Minute, "to have created three Jobs", func(j *v1alpha1.ScheduledJob) bool { return j.Status.Successful >= 3 })
	for _, program := range append(slices.Clone(s.Triggers), s.Reconcilers...) {
		if err := program.Kill(); err != nil {
			t.Fatal(err)
		}
		program.Args = slices.DeleteFunc(program.Args, func(a string) bool { return strings.HasPrefix(a, "--clock-offset") })
	}
	startAll(t, s)
	// What was intended before may be created now; then nothing is due for an hour.
	settled := p.AwaitSchedule("tick", time.Minute, "to have no active Jobs", func(j *v1alpha1.ScheduledJob) bool { return len(j.Status.Active) == 0 })
	before := len(p.Runs(made.UID))
	harness.Holds(t, 5*time.Second, "no Job to be created", func(context.Context) error {
		if n := len(p.Runs(made.UID)); n > before+1 {
			return fmt.Errorf("%d, then %d", before, n)
		}
		return nil
	})
	for at, jobs := range p.Runs(made.UID) {
		if len(jobs) != 1 {
			t.Errorf("%s: %d Jobs", at, len(jobs))
		}
	}
	if now := p.Scheduled("tick"); now.Status.DecidedUntil.Before(settled.Status.DecidedUntil) {
		t.Errorf("decidedUntil went back from %v to %v", settled.Status.DecidedUntil, now.Status.DecidedUntil)
	}
}

// A schedule that can never fire stalls, and reports why where users look; the others continue.
func TestScheduleThatCannotWorkStallsAlone(t *testing.T) {
	t.Parallel()
	p := shared(t).Space(t)
	p.Schedule(harness.Every("never", "0 0 30 2 *", "true"))
	p.Schedule(harness.Every("always", "* * * * * *", "true", func(s *v1alpha1.ScheduledJobSpec) { s.SuccessfulJobsHistoryLimit = ptr.To[int32](1) }))
	stalled := p.AwaitSchedule("never", time.Minute, "to be stalled", func(j *v1alpha1.ScheduledJob) bool {
		return meta.IsStatusConditionTrue(j.Status.Conditions, v1alpha1.StalledCondition)
	})
	if c := meta.FindStatusCondition(stalled.Status.Conditions, v1alpha1.StalledCondition); c.Reason != v1alpha1.ReasonInvalidSchedule || !strings.Contains(c.Message, "schedule") {
		t.Errorf("it is stalled by %s: %s", c.Reason, c.Message)
	}
	harness.Until(t, timeout, "an Event about it", func(context.Context) error {
		text := p.DescribeKind("scheduledjob", "never")
		_, told, _ := strings.Cut(text, "\nEvents:")
		if !hasAll(told, []string{"Warning", v1alpha1.ReasonInvalidSchedule}) {
			return fmt.Errorf("it shows:\n%s", text)
		}
		return nil
	})
	p.AwaitSchedule("always", time.Minute, "to go on", func(j *v1alpha1.ScheduledJob) bool { return j.Status.Successful >= 5 })
}
