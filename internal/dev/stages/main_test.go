package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// makefile has stages that pass, and stages that fail as "go test", lint and the simulator do.
const makefile = `.PHONY: good broken lint sim
good: ## what is well
	@echo all is well
broken: prepared ## what is broken
	@printf -- '--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/b (0.00s)\n        a_test.go:1: wrong\nFAIL\nFAIL\texample.com/a\t0.1s\nFAIL\texample.com/c [build failed]\n'
	@exit 1
prepared:
	@true
lint: ## the rules
	@echo 'a.go:1: against the rules'; exit 1
sim: ## worlds
	@printf -- '--- FAIL: TestWorlds (0.00s)\n    seed 7: wrong\n  replay: go test ./sim -seed=7\nFAIL\tsim\t0.1s\n'; exit 1
`

func TestRun(t *testing.T) {
	for _, c := range []struct {
		name      string
		makeflags string
		stages    []string
		err       string
		prints    []string // in this order
		not       []string
	}{
		{name: "all pass", stages: []string{"good"},
			prints: []string{"1 stages: good", "[1/1] good: what is well\n", "all is well\n", "[1/1] good: ok, ", "; left: nothing\n"}},
		{name: "the first that fails is the last", stages: []string{"broken", "good"}, err: "failed: broken",
			prints: []string{"[1/2] broken: what is broken", "[1/2] broken: FAILED, ", "; left: good", "together",
				"  example.com/a TestA\n", "  example.com/a TestA/b\n", "  example.com/c [build failed]\n"},
			not: []string{"all is well"}},
		{name: "make -k", makeflags: "k --no-print-directory", stages: []string{"broken", "good"}, err: "failed: broken",
			prints: []string{"broken: FAILED", "all is well\n", "together", "  example.com/a TestA\n"}},
		{name: "at the same time", stages: []string{"good+broken", "lint"}, err: "failed: broken",
			prints: []string{"3 stages: good, broken, lint", "[1/3] good: what is well\n", "[2/3] broken: what is broken\n", "together",
				"  example.com/a TestA\n"}, not: []string{"against the rules"}},
		{name: "a stage without tests", stages: []string{"lint"}, err: "failed: lint", prints: []string{"together", "\nlint: ", "  a.go:1: against the rules\n"}},
		{name: "a seed", stages: []string{"sim"}, err: "failed: sim", prints: []string{"together", "  sim TestWorlds\n", "  replay: go test ./sim -seed=7\n"}},
		{name: "a stage that nothing is said of", stages: []string{"prepared"}, err: "no target \"prepared\" with a line of help"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			t.Setenv("MAKEFLAGS", c.makeflags)
			if err := os.WriteFile("Makefile", []byte(makefile), 0o600); err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			err := run(&out, "cache/times", c.stages)
			switch {
			case c.err == "" && err != nil, c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
				t.Errorf("it returns %v, want %q", err, c.err)
			}
			rest := out.String()
			for _, text := range c.prints {
				_, after, found := strings.Cut(rest, text)
				if !found {
					t.Fatalf("%q is missing, or out of order:\n%s", text, out.String())
				}
				rest = after
			}
			for _, text := range c.not {
				if strings.Contains(out.String(), text) {
					t.Errorf("it prints %q:\n%s", text, out.String())
				}
			}
		})
	}
}

// What a stage took when it passed is known the next time; what it took when it failed is not.
func TestTimesAreRemembered(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("MAKEFLAGS", "k")
	if err := os.WriteFile("Makefile", []byte(makefile), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run(&out, "cache/times", []string{"good", "broken"}); err == nil {
		t.Fatal("a stage has failed, and the run has not")
	}
	past, err := readTimes("cache/times")
	if err != nil || past["good"] <= 0 || past["broken"] != 0 {
		t.Fatalf("remembered is %v, %v", past, err)
	}
	if err := writeTimes("cache/times", map[string]float64{"good": 61}); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if err := run(&out, "cache/times", []string{"good"}); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?s)good \(about 1m01s by the last runs\)\n.*what is well \(1m01s last time\)`).MatchString(out.String()) {
		t.Errorf("it prints\n%s", out.String())
	}
}

func TestLeft(t *testing.T) {
	for want, stages := range map[string][]stage{
		"nothing":   nil,
		"unit, sim": {{name: "unit"}, {name: "sim"}},
		"unit, sim (about 1m30s by the last runs)":                              {{name: "unit", last: time.Minute}, {name: "sim", last: 30 * time.Second}},
		"lint, unit, sim (about 2m00s by the last runs)":                        {{name: "lint", last: time.Minute}, {name: "unit", last: 30 * time.Second}, {name: "sim", last: time.Minute, with: true}},
		"unit, sim (about 1m00s by the last runs, and 1 that have not run yet)": {{name: "unit", last: time.Minute}, {name: "sim"}},
	} {
		if got := left(stages); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
