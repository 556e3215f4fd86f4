// Mutants plants deliberate bugs, each alone, and runs the simulators against it, and then the transcripts and tests of the
// functions. If none of them finds a planted bug, they would not find a real one either.
//
//	go run ./internal/sim/mutants [-seeds 4000] [-only name]
//	go run ./internal/sim/mutants -mistakes [-only name]
//
// With -mistakes it plants the thirty mistakes of ADR 36 in their place, and runs the tests of the package that ought to find each.
//
// Each bug is a replacement of text in one file, passed to the compiler as an overlay, so the working tree stays unchanged. The
// program fails if a bug no longer fits the code, or if a bug that is not marked as harmless is not found.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

// campaign is a list of bugs, and how each is hunted.
type campaign struct {
	bugs   []mutant
	called string
	atOnce int // how many are hunted at a time
	hunt   func(ctx context.Context, overlay string, m mutant) (found bool, how string)
}

func main() {
	seeds := flag.Int("seeds", 4000, "worlds per bug")
	only := flag.String("only", "", "plant this one bug only")
	thirty := flag.Bool("mistakes", false, "plant the thirty mistakes of ADR 36, and run tests only")
	flag.Parse()
	c := campaign{ // a hunt in worlds by itself keeps about one processor busy
		bugs: slices.Concat(ofTracking, ofFeatures, ofAnnouncements, ofPartitions, ofSchedules), called: "planted bugs", atOnce: 2,
		hunt: func(ctx context.Context, overlay string, m mutant) (bool, string) {
			return hunt(ctx, overlay, m.file, *seeds)
		},
	}
	if *thirty { // some of these tests watch a clock: two packages at a time might fail for want of a processor
		c = campaign{bugs: mistakes, called: "mistakes", atOnce: 1, hunt: huntMistake}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, c, *only)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, c campaign, only string) error {
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	overlays := map[string]string{} // all before the first hunt: a bug that no longer fits is known at once
	var chosen []mutant
	for _, m := range c.bugs {
		if only != "" && m.name != only {
			continue
		}
		if overlays[m.name], err = plant(dir, m); err != nil {
			return err
		}
		chosen = append(chosen, m)
	}
	if len(chosen) == 0 {
		return fmt.Errorf("no bug among the %s is called %q: their names are in internal/sim/mutants", c.called, only)
	}
	var mu sync.Mutex
	killed, planted := 0, 0
	var hunts errgroup.Group
	hunts.SetLimit(c.atOnce)
	for _, m := range chosen {
		hunts.Go(func() error {
			found, how := c.hunt(ctx, overlays[m.name], m)
			if err := ctx.Err(); err != nil {
				return err // it was stopped: no verdict
			}
			mu.Lock()
			defer mu.Unlock()
			verdict := "SURVIVED"
			switch {
			case found:
				verdict = "killed"
				killed++
				planted++
			case m.harmless != "":
				how = "harmless: " + m.harmless
			default:
				planted++
			}
			fmt.Printf("%-9s %-32s %s\n", verdict, m.name, how)
			return nil
		})
	}
	if err := hunts.Wait(); err != nil {
		return err
	}
	fmt.Printf("%d of %d %s were found\n", killed, planted, c.called)
	if killed < planted {
		return fmt.Errorf("%d were not", planted-killed)
	}
	return nil
}

// plant writes the changed file, and an overlay that replaces the original with it.
func plant(dir string, m mutant) (overlay string, err error) {
	source, err := os.ReadFile(m.file)
	if err != nil {
		return "", fmt.Errorf("%w (run it from the root of the repository)", err)
	}
	if n := strings.Count(string(source), m.old); n != 1 {
		return "", fmt.Errorf("%s: %s contains the text to replace %d times, not once: bring the bug up to date with the code", m.name, m.file, n)
	}
	changed := filepath.Join(dir, m.name+".go")
	if err := os.WriteFile(changed, []byte(strings.Replace(string(source), m.old, m.new, 1)), 0o600); err != nil {
		return "", err
	}
	original, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	b, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, m.name+".json")
	return overlay, os.WriteFile(overlay, b, 0o600)
}

var (
	failedTest = regexp.MustCompile(`--- FAIL: (\S+)`)
	// hangingTest is one that was running when the time of its package was over.
	hangingTest = regexp.MustCompile(`running tests:\n\s+(\S+)`)
	// findings are what a world has found, or else the test that has failed, or hangs.
	findings = []*regexp.Regexp{regexp.MustCompile(`(?m)^.*(?:sim|world)_test.go:\d+: (.*)$`), failedTest, hangingTest}
)

// hunt runs the worlds of both simulators against the changed code, first of the one that the file belongs to, and returns the first finding. Bugs
// that need a rarer accident than so many worlds contain are left to transcripts and tests.
func hunt(ctx context.Context, overlay, file string, seeds int) (found bool, how string) {
	if strings.HasPrefix(file, "internal/engine/") { // its own tests take seconds, unless one hangs, and worlds see little of it
		if found, how = test(ctx, overlay, findings, "./internal/engine", "-timeout=1m"); found {
			return true, "by a test: " + how
		}
	}
	sims := []string{"./internal/sim", "./internal/sim/schedules"}
	if strings.HasPrefix(file, "functions/schedule") { // and functions/scheduledjob
		slices.Reverse(sims)
	}
	for _, sim := range sims {
		if found, how = test(ctx, overlay, findings, sim, "-run", "TestWorlds", "-base=1", "-first", fmt.Sprintf("-seeds=%d", seeds)); found {
			return true, how
		}
	}
	found, how = test(ctx, overlay, findings, "./functions/...", "./internal/partition", "./internal/engine")
	return found, "by a test: " + how
}

// huntMistake runs the tests that ought to find the mistake, up to the first failure. What events mean shows in the packages that use
// them: those tests follow if the ones of events themselves pass.
func huntMistake(ctx context.Context, overlay string, m mutant) (found bool, how string) {
	suites := []string{m.test}
	if strings.HasPrefix(m.file, "events/") {
		if suites = []string{"./events", "./functions/..."}; !slices.Contains(suites, m.test) {
			suites = append(suites, m.test)
		}
	}
	for _, suite := range suites {
		args := append([]string{"-failfast"}, strings.Fields(suite)...)
		if found, how = test(ctx, overlay, []*regexp.Regexp{failedTest}, args...); found {
			return true, "by a test: " + how
		} else if how != "" {
			return false, how
		}
	}
	return false, ""
}

// test runs tests against the changed code, and looks for a finding in what they print. A bug that does not compile is not found.
func test(ctx context.Context, overlay string, findings []*regexp.Regexp, args ...string) (found bool, how string) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-vet=off", "-overlay", overlay}, args...)...)
	out, err := cmd.CombinedOutput()
	if err == nil {
		return false, ""
	}
	for _, finding := range findings {
		if m := finding.FindSubmatch(out); m != nil {
			return true, string(m[1])
		}
	}
	return false, "does not build, or fails without a finding: " + strings.TrimSpace(string(out[max(0, len(out)-300):]))
}
