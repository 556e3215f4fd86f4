package job_test

import (
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/jobstream/jobstream/internal/sim/script"
)

// TestScripts runs the transcripts in testdata: one behaviour each. Rewrite them with
//
//	go test ./functions/job -run TestScripts -rewrite
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := script.New()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return s.Play(t, d)
		})
	})
}
