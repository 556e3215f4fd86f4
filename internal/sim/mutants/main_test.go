package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestBugsFitTheCode: a bug that no longer fits must be brought up to date, not forgotten.
func TestBugsFitTheCode(t *testing.T) {
	for _, m := range slices.Concat(ofTracking, ofFeatures, ofAnnouncements, ofPartitions, ofSchedules, mistakes) {
		source, err := os.ReadFile(filepath.Join("../../..", m.file))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(source), m.old); n != 1 {
			t.Errorf("%s: %s contains the text to replace %d times, not once: bring the bug up to date with the code", m.name, m.file, n)
		}
	}
	for _, m := range mistakes {
		if m.test == "" {
			t.Errorf("%s: no test is named that finds it", m.name)
		}
	}
}

// A misspelt name must not look like a campaign in which every bug was found.
func TestAnUnknownBugIsAnError(t *testing.T) {
	c := campaign{bugs: mistakes, called: "mistakes"}
	if err := run(t.Context(), c, "misspelt"); err == nil || !strings.Contains(err.Error(), `"misspelt"`) {
		t.Errorf("got %v", err)
	}
}
