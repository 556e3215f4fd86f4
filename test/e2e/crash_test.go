package e2e

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/internal/dev/size"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

const (
	// absence is how long a killed program is away: long enough for every other program to notice.
	absence = 5 * time.Second
	// crashParallelism is that of the large runs.
	crashParallelism = 100
)

// eachMode runs the test for both kinds of Jobs.
func eachMode(t *testing.T, test func(t *testing.T, indexed bool)) {
	for _, indexed := range []bool{false, true} {
		name := "NonIndexed"
		if indexed {
			name = "Indexed"
		}
		t.Run(name, func(t *testing.T) { test(t, indexed) })
	}
}

// awaitMiddle waits until some of the Pods have succeeded: a different number each time, and long before the last.
func (b *batch) awaitMiddle() {
	b.Helper()
	b.awaitDone(b.completions/10 + rand.IntN(b.completions/2))
}

// killInTheMiddle kills a program in the middle of a run and starts it again five seconds later. On a busy machine the middle may be
// seen too late; then there is another run.
func killInTheMiddle(t *testing.T, s *harness.System, p *harness.Process, indexed bool) {
	for range 3 {
		b := startBatch(t, s, size.CrashCompletions, crashParallelism, indexed)
		b.awaitMiddle()
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s killed when the Job was %s", p.Name, harness.Brief(b.Job(b.job.Name).Status))
		harness.Pass(t, absence)
		inTime := b.runs()
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		b.finish(t)
		if inTime {
			return
		}
	}
	t.Fatalf("each run was over before %s came back: they prove nothing", p.Name)
}

func TestKilledReconcilerMiscountsNothing(t *testing.T) {
	t.Parallel()
	s := own(t, harness.Config{})
	eachMode(t, func(t *testing.T, indexed bool) {
		killInTheMiddle(t, s, s.Reconcilers[0], indexed)
	})
}

func TestKilledTriggerMiscountsNothing(t *testing.T) {
	t.Parallel()
	s := own(t, harness.Config{})
	eachMode(t, func(t *testing.T, indexed bool) {
		killInTheMiddle(t, s, s.Triggers[0], indexed)
	})
}

// The bus is killed, all its data is deleted, and an empty one replaces it, while the trigger and the reconciler keep running:
// they must learn from the cluster again what was lost. It happens twice in one run: once at once, before any program has
// noticed, and once with five seconds without a bus.
func TestBusReplacedByAnEmptyOneMiscountsNothing(t *testing.T) {
	t.Parallel()
	s := own(t, harness.Config{})
	eachMode(t, func(t *testing.T, indexed bool) {
		b := startBatch(t, s, size.CrashCompletions, crashParallelism, indexed)
		hit := 0
		for i, away := range []time.Duration{0, absence} {
			b.awaitDone(b.completions/10 + i*b.completions/3 + rand.IntN(b.completions/4))
			if b.runs() {
				hit++
			}
			replaceBus(t, s, away)
			t.Logf("bus replaced, away for %v, by an empty one when the Job was %s", away, harness.Brief(b.Job(b.job.Name).Status))
		}
		if hit == 0 {
			t.Error("the Job had ended before: this run proves nothing")
		}
		b.finish(t)
		for _, p := range append(s.Triggers, s.Reconcilers...) {
			if !p.Running() {
				t.Errorf("%s did not survive: %s", p.Name, harness.Tail(p.Printed(), 5))
			}
		}
		if log := s.Triggers[0].Printed(); !strings.Contains(log, "was lost and stands again") {
			t.Error("the trigger has not noticed: was the bus replaced at all?")
		}
	})
}

func replaceBus(t *testing.T, s *harness.System, away time.Duration) {
	t.Helper()
	if err := s.NATS.Wipe(); err != nil {
		t.Fatal(err)
	}
	harness.Pass(t, away)
	if err := s.NATS.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// All of jobstream is lost at once, and starts again from what the cluster has.
func TestEverythingLostAtOnceMiscountsNothing(t *testing.T) {
	t.Parallel()
	s := own(t, harness.Config{})
	eachMode(t, func(t *testing.T, indexed bool) {
		b := startBatch(t, s, size.CrashCompletions, crashParallelism, indexed)
		b.awaitMiddle()
		for _, p := range append(s.Triggers, s.Reconcilers...) {
			if err := p.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		replaceBus(t, s, 0)
		startAll(t, s)
		b.finish(t)
	})
}

// startAll starts the programs that do not run.
func startAll(t *testing.T, s *harness.System) {
	t.Helper()
	for _, p := range append(s.Triggers, s.Reconcilers...) {
		if p.Running() {
			continue
		}
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		if err := harness.Ready(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
}

// The API server dies in the middle of a run, and comes back five seconds later.
func TestKilledAPIServerMiscountsNothing(t *testing.T) {
	t.Parallel()
	s := own(t, harness.Config{})
	eachMode(t, func(t *testing.T, indexed bool) {
		b := startBatch(t, s, size.CrashCompletions, crashParallelism, indexed)
		b.awaitMiddle()
		if err := s.ControlPlane.StopAPIServer(); err != nil {
			t.Fatal(err)
		}
		harness.Pass(t, absence)
		if err := s.ControlPlane.StartAPIServer(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.finish(t)
	})
}

// Two of each work at the same time. One of each is killed for good.
func TestTwoOfEachAndOneOfEachKilled(t *testing.T) {
	t.Parallel()
	s := own(t, harness.Config{Triggers: 2, Reconcilers: 2})
	eachMode(t, func(t *testing.T, indexed bool) {
		startAll(t, s) // those that the previous mode has killed
		b := startBatch(t, s, size.CrashCompletions/2, crashParallelism/2, indexed)
		b.awaitMiddle()
		for _, p := range []*harness.Process{s.Reconcilers[0], s.Triggers[0]} {
			if err := p.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		b.finish(t)
	})
}

// Two of each work at the same time. One of each is frozen, declared dead by the others, and continues later with its old state.
func TestFrozenProgramsThatWakeUpLateMiscountNothing(t *testing.T) {
	t.Parallel()
	s := own(t, harness.Config{Triggers: 2, Reconcilers: 2})
	eachMode(t, func(t *testing.T, indexed bool) {
		b := startBatch(t, s, size.CrashCompletions, crashParallelism, indexed)
		frozen := []*harness.Process{s.Reconcilers[0], s.Triggers[0]}
		hit := 0
		for i := range 2 {
			b.awaitDone(b.completions/10 + i*b.completions/3 + rand.IntN(b.completions/4))
			for _, p := range frozen {
				if err := p.Freeze(); err != nil {
					t.Fatal(err)
				}
			}
			if b.runs() {
				hit++
			}
			harness.Pass(t, absence)
			for _, p := range frozen {
				if err := p.Thaw(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if hit == 0 {
			t.Error("the Job had ended before: this run proves nothing")
		}
		b.finish(t)
	})
}

// A Job that waits for its backoff while all of jobstream is lost is not forgotten, although no event of its own would wake a
// program. Nor does it start early.
func TestBackoffOutlivesTheReconcilerAndTheBus(t *testing.T) {
	t.Parallel()
	s := own(t, harness.Config{})
	for _, lose := range []struct {
		name string
		what func(t *testing.T)
	}{
		{"Reconciler", func(t *testing.T) {
			if err := s.Reconcilers[0].Kill(); err != nil {
				t.Fatal(err)
			}
			startAll(t, s)
		}},
		{"Bus", func(t *testing.T) { replaceBus(t, s, 0) }},
		{"Both", func(t *testing.T) {
			if err := s.Reconcilers[0].Kill(); err != nil {
				t.Fatal(err)
			}
			replaceBus(t, s, 0)
			startAll(t, s)
		}},
	} {
		t.Run(lose.name, func(t *testing.T) {
			p, ledger := s.Space(t), harness.NewLedger(t)
			firstFails := `mkdir '` + t.TempDir() + `/once' 2>/dev/null && code=1`
			p.Apply(harness.Shell("patient", ledger.Script("0", firstFails), harness.Size(1, 1, 6)))
			p.Await("patient", time.Minute, "to have failed once", func(j *batchv1.Job) bool { return j.Status.Failed == 1 })
			lose.what(t)
			end := p.AwaitEnd("patient", batchv1.JobComplete, time.Minute)
			if sum := ledger.Read(t); sum.Succeeded != 1 || sum.Failed != 1 || end.Status.Succeeded != 1 || end.Status.Failed != 1 {
				t.Errorf("%v: %s", sum.Codes, harness.Brief(end.Status))
			}
			backedOff(t, p.Pods("patient"))
			awaitHeldNone(t, p)
		})
	}
}
