// Mutants plants deliberate bugs in jobstream, one at a time, and runs the chaos suite against each. A checker that does not
// notice them would not notice a real bug either.
//
//	go run -C test ./chaos/mutants [-minutes 1] [-seed 1] [-tries 3] [-only name]
//
// Each bug is a replacement of text in one file, passed to the compiler of the trigger and the reconciler as an overlay, so the
// working tree stays unchanged. A bug that shows only if something breaks at the right moment has a few tries, each with the
// next seed. The program fails if a bug no longer fits the code, if a bug is not found, or if the checker has findings without
// any bug, which would make all others meaningless.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// root is the root of the repository, seen from the folder in which "go run -C test" works.
const root = ".."

func main() {
	minutes := flag.Float64("minutes", 1, "how long faults occur for each bug")
	seed := flag.Uint64("seed", 1, "decides the faults; 1 wipes the bus early")
	tries := flag.Int("tries", 3, "how many seeds a bug may take to be found")
	only := flag.String("only", "", "plant this one bug only")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *minutes, *seed, *tries, *only)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, minutes float64, seed uint64, tries int, only string) error {
	dir, err := os.MkdirTemp("", "jobstream-chaos-mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "BUG\tCHECKER\tTRIES\tFINDINGS\tTOOK\tTHE FIRST OF THEM")
	survived := 0
	for _, m := range append([]mutant{none}, mutants...) {
		if only != "" && m.name != only {
			continue
		}
		overlay, err := m.plant(root, dir)
		if err != nil {
			return err
		}
		fmt.Printf("%s: %s\n", m.name, m.means)
		began := time.Now()
		var count, first string
		tried := 0
		for ; tried == 0 || tried < tries && count == "" && m != none; tried++ {
			if count, first, err = hunt(ctx, overlay, minutes, seed+uint64(tried)); err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
		}
		verdict := "red"
		if count == "" {
			verdict = "green"
		}
		if (count == "") != (m == none) {
			verdict = strings.ToUpper(verdict)
			survived++
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%v\t%s\n", m.name, verdict, tried, count, time.Since(began).Round(time.Second), first)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if survived > 0 {
		return fmt.Errorf("%d verdicts are wrong: those in upper case", survived)
	}
	return nil
}

// plant writes the changed file, and an overlay that replaces the original with it.
func (m mutant) plant(root, dir string) (overlay string, err error) {
	if m == none {
		return "", nil
	}
	path, err := filepath.Abs(filepath.Join(root, m.file))
	if err != nil {
		return "", err
	}
	source, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("%w (run it by \"make chaos-mutants\")", err)
	}
	if n := strings.Count(string(source), m.old); n != 1 {
		return "", fmt.Errorf("%s: %s contains the text to replace %d times, not once: bring the bug up to date with the code", m.name, m.file, n)
	}
	changed := filepath.Join(dir, m.name+".go")
	if err := os.WriteFile(changed, []byte(strings.Replace(string(source), m.old, m.new, 1)), 0o600); err != nil {
		return "", err
	}
	b, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, m.name+".json")
	return overlay, os.WriteFile(overlay, b, 0o600)
}

var (
	findings = regexp.MustCompile(`(?m)^wrong +(\d+)\n((?:  .*\n)*)`)
	evidence = regexp.MustCompile(`the evidence is in (\S+)`)
)

// hunt runs the suite against the changed programs, and returns the number of findings; "" if there are none.
func hunt(ctx context.Context, overlay string, minutes float64, seed uint64) (count, first string, err error) {
	const settle = 3 * time.Minute // what a bug keeps from coming to rest needs less timeout than a real run
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-v", "-timeout=30m", "./chaos", "-run", "^TestChaos$", "-args", "-overlay="+overlay,
		fmt.Sprintf("-minutes=%g", minutes), fmt.Sprintf("-seed=%d", seed), "-settle="+settle.String())
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return "", "", ctx.Err()
	}
	if kept := evidence.FindSubmatch(out); kept != nil {
		_ = os.RemoveAll(string(kept[1])) // of a planted bug
	}
	if err == nil {
		return "", "", nil
	}
	m := findings.FindSubmatch(out)
	if exit := (&exec.ExitError{}); !errors.As(err, &exit) || m == nil || string(m[1]) == "0" {
		return "", "", fmt.Errorf("the suite failed without a finding: %w: %s", err, out[max(0, len(out)-1000):])
	}
	return string(m[1]), clearest(string(m[2])), nil
}

// clearest returns the first finding other than that something has not ended.
func clearest(all string) (first string) {
	for l := range strings.Lines(all) {
		if l = strings.TrimSpace(l); first == "" || !strings.HasPrefix(l, "after ") {
			first = l
		}
		if !strings.HasPrefix(l, "after ") {
			break
		}
	}
	const most = 160
	return first[:min(len(first), most)]
}
