package main

import (
	"os"
	"strings"
	"testing"
)

// A bug that no longer fits the code must be brought up to date, not forgotten.
func TestBugsFitTheCode(t *testing.T) {
	for _, m := range mutants {
		overlay, err := m.plant("../../..", t.TempDir())
		if err != nil {
			t.Error(err)
			continue
		}
		if text, err := os.ReadFile(overlay); err != nil || !strings.Contains(string(text), m.file) {
			t.Errorf("%s: overlay %s: %v", m.name, text, err)
		}
	}
}

func TestClearestFinding(t *testing.T) {
	const slow, bug = "  after 3m0s without faults: Job a has not ended\n", "  Job b: failed is 2, but 1 Pods have\n"
	for all, want := range map[string]string{slow + bug: strings.TrimSpace(bug), slow: strings.TrimSpace(slow), bug + slow: strings.TrimSpace(bug), "": ""} {
		if got := clearest(all); got != want {
			t.Errorf("%q: %q", all, got)
		}
	}
}
