package catalog_test

import (
	"slices"
	"testing"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/catalog"
	"github.com/jobstream/jobstream/functions/job"
	"github.com/jobstream/jobstream/internal/zone"
)

// TestFactsCanBeRead: a fact that the bus cannot decode would cause an inventory, each time.
func TestFactsCanBeRead(t *testing.T) {
	for _, f := range catalog.All(job.DefaultLimits(), zone.Load) {
		for _, wakes := range f.Wakes {
			if !slices.ContainsFunc(events.Facts(), func(e events.Event) bool { return e.Type() == wakes }) {
				t.Errorf("%s wants %s, which events/codec.go does not decode", f.Name, wakes)
			}
		}
	}
}

// TestNames: adapters look up by its name what belongs to a function.
func TestNames(t *testing.T) {
	names := catalog.Names()
	for i, f := range catalog.All(job.DefaultLimits(), zone.Load) {
		if i >= len(names) || names[i] != catalog.Name(f.Name) {
			t.Errorf("function %d is %s, and names are %v", i, f.Name, names)
		}
	}
}
