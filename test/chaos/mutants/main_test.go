package main

import (
	"os"
	"strings"
	"testing"
)

// A bug that no longer fits the code has to be brought up to date, not forgotten.
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
