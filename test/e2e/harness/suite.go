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
)

// LogsEnv names the environment variable that holds the folder for the files of a run of tests, which is kept; without it they go
// to a temporary one, which goes with the run.
const LogsEnv = "JOBSTREAM_E2E_LOGS"

// systemsAtOnce is how many clusters of tests' own run at once beside the shared one. Each is half a dozen processes that mostly wait for
// a backoff, a redelivery or a controller: more of them would have two cores busy with their idling.
const systemsAtOnce = 4

// Suite is what all tests of a package share: a folder, the binaries, and one System. Each is there once somebody asks for it.
type Suite struct {
	name     string
	folder   *Folder
	programs func() (Programs, error)
	shared   func() (*System, error)
	places   chan struct{} // one for each cluster of a test's own that runs

	mu      sync.Mutex
	systems []*System // that were ever started, for the end
}

// NewSuite is for the tests of the package of that name; shared says what their common System consists of.
func NewSuite(name string, shared Config) *Suite {
	u := &Suite{name: name, places: make(chan struct{}, systemsAtOnce)}
	u.programs = sync.OnceValues(func() (Programs, error) {
		return BuildPrograms(context.Background(), filepath.Join(u.folder.Dir, "bin"))
	})
	u.shared = sync.OnceValues(func() (*System, error) { return u.start(context.Background(), "shared", shared) })
	return u
}

// Parallel has so many parallel tests run at once, instead of as many as there are cores, unless somebody has set it by flag. It is
// for a TestMain, before Main.
func Parallel(atOnce int) error {
	flag.Parse()
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "test.parallel" })
	if set {
		return nil
	}
	return flag.Set("test.parallel", strconv.Itoa(atOnce))
}

// Main is TestMain: it runs the tests, stops everything, and ends the process. A test run that is interrupted stops everything, too.
func (u *Suite) Main(m *testing.M) {
	code, err := u.run(m)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", u.name, err)
		code = max(1, code)
	}
	os.Exit(code)
}

func (u *Suite) run(m *testing.M) (code int, err error) {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler)) // what client-go says in this process about servers that we have killed
	if u.folder, err = OpenFolder(os.Getenv(LogsEnv)); err != nil {
		return 1, err
	}
	// Whatever anybody here makes in passing goes with the folder, even if we are killed.
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
	c.Dir = filepath.Join(u.folder.Dir, name)
	if s, err = StartSystem(ctx, c); err != nil {
		return nil, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.systems = append(u.systems, s)
	return s, nil
}

// stop stops what runs and complains about what is left.
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

// Folder is where the files of this run of tests are.
func (u *Suite) Folder() string { return u.folder.Dir }

// Programs are the binaries.
func (u *Suite) Programs(t testing.TB) Programs {
	t.Helper()
	p, err := u.programs()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Shared is the System that most tests use, with everything in working order.
func (u *Suite) Shared(t testing.TB) *System {
	t.Helper()
	s, err := u.shared()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Own is a System of the test's own, for those that break what others need, or measure what others would disturb. It goes with the
// test.
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

// Place waits until there is room for one more cluster, and keeps that room until the test ends. Own does it; it is for tests that
// start a cluster by other means. A test that holds a place must not ask for another: all might wait for each other then.
func (u *Suite) Place(t testing.TB) {
	t.Helper()
	select {
	case u.places <- struct{}{}:
		t.Cleanup(func() { <-u.places })
	case <-t.Context().Done():
		t.Fatal("the test ended before there was room for its cluster: ", t.Context().Err())
	}
}
