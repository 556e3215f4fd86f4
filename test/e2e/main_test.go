package e2e

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

	"github.com/jobstream/jobstream/test/e2e/harness"
)

// Environment variables of this package; see doc.go.
const (
	logsEnv = "JOBSTREAM_E2E_LOGS"
	longEnv = "JOBSTREAM_E2E_LONG"
)

// all is what the tests share. It is started by the first test that asks for it.
var all struct {
	folder   *harness.Folder
	programs func() (harness.Programs, error)
	system   func() (*harness.System, error)

	mu      sync.Mutex
	systems []*harness.System // that were ever started, for the end
}

func TestMain(m *testing.M) {
	os.Exit(func() int {
		code, err := run(m)
		if err != nil {
			fmt.Fprintln(os.Stderr, "e2e:", err)
			code = max(1, code)
		}
		return code
	}())
}

// atOnce is how many parallel tests run at once: they wait for a backoff or a deadline most of the time, so there may be
// more of them than cores, but not so many that the node has no room for their Pods.
const atOnce = 12

// allowParallel raises Go's limit, which is the number of cores, unless somebody has set it.
func allowParallel() error {
	flag.Parse()
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "test.parallel" })
	if set {
		return nil
	}
	return flag.Set("test.parallel", strconv.Itoa(atOnce))
}

func run(m *testing.M) (code int, err error) {
	if err := allowParallel(); err != nil {
		return 1, err
	}
	klog.SetSlogLogger(slog.New(slog.DiscardHandler)) // what client-go says in this process about servers that we have killed
	if all.folder, err = harness.OpenFolder(os.Getenv(logsEnv)); err != nil {
		return 1, err
	}
	// Whatever anybody here makes in passing goes with the folder, even if we are killed.
	temp := filepath.Join(all.folder.Dir, "tmp")
	if err := errors.Join(os.RemoveAll(temp), os.Mkdir(temp, 0o700), os.Setenv("TMPDIR", temp)); err != nil {
		return 1, err
	}
	all.programs = sync.OnceValues(func() (harness.Programs, error) {
		return harness.BuildPrograms(context.Background(), filepath.Join(all.folder.Dir, "bin"))
	})
	all.system = sync.OnceValues(func() (*harness.System, error) { return start(context.Background(), "shared", harness.Config{}) })
	stop := sync.OnceValue(stopAll)
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, os.Interrupt, syscall.SIGTERM)
	go func() {
		why := <-asked
		fmt.Fprintln(os.Stderr, "e2e: stopping:", why, stop())
		os.Exit(1)
	}()
	return m.Run(), stop()
}

// start starts a System whose files are in a folder of that name.
func start(ctx context.Context, name string, c harness.Config) (s *harness.System, err error) {
	if c.Programs, err = all.programs(); err != nil {
		return nil, err
	}
	c.Dir = filepath.Join(all.folder.Dir, name)
	if s, err = harness.StartSystem(ctx, c); err != nil {
		return nil, err
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	all.systems = append(all.systems, s)
	return s, nil
}

// stopAll stops what runs and complains about what is left.
func stopAll() error {
	all.mu.Lock()
	defer all.mu.Unlock()
	var errs []error
	for _, s := range all.systems {
		errs = append(errs, s.Stop())
	}
	if left := harness.Children(); len(left) > 0 {
		errs = append(errs, fmt.Errorf("processes are left: %q", left))
	}
	return errors.Join(append(errs, all.folder.Close())...)
}

func programs(t *testing.T) harness.Programs {
	t.Helper()
	p, err := all.programs()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// shared is the System that most tests use, with everything in working order.
func shared(t *testing.T) *harness.System {
	t.Helper()
	s, err := all.system()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// own is a System of the test's own, for those that break what others need.
func own(t *testing.T, c harness.Config) *harness.System {
	t.Helper()
	s, err := start(t.Context(), t.Name(), c)
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

// long says that every run has the full size.
func long() bool { return os.Getenv(longEnv) != "" }
