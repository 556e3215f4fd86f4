package oracle_test

import (
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/sim/script"
	"github.com/jobstream/jobstream/test/oracle"
)

// TestScripts judges every status write in the transcripts of the Job function. Their texts are compared in functions/job; here
// only the writes matter. A script may show what the function does about a Job that no API server would accept, or about a
// status that no other controller could have written: such scripts are named here with the reason.
func TestScripts(t *testing.T) {
	writes := 0
	datadriven.Walk(t, "../../functions/job/testdata", func(t *testing.T, path string) {
		s := script.New()
		var now *datadriven.TestData
		s.Written = func(before, after events.Job) {
			writes++
			if err := oracle.Creatable(before); err != nil {
				t.Errorf("%s: no user can create this Job: %v", now.Pos, err)
			}
			if err := oracle.Verdict(before, after); err != nil {
				t.Errorf("%s: %v\non   %v\nwith %v", now.Pos, err, words(before), words(after))
			}
		}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			now = d
			s.Play(t, d)
			return d.Expected
		})
	})
	t.Logf("%d status writes judged", writes)
	if writes < 100 {
		t.Errorf("the scripts have only %d status writes", writes)
	}
}
