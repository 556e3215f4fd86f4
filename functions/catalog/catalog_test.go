package catalog_test

import (
	"testing"

	"github.com/jobstream/jobstream/functions/catalog"
	"github.com/jobstream/jobstream/functions/job"
	"github.com/jobstream/jobstream/internal/zone"
)

// TestNames: adapters find what belongs to a function by its name.
func TestNames(t *testing.T) {
	names := catalog.Names()
	for i, f := range catalog.All(job.DefaultLimits(), zone.Load) {
		if i >= len(names) || names[i] != catalog.Name(f.Name) {
			t.Errorf("function %d is %s, and names are %v", i, f.Name, names)
		}
	}
}
