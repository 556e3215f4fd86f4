package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
)

// tester runs tests against mutants.
type tester struct {
	program string // gremlins
	diff    string
	workers int
	most    int // of one package, 0 for all
}

// status is what became of a mutant.
type status int

const (
	killed status = iota
	survived
	notViable // it does not compile
)

// found is a mutant with what became of it.
type found struct {
	mutant
	status status
}

// test changes the code of one package and runs the tests that count against each change. It also returns how many mutants the package
// has, of which it may have tried a sample.
func (t tester) test(ctx context.Context, p pack) (all []found, total int, err error) {
	places, err := t.find(ctx, p.dir)
	places = slices.DeleteFunc(places, func(m place) bool { return !p.has(m.file) })
	if err != nil || len(places) == 0 {
		return nil, 0, err
	}
	total = len(places)
	places = t.sample(places)
	dir, err := os.MkdirTemp("", "mutation-")
	if err != nil {
		return nil, total, err
	}
	defer os.RemoveAll(dir)
	var began time.Time
	for range 2 { // the first time compiles
		began = time.Now()
		if out, err := t.run(ctx, p, 0, "-count=1"); err != nil {
			return nil, total, fmt.Errorf("the tests fail without a mutant: %w: %s", err, out)
		}
	}
	timeout := 10*time.Since(began) + 10*time.Second // a mutant may loop for ever, and fill the memory
	all = make([]found, len(places))
	var g errgroup.Group
	g.SetLimit(t.workers)
	for i, m := range places {
		g.Go(func() (err error) {
			all[i].mutant = m.mutant
			all[i].status, err = t.try(ctx, p, m, filepath.Join(dir, strconv.Itoa(i)), timeout)
			return err
		})
	}
	return all, total, g.Wait()
}

// sample returns at most so many of the mutants, evenly spread over the code.
func (t tester) sample(all []place) []place {
	slices.SortFunc(all, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.number, b.number), cmp.Compare(a.column, b.column), cmp.Compare(a.kind, b.kind))
	})
	if t.most == 0 || t.most >= len(all) {
		return all
	}
	some := make([]place, t.most)
	for i := range some {
		some[i] = all[i*len(all)/t.most]
	}
	return some
}

// try runs the tests against one mutant, which the compiler finds in an overlay: the working tree stays unchanged.
func (t tester) try(ctx context.Context, p pack, m place, name string, timeout time.Duration) (status, error) {
	source, err := os.ReadFile(m.file)
	if err != nil {
		return killed, err
	}
	original, err := filepath.Abs(m.file)
	if err != nil {
		return killed, err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {original: name + ".go"}})
	if err != nil {
		return killed, err
	}
	for file, data := range map[string][]byte{name + ".go": []byte(m.apply(string(source))), name + ".json": overlay} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			return killed, err
		}
	}
	switch out, err := t.run(ctx, p, timeout, "-overlay="+name+".json"); {
	case ctx.Err() != nil:
		return killed, context.Cause(ctx)
	case err == nil:
		return survived, nil
	case bytes.Contains(out, []byte("[build failed]")):
		return notViable, nil
	}
	return killed, nil
}

// run runs the tests of the package, and then of the others that count.
func (t tester) run(ctx context.Context, p pack, timeout time.Duration, flags ...string) (out []byte, err error) {
	for i, dir := range append([]string{p.dir}, p.others...) {
		args := append([]string{"test", "-vet=off", "-failfast", "-tags=mutation"}, flags...)
		if i == 0 && p.tests != "" {
			args = append(args, "-run="+p.tests)
		}
		if timeout > 0 {
			args = append(args, "-timeout="+timeout.String())
		}
		if out, err = exec.CommandContext(ctx, "go", append(args, "./"+dir)...).CombinedOutput(); err != nil {
			return out, err
		}
	}
	return out, nil
}
