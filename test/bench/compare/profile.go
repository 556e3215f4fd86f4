package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/jobstream/jobstream/test/bench/report"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// profiled is how much of a workload a profile shows, from its beginning. Of a shorter one it also shows the rest after it.
const profiled = 20 * time.Second

// profiler fetches profiles of jobstream's programs and of the API server while they work. The zero value does nothing.
type profiler struct {
	dir string // for the files; "" for none
}

// files are the profiles of one measurement, in the order of the programs.
type files struct {
	all  sync.WaitGroup
	mu   sync.Mutex
	kept map[string]string // by program
	err  error
}

// start fetches a profile of each program. The files are complete when all has ended.
func (p profiler) start(ctx context.Context, system *harness.System, name string) *files {
	f := &files{kept: map[string]string{}}
	if p.dir == "" {
		return f
	}
	of := func(p *harness.Process) func() ([]byte, error) {
		return func() ([]byte, error) { return harness.Profile(ctx, p, profiled) }
	}
	for program, profile := range map[string]func() ([]byte, error){
		"trigger": of(system.Triggers[0]), "reconciler": of(system.Reconcilers[0]), "nats-server": of(system.NATS.Process),
		apiServer: func() ([]byte, error) {
			return system.Client.CoreV1().RESTClient().Get().AbsPath("/debug/pprof/profile").Param("seconds", strconv.Itoa(int(profiled.Seconds()))).DoRaw(ctx)
		}} {
		f.all.Go(func() {
			path := filepath.Join(p.dir, name+"-"+program+".pprof")
			data, err := profile()
			if err == nil {
				err = os.WriteFile(path, data, 0o600)
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			if err != nil {
				f.err = fmt.Errorf("profile of %s: %w", program, err)
				return
			}
			f.kept[program] = path
		})
	}
	return f
}

// print waits for the profiles, and prints where each program was most of the time.
func (f *files) print(ctx context.Context) error {
	f.all.Wait()
	if f.err != nil {
		return f.err
	}
	for _, program := range []string{"trigger", "reconciler", "nats-server", apiServer} {
		path, ok := f.kept[program]
		if !ok {
			continue
		}
		report.Say("%s", path)
		top, err := exec.CommandContext(ctx, "go", "tool", "pprof", "-top", "-nodecount=40", path).Output()
		if err != nil {
			return fmt.Errorf("go tool pprof %s: %w", path, err)
		}
		fmt.Printf("\n%s, `go tool pprof -top %s`:\n\n```\n%s```\n", program, path, top)
	}
	return nil
}

// open returns what fetches profiles into a folder; "" for none.
func open(dir string) (profiler, error) {
	if dir == "" {
		return profiler{}, nil
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return profiler{}, err
	}
	return profiler{dir}, os.MkdirAll(dir, 0o755)
}

// flags make the programs of a system serve profiles.
func (p profiler) flags(c *harness.Config) {
	if p.dir != "" {
		c.Flags, c.NATSFlags = append(c.Flags, "--pprof-bind-address=127.0.0.1:0"), []string{"-pprof"}
	}
}
