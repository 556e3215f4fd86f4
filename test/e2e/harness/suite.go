package harness

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"k8s.io/klog/v2"

	"github.com/jobstream/jobstream/internal/dev/controlplane"
)

// LogsEnv names the environment variable with the folder for the files of a run of tests, which is kept. Without it they go to a
// temporary folder, which is deleted with the run.
const LogsEnv = "JOBSTREAM_E2E_LOGS"

// systemsAtOnce is how many clusters for single tests run at once beside the shared one. Each is half a dozen processes that
// mostly wait for a backoff, a redelivery or a controller; more of them would keep two cores busy while idle.
const systemsAtOnce = 5

// Suite is what all tests of a package share: a folder, the binaries, and one System. Each is created when a test first needs
// it.
type Suite struct {
	name     string
	folder   *Folder
	programs func() (Programs, error)
	shared   func() (*System, error)
	places   chan struct{} // one for each running cluster of a single test

	mu      sync.Mutex
	systems []*System // all that were ever started, to be stopped at the end
}

// NewSuite returns the suite of the package of that name; shared describes its common System.
func NewSuite(name string, shared Config) *Suite {
	u := &Suite{name: name, places: make(chan struct{}, systemsAtOnce)}
	u.programs = sync.OnceValues(func() (Programs, error) {
		return BuildPrograms(context.Background(), filepath.Join(u.folder.Dir, "bin"))
	})
	u.shared = sync.OnceValues(func() (*System, error) { return u.start(context.Background(), "shared", shared) })
	return u
}

// Parallel sets how many parallel tests run at once, instead of one for each core, unless a flag has set it. It is for a
// TestMain, before Main.
func Parallel(atOnce int) error {
	flag.Parse()
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "test.parallel" })
	if set {
		return nil
	}
	return flag.Set("test.parallel", strconv.Itoa(atOnce))
}

// Main is TestMain: it runs the tests, stops everything, and ends the process. An interrupted test run stops everything, too.
func (u *Suite) Main(m *testing.M) {
	code, err := u.run(m)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", u.name, err)
		code = max(1, code)
	}
	os.Exit(code)
}

func (u *Suite) run(m *testing.M) (code int, err error) {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler)) // client-go's complaints, in this process, about servers that a test has killed
	if u.folder, err = OpenFolder(os.Getenv(LogsEnv)); err != nil {
		return 1, err
	}
	// Temporary files of all tests are deleted with the folder, even if the run is killed.
	temp := filepath.Join(u.folder.Dir, "tmp")
	if err := errors.Join(os.RemoveAll(temp), os.Mkdir(temp, 0o700), os.Setenv("TMPDIR", temp)); err != nil {
		return 1, err
	}
	stop := sync.OnceValue(u.stop)
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, os.Interrupt, syscall.SIGTERM)
	go func() {
		why := <-asked
		fmt.Fprintf(os.Stderr, "%s: stopping: %v %v\n", u.name, why, stop())
		os.Exit(1)
	}()
	return m.Run(), stop()
}

// start starts a System whose files are in a folder of that name.
func (u *Suite) start(ctx context.Context, name string, c Config) (s *System, err error) {
	if c.Programs, err = u.programs(); err != nil {
		return nil, err
	}
	c.Dir, c.GCPercent = filepath.Join(u.folder.Dir, name), controlplane.RareGC
	if s, err = StartSystem(ctx, c); err != nil {
		return nil, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.systems = append(u.systems, s)
	return s, nil
}

// stop stops what runs, and returns an error for what is left.
func (u *Suite) stop() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	var errs []error
	for _, s := range u.systems {
		errs = append(errs, s.Stop())
	}
	if left := Children(); len(left) > 0 {
		errs = append(errs, fmt.Errorf("processes are left: %q", left))
	}
	return errors.Join(append(errs, u.folder.Close())...)
}

// Folder returns the folder of this run's files.
func (u *Suite) Folder() string { return u.folder.Dir }

// Programs returns the binaries.
func (u *Suite) Programs(t testing.TB) Programs {
	t.Helper()
	p, err := u.programs()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Shared returns the System that most tests use, in working order.
func (u *Suite) Shared(t testing.TB) *System {
	t.Helper()
	s, err := u.shared()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Own returns a System for one test, which breaks what others need, or measures what others would disturb. It is stopped with
// the test.
func (u *Suite) Own(t testing.TB, c Config) *System {
	t.Helper()
	u.Place(t)
	s, err := u.start(t.Context(), t.Name(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Place waits until there is room for one more cluster, and keeps that room until the test ends. Own calls it; other callers are
// tests that start a cluster by other means. A test that holds a place must not request another: all tests might wait for each
// other.
func (u *Suite) Place(t testing.TB) {
	t.Helper()
	select {
	case u.places <- struct{}{}:
		t.Cleanup(func() { <-u.places })
	case <-t.Context().Done():
		t.Fatal("the test ended before there was room for its cluster: ", t.Context().Err())
	}
}
