package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestBugsFitTheCode: a bug that no longer fits has to be brought up to date, not forgotten.
func TestBugsFitTheCode(t *testing.T) {
	for _, m := range slices.Concat(ofTracking, ofFeatures, ofAnnouncements, ofPartitions, ofSchedules) {
		source, err := os.ReadFile(filepath.Join("../../..", m.file))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(source), m.old); n != 1 {
			t.Errorf("%s: the text to replace stands %d times in %s", m.name, n, m.file)
		}
	}
}
