package catalog_test

import (
	"errors"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/catalog"
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/functions/job"
	"github.com/jobstream/jobstream/internal/zone"
)

// Whatever stands in the state bucket: it is refused, left to a newer version, or is a state from which every function decides. What
// it decides on is a state again.
func FuzzState(f *testing.F) {
	all := catalog.All(job.DefaultLimits(), zone.Load)
	now := time.Unix(1_800_000_000, 0).UTC()
	batch := []events.Event{
		events.JobObserved{Job: events.Job{Namespace: "shop", Name: "pi", UID: "uid-1", Version: 5, Parallelism: 2}},
		events.ScheduledJobObserved{ScheduledJob: events.ScheduledJob{Namespace: "shop", Name: "nightly", UID: "uid-1", Version: 5, Schedule: "* * * * *"}},
		events.TimerFired{Name: "wake", At: now},
	}
	for _, function := range all {
		var state []byte
		for _, e := range batch {
			d, err := function.Decide(state, []events.Event{e}, now)
			if err != nil {
				f.Fatal(err)
			}
			state = d.State
			f.Add(state)
		}
		newer, err := cbor.Marshal([]any{function.Version + 1, nil})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(newer)
	}
	f.Add([]byte{0x82, 0x10, 0x9f})
	f.Fuzz(func(t *testing.T, state []byte) {
		for _, function := range all {
			if err := function.Valid(state); err != nil {
				if _, again := function.Decide(state, batch, now); again == nil || errors.As(err, new(fn.ErrNewer)) != errors.As(again, new(fn.ErrNewer)) {
					t.Errorf("%s: the state is not valid (%v), and decided on: %v", function.Name, err, again)
				}
				continue
			}
			d, err := function.Decide(state, batch, now)
			if err != nil {
				t.Errorf("%s: a valid state: %v", function.Name, err)
			} else if err := function.Valid(d.State); err != nil {
				t.Errorf("%s decides on a state that is not valid: %v", function.Name, err)
			}
		}
	})
}
