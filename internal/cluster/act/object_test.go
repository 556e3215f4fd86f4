package act

import (
	"strings"
	"testing"

	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
)

// TestUnknownFunction: an Actor does not treat the objects of an unknown function as Jobs.
func TestUnknownFunction(t *testing.T) {
	w := newWorld(t)
	j, key := w.CreateJob("pi")
	for _, e := range []effect.Effect{effect.TakeInventory{ID: "i", Job: "pi"}, clustertest.CreateEffect(j, 0)} {
		key.Function = "workflow"
		if facts, err := w.actor.Act(t.Context(), key, e); err == nil || !strings.Contains(err.Error(), `no function "workflow"`) || len(facts) > 0 {
			t.Errorf("%s: %v, %v", e.Kind(), facts, err)
		}
		key.Function = "job"
		if _, err := w.actor.Act(t.Context(), key, e); err != nil {
			t.Errorf("%s of a Job: %v", e.Kind(), err)
		}
	}
}
