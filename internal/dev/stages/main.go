// Stages runs targets of the Makefile one after another, and reports what each of them shows, how long it took and what is left.
// "make test" and "make test-long" run it.
//
//	go run ./internal/dev/stages -times=FILE lint unit sim chaos-short+e2e
//
// Stages that are joined by "+" run at the same time, because one of them mostly waits. What the first of them prints is shown at
// once, that of each other when it has ended.
//
// After a stage that fails no other begins, as with make; under "make -k" all run. In the end it prints the tests that have failed,
// and the commands that replay them, once more. FILE remembers how long each stage took when it passed last.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	times := flag.String("times", "", "file that remembers how long each stage took")
	flag.Parse()
	if err := run(os.Stdout, *times, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "stages:", err)
		os.Exit(1)
	}
}

// stage is a target of the Makefile.
type stage struct {
	name  string
	shows string        // what the Makefile says of it
	last  time.Duration // how long it took when it passed last; 0 where that is unknown
	with  bool          // whether it runs at the same time as the stage before it

	took, cpu time.Duration
	err       error
	verdict   string
	said      *failures
}

func run(out io.Writer, times string, names []string) error {
	text, err := os.ReadFile("Makefile")
	if err != nil {
		return fmt.Errorf("%w: run it from the root of the repository", err)
	}
	past, err := readTimes(times)
	if err != nil {
		return err
	}
	stages, err := find(string(text), past, names)
	if err != nil {
		return err
	}
	r := report{out: out, stages: stages}
	r.begin()
	var failed []string
	for len(r.stages) > 0 && (len(failed) == 0 || keepGoing(os.Getenv("MAKEFLAGS"))) {
		stopped := false
		for _, s := range r.run() {
			switch {
			case errors.Is(s.err, errStopped):
				stopped = true
			case s.err != nil:
				failed = append(failed, s.name)
			default:
				past[s.name] = s.took.Seconds()
			}
		}
		if err := writeTimes(times, past); err != nil {
			return err
		}
		if stopped {
			r.end()
			return errStopped
		}
	}
	r.end()
	if len(failed) > 0 {
		return fmt.Errorf("failed: %s", strings.Join(failed, ", "))
	}
	return nil
}

// keepGoing reports whether make was started with -k. The first word of MAKEFLAGS holds the flags of one letter, without a dash.
func keepGoing(makeflags string) bool {
	letters, _, _ := strings.Cut(makeflags, " ")
	return !strings.HasPrefix(letters, "-") && strings.Contains(letters, "k")
}

// errStopped means that a user or a CI system has stopped the run.
var errStopped = errors.New("stopped")

// execute runs a stage, calls stillRuns every minute meanwhile, and returns how much time of the processors the stage took. A terminal
// sends Ctrl-C to the tests, too: they stop what they have started, which is waited for. A SIGTERM is for this process alone and is
// passed on.
func execute(name string, out io.Writer, stillRuns func()) (cpu time.Duration, err error) {
	cmd := exec.Command("make", name)
	cmd.Stdout, cmd.Stderr = out, out
	asked := make(chan os.Signal, 2)
	signal.Notify(asked, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(asked)
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	minute := time.NewTicker(time.Minute)
	defer minute.Stop()
	stopped := false
	for {
		select {
		case <-minute.C:
			stillRuns()
		case s := <-asked:
			stopped = true
			if s == syscall.SIGTERM {
				_ = cmd.Process.Signal(s) // it may have ended
			}
		case err := <-ended:
			if stopped {
				err = errStopped
			}
			return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), err
		}
	}
}
