package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

const (
	// absence is how long a killed program is away: long enough that everybody notices.
	absence = 5 * time.Second
	// crashParallelism is that of the large runs.
	crashParallelism = 100
)

// crashCompletions is the size of a run that something breaks in: what is under way at the moment of the crash, which
// parallelism bounds, is what may be miscounted, so a shorter run shows as much.
func crashCompletions() int {
	if long() {
		return 1000
	}
	return 400
}

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

// killInTheMiddle kills a program in the middle of a run and starts it again five seconds later.
func killInTheMiddle(t *testing.T, s *harness.System, p *harness.Process, indexed bool) {
	b := startBatch(t, s, crashCompletions(), crashParallelism, indexed)
	b.awaitDone(crashCompletions() / 4)
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s killed when the Job was %s", p.Name, harness.Brief(b.Job(b.job.Name).Status))
	harness.Pass(t, absence)
	if at := b.Job(b.job.Name); int(at.Status.Succeeded) >= b.completions {
		t.Fatalf("the run was over before %s came back: %s", p.Name, harness.Brief(at.Status))
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	b.finish(t)
}

func TestKilledReconcilerMiscountsNothing(t *testing.T) {
	eachMode(t, func(t *testing.T, indexed bool) {
		s := shared(t)
		killInTheMiddle(t, s, s.Reconcilers[0], indexed)
	})
}

func TestKilledTriggerMiscountsNothing(t *testing.T) {
	eachMode(t, func(t *testing.T, indexed bool) {
		s := shared(t)
		killInTheMiddle(t, s, s.Triggers[0], indexed)
	})
}

// The bus is killed, all its data deleted, and an empty one put in its place, while the trigger and the reconciler run
// on: what was known there has to be learnt from the cluster again.
func TestBusReplacedByAnEmptyOneMiscountsNothing(t *testing.T) {
	s := own(t, harness.Config{})
	eachMode(t, func(t *testing.T, indexed bool) {
		b := startBatch(t, s, crashCompletions(), crashParallelism, indexed)
		b.awaitDone(crashCompletions() / 4)
		if err := s.NATS.Wipe(); err != nil {
			t.Fatal(err)
		}
		t.Logf("bus wiped when the Job was %s", harness.Brief(b.Job(b.job.Name).Status))
		if err := s.NATS.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.finish(t)
		for _, p := range append(s.Triggers, s.Reconcilers...) {
			if !p.Running() {
				t.Errorf("%s did not survive: %s", p.Name, harness.Tail(p.Printed(), 5))
			}
		}
		if log := s.Triggers[0].Printed(); !strings.Contains(log, "was lost and stands again") {
			t.Error("the trigger has not noticed: was the bus wiped at all?")
		}
	})
}

// Two of each work at once; one of each is killed for good.
func TestTwoOfEachAndOneOfEachKilled(t *testing.T) {
	s := own(t, harness.Config{Triggers: 2, Reconcilers: 2})
	eachMode(t, func(t *testing.T, indexed bool) {
		const completions = 200
		for _, p := range append(s.Triggers, s.Reconcilers...) {
			if p.Running() {
				continue
			}
			if err := p.Start(); err != nil { // what the first mode has killed
				t.Fatal(err)
			}
			if err := harness.Ready(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		b := startBatch(t, s, completions, 50, indexed)
		b.awaitDone(completions / 4)
		for _, p := range []*harness.Process{s.Reconcilers[0], s.Triggers[0]} {
			if err := p.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		b.finish(t)
	})
}
