package bus

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jobstream/jobstream/internal/finding"
)

// inspect returns an inspector of the bus of the cluster "test".
func inspect(t *testing.T, url string, change ...func(*Config)) *Inspector {
	t.Helper()
	c := Config{URL: url, Cluster: "test", ConnectTimeout: soon, Log: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&c)
	}
	v, err := Inspect(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	return v
}

// findings returns an inspector's findings by check; for several of one check, the lines are joined and the worst level counts.
func findings(t *testing.T, v *Inspector) map[string]finding.Finding {
	t.Helper()
	all := map[string]finding.Finding{}
	for _, f := range v.Findings(t.Context(), []string{"job"}, time.Now) {
		if f.Found == "" || f.Level != finding.OK && f.Advice == "" {
			t.Errorf("%s is %s without a word: %+v", f.Check, f.Level, f)
		}
		if have, ok := all[f.Check]; ok {
			f.Level, f.Found = max(f.Level, have.Level), have.Found+"\n"+f.Found
			f.Advice = have.Advice + "\n" + f.Advice
		}
		all[f.Check] = f
	}
	return all
}

// expected is a finding that a test waits for: the level of a check, and words in what is found or advised.
type expected struct {
	check string
	level finding.Level
	words []string
}

func about(check string, level finding.Level, words ...string) expected {
	return expected{check, level, words}
}

// differs returns "" if it is among the findings, and otherwise what is there instead.
func (e expected) differs(all map[string]finding.Finding) string {
	f, ok := all[e.check]
	if !ok {
		return fmt.Sprintf("nothing was found about %q, only about %q", e.check, slices.Sorted(maps.Keys(all)))
	}
	if f.Level != e.level {
		return fmt.Sprintf("%s is %s, want %s: %s", e.check, f.Level, e.level, f.Found)
	}
	for _, w := range e.words {
		if !strings.Contains(f.Found+"\n"+f.Advice, w) {
			return fmt.Sprintf("%s does not say %q: %s -> %s", e.check, w, f.Found, f.Advice)
		}
	}
	return ""
}

// finds inspects until everything expected is found, since a busy server may answer later than an inspector waits, and returns all
// that was found then.
func finds(t *testing.T, v *Inspector, want ...expected) (all map[string]finding.Finding) {
	t.Helper()
	for deadline := time.Now().Add(soon); ; <-time.After(50 * time.Millisecond) {
		var wrong []string
		all = findings(t, v)
		for _, e := range want {
			if differs := e.differs(all); differs != "" {
				wrong = append(wrong, differs)
			}
		}
		if len(wrong) == 0 {
			return all
		}
		if time.Now().After(deadline) {
			t.Fatal(strings.Join(wrong, "\n"))
		}
	}
}
