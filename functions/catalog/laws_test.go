package catalog_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/jobstream/jobstream/functions/catalog"
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/functions/fn/fntest"
	"github.com/jobstream/jobstream/functions/job"
	_ "github.com/jobstream/jobstream/internal/dev/replay"
	"github.com/jobstream/jobstream/internal/sim"
	"github.com/jobstream/jobstream/internal/sim/schedules"
	"github.com/jobstream/jobstream/internal/zone"
)

// TestLaws checks every function against the laws of functions/fn/fntest on the states and facts of random worlds: a law has to
// hold in states that a function really reaches. All laws are held against each decision, because living a world takes longer than that.
func TestLaws(t *testing.T) {
	for _, f := range catalog.All(job.DefaultLimits(), zone.Load) {
		hold(t, f.Name, f)
	}
	all := job.DefaultLimits()
	all.AnnouncePods = true
	hold(t, "job that announces Pods", fn.Register(job.New(all)))
}

func hold(t *testing.T, what string, f fn.Registered) {
	live, ok := worlds[catalog.Name(f.Name)]
	if !ok {
		t.Fatalf("no world has the function %s: add one to worlds", f.Name)
	}
	t.Run(what, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			seed := rapid.Uint64().Draw(t, "seed")
			if err := live(seed, fntest.Watch(f, every, func(err error) { t.Fatal(err) })); err != nil {
				t.Fatalf("world %d: %v", seed, err)
			}
		})
	})
}

// TestWorldsThatBrokeALaw lives those again that once did. In 1630 a worker has created a Pod again, and the failure of the first one is
// observed after that; in 5029 a user makes a Pod an orphan and deletes it, and that is observed before the Pod itself; in 886 a user gives
// a Pod that has ended the serial of another and makes it an orphan, and that it had ended is observed twice.
func TestWorldsThatBrokeALaw(t *testing.T) {
	for seed, announce := range map[uint64]bool{1630: true, 5029: true, 886: false} {
		l := job.DefaultLimits()
		l.AnnouncePods = announce
		f := fntest.Watch(fn.Register(job.New(l)), every, func(err error) { t.Errorf("world %d: %v", seed, err) })
		if err := worlds[catalog.Job](seed, f); err != nil {
			t.Errorf("world %d: %v", seed, err)
		}
	}
}

// every is all laws as one, whose error names the one that is broken.
var every = fntest.Law{Name: "every law", Check: func(f fn.Registered, d fntest.Decided) error {
	for _, law := range fntest.Laws {
		if err := law.Check(f, d); err != nil {
			return fmt.Errorf("%s: %w", law.Name, err)
		}
	}
	return nil
}}

// worlds are the simulated worlds of each function.
var worlds = map[catalog.Name]func(seed uint64, f fn.Registered) error{
	catalog.Job:          func(seed uint64, f fn.Registered) error { return sim.Live(sim.New(seed, f, sim.Rough, nil), nil) },
	catalog.ScheduledJob: func(seed uint64, f fn.Registered) error { return schedules.New(seed, f).Live(30) },
}
