package main

import (
	"bufio"
	"context"
	_ "embed"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
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
	workers := flag.Int("workers", runtime.GOMAXPROCS(0), "mutants at once")
	most := flag.Int("most", 0, "of each package, try no more than this `number` of mutants, evenly spread over its code; 0 is all")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, tester{*gremlins, *diff, *workers, *most}, flag.Args())
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
		mutants, total, err := t.test(ctx, p)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name(), err)
		}
		r := judge(out, mutants, known)
		r.of = total
		if r.fails(p, t.diff != "") {
			failed++
		}
		fmt.Fprintf(&table, "%-30s %v  %v\n", p.name(), r, time.Since(began).Round(time.Second))
	}
	fmt.Fprintf(out, "\n%-30s   tried      of  killed  equivalent  survived  score\n%s", "package", table.String())
	if t.diff == "" && t.most == 0 {
		failed += unmet(out, packages, known)
	}
	if failed > 0 {
		return fmt.Errorf("%d failures: write a test that fails with the survivor, or an argument in equivalent.txt", failed)
	}
	return nil
}

// unmet prints the entries of equivalent.txt that fit no survivor, and returns how many there are.
func unmet(out io.Writer, packages []pack, known equivalents) (n int) {
	for m, a := range known {
		if !a.met && of(packages, m.file) {
			n++
			fmt.Fprintf(out, "equivalent.txt has an entry that fits no survivor any more: %v\n", m)
		}
	}
	return n
}

// pack is a package whose tests are tested, or one file of it.
type pack struct {
	dir    string
	file   string   // the only one that is changed, "" for all of the package
	score  int      // per cent
	tests  string   // of the package's own tests those that count, as of go test -run; "" for all
	others []string // packages whose tests count, too
}

// name is how packages.txt and a user call it.
func (p pack) name() string { return path.Join(p.dir, p.file) }

// has reports whether the file is one that is changed.
func (p pack) has(file string) bool {
	return path.Dir(file) == p.dir && (p.file == "" || path.Base(file) == p.file)
}

func parsePackages(text string, only []string) (all []pack, err error) {
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		p := pack{dir: words[0]}
		if strings.HasSuffix(p.dir, ".go") {
			p.dir, p.file = path.Dir(words[0]), path.Base(words[0])
		}
		if len(words) < 2 {
			return nil, fmt.Errorf("packages.txt: %q has no score", lines.Text())
		}
		if p.score, err = strconv.Atoi(words[1]); err != nil {
			return nil, fmt.Errorf("packages.txt: %q: %w", lines.Text(), err)
		}
		for _, word := range words[2:] {
			if tests, ok := strings.CutPrefix(word, "-run="); ok {
				p.tests = tests
			} else {
				p.others = append(p.others, word)
			}
		}
		chosen := len(only) == 0
		for _, o := range only {
			chosen = chosen || filepath.ToSlash(filepath.Clean(o)) == p.name()
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

// of reports whether one of the packages has the file.
func of(packages []pack, file string) bool {
	for _, p := range packages {
		if p.has(file) {
			return true
		}
	}
	return false
}

// result counts the mutants of a package that were tried and compile, and of how many they are a sample.
type result struct{ all, of, killed, equivalent, survived int }

// judge prints the survivors without an argument, and counts.
func judge(out io.Writer, mutants []found, known equivalents) (r result) {
	for _, m := range mutants {
		if m.status == notViable {
			continue
		}
		r.all++
		a := known[m.mutant]
		switch {
		case m.status == killed:
			r.killed++
		case a != nil:
			a.met = true
			r.equivalent++
		default:
			r.survived++
			fmt.Fprintf(out, "%v\n", m.mutant)
		}
	}
	return r
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
	return fmt.Sprintf("%7d %7d %7d %11d %9d %5.1f%%", r.all, r.of, r.killed, r.equivalent, r.survived, r.score())
}
