package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

//go:embed packages.txt
var packagesText string

//go:embed equivalent.txt
var equivalentText string

func main() {
	gremlins := flag.String("gremlins", "gremlins", "the program `file`")
	diff := flag.String("diff", "", "change only lines that differ from this git `revision`")
	workers := flag.Int("workers", 0, "tests at once; 0 is one for each processor")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, tester{*gremlins, *diff, *workers}, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, t tester, only []string) error {
	packages, err := parsePackages(packagesText, only)
	if err != nil {
		return err
	}
	known, err := parseEquivalents(equivalentText)
	if err != nil {
		return err
	}
	var table strings.Builder
	failed := 0
	for _, p := range packages {
		began := time.Now()
		mutants, err := t.test(ctx, p.dir)
		if err != nil {
			return fmt.Errorf("%s: %w", p.dir, err)
		}
		r, err := judge(out, mutants, known)
		if err != nil {
			return err
		}
		if r.fails(p, t.diff != "") {
			failed++
		}
		fmt.Fprintf(&table, "%-24s %v  %v\n", p.dir, r, time.Since(began).Round(time.Second))
	}
	fmt.Fprintf(out, "\n%-24s mutants  killed  equivalent  survived  score\n%s", "package", table.String())
	if t.diff == "" {
		for m, a := range known {
			if !a.met && of(packages, m.file) {
				failed++
				fmt.Fprintf(out, "equivalent.txt has an entry that fits no survivor any more: %v\n", m)
			}
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d failures: write a test that fails with the survivor, or an argument in equivalent.txt", failed)
	}
	return nil
}

// pack is a package whose tests are tested.
type pack struct {
	dir   string
	score int // per cent
}

func parsePackages(text string, only []string) (all []pack, err error) {
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "#") || strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		var p pack
		if _, err := fmt.Sscan(lines.Text(), &p.dir, &p.score); err != nil {
			return nil, fmt.Errorf("packages.txt: %q: %w", lines.Text(), err)
		}
		chosen := len(only) == 0
		for _, o := range only {
			chosen = chosen || strings.TrimPrefix(filepath.ToSlash(filepath.Clean(o)), "./") == p.dir
		}
		if chosen {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("packages.txt has none of %v", only)
	}
	return all, nil
}

func of(packages []pack, file string) bool {
	for _, p := range packages {
		if filepath.ToSlash(filepath.Dir(file)) == p.dir {
			return true
		}
	}
	return false
}

// tester runs gremlins.
type tester struct {
	program string
	diff    string
	workers int
}

// found is a mutant with what became of it.
type found struct {
	mutant
	status string
}

// test changes the code of one package, without its subfolders, and runs its tests against each change.
func (t tester) test(ctx context.Context, dir string) ([]found, error) {
	results, err := os.CreateTemp("", "mutation-*.json")
	if err != nil {
		return nil, err
	}
	defer os.Remove(results.Name())
	defer results.Close()
	args := []string{"unleash", "./" + dir, "--output", results.Name(), "--tags", "mutation", "--silent", "--timeout-coefficient", "5",
		"--exclude-files", "/", // of subfolders
		"--invert-logical", "--invert-loopctrl", "--invert-assignments", "--remove-self-assignments", "--invert-bitwise"}
	if t.diff != "" {
		args = append(args, "--diff", t.diff)
	}
	if t.workers > 0 {
		args = append(args, "--workers", fmt.Sprint(t.workers))
	}
	cmd := exec.CommandContext(ctx, t.program, args...)
	cmd.Env = append(os.Environ(), "GOFLAGS=-vet=off")
	if output, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, output)
	}
	return read(results, dir)
}

// report is what gremlins writes.
type report struct {
	Files []struct {
		Name      string `json:"file_name"`
		Mutations []struct {
			Type, Status string
			Line, Column int
		}
	}
}

func read(in io.Reader, dir string) (all []found, err error) {
	var r report
	if err := json.NewDecoder(in).Decode(&r); err != nil && !errors.Is(err, io.EOF) { // empty without a mutant
		return nil, err
	}
	for _, f := range r.Files {
		file := filepath.ToSlash(filepath.Join(dir, f.Name))
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		lines := strings.Split(string(source), "\n")
		for _, m := range f.Mutations {
			if m.Line < 1 || m.Line > len(lines) {
				return nil, fmt.Errorf("%s has no line %d", file, m.Line)
			}
			all = append(all, found{mutant{file, m.Type, mark(lines[m.Line-1], m.Column)}, m.Status})
		}
	}
	return all, nil
}

// result counts the mutants of a package.
type result struct{ all, killed, equivalent, survived int }

func judge(out io.Writer, mutants []found, known equivalents) (r result, err error) {
	for _, m := range mutants {
		switch m.status {
		case "KILLED", "TIMED OUT":
			r.killed++
		case "LIVED", "NOT COVERED":
			if a := known[m.mutant]; a != nil {
				a.met = true
				r.equivalent++
				break
			}
			r.survived++
			fmt.Fprintf(out, "%v\n", m.mutant)
		case "NOT VIABLE", "SKIPPED": // does not compile; not of the diff
			continue
		default:
			return r, fmt.Errorf("%v: unknown status %q", m.mutant, m.status)
		}
		r.all++
	}
	return r, nil
}

// score is the share of killed mutants in per cent, of those that are not equivalent.
func (r result) score() float64 {
	if r.killed+r.survived == 0 {
		return 100
	}
	return 100 * float64(r.killed) / float64(r.killed+r.survived)
}

func (r result) fails(p pack, diff bool) bool {
	return diff && r.survived > 0 || r.score() < float64(p.score)
}

func (r result) String() string {
	return fmt.Sprintf("%7d %7d %11d %9d %5.1f%%", r.all, r.killed, r.equivalent, r.survived, r.score())
}
