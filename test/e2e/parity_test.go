package e2e

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jobstream/jobstream/test/e2e/parity"
)

// Every Job of the table ends under jobstream as it ends under the built-in controller: same status, conditions and Events, same
// Pods down to their whole spec and their logs. The only differences are those of parity.Differences, and each of these shows.
func TestJobsEndAsUnderTheBuiltInController(t *testing.T) {
	t.Parallel()
	var seen parity.Seen
	var ended atomic.Int32
	own := len(slices.DeleteFunc(slices.Clone(parity.Cases), func(c parity.Case) bool { return c.Documented }))
	s := shared(t)
	t.Run("with", func(t *testing.T) {
		for _, c := range parity.Cases {
			t.Run(c.Title(), func(t *testing.T) {
				t.Parallel() // they mostly wait
				c.Run(t, s, &seen)
				ended.Add(1)
			})
		}
	})
	if missing := seen.Missing(); len(missing) > 0 && int(ended.Load()) >= own && !t.Failed() {
		t.Errorf("these differences are on record, and no case shows them: %v", missing)
	}
}

// Every manifest is used.
func TestEveryManifestIsOfACase(t *testing.T) {
	for _, file := range parity.Manifests() {
		if !slices.ContainsFunc(parity.Cases, func(c parity.Case) bool { return !c.Documented && c.File == file }) {
			t.Errorf("no case runs %s", file)
		}
	}
	for _, c := range parity.Cases {
		if c.Shows == "" || strings.ContainsAny(c.Title(), "/|") {
			t.Errorf("the case %q does not fit into a table", c.Title())
		}
	}
}
