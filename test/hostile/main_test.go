package hostile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"k8s.io/klog/v2"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

// world has the one System that most attacks are on, started by the first test that asks for it.
var world struct {
	folder   *harness.Folder
	programs func() (harness.Programs, error)
	system   func() (*harness.System, error)

	mu      sync.Mutex
	started []*harness.System // for the end
}

func TestMain(m *testing.M) {
	os.Exit(func() int {
		code, err := run(m)
		if err != nil {
			fmt.Fprintln(os.Stderr, "hostile:", err)
			code = max(1, code)
		}
		return code
	}())
}

func run(m *testing.M) (code int, err error) {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	if world.folder, err = harness.OpenFolder(os.Getenv("JOBSTREAM_E2E_LOGS")); err != nil {
		return 1, err
	}
	temp := filepath.Join(world.folder.Dir, "tmp")
	if err := errors.Join(os.RemoveAll(temp), os.Mkdir(temp, 0o700), os.Setenv("TMPDIR", temp)); err != nil {
		return 1, err
	}
	world.programs = sync.OnceValues(func() (harness.Programs, error) {
		return harness.BuildPrograms(context.Background(), filepath.Join(world.folder.Dir, "bin"))
	})
	world.system = sync.OnceValues(func() (*harness.System, error) {
		return start("shared", harness.Config{Reconcilers: 2, ReconcilerFlags: []string{"--ttl-after-finished"}})
	})
	stop := sync.OnceValue(func() error {
		world.mu.Lock()
		defer world.mu.Unlock()
		var err error
		for _, s := range world.started {
			err = errors.Join(err, s.Stop())
		}
		if left := harness.Children(); len(left) > 0 {
			err = errors.Join(err, fmt.Errorf("processes are left: %q", left))
		}
		return errors.Join(err, world.folder.Close())
	})
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, os.Interrupt, syscall.SIGTERM)
	go func() {
		why := <-asked
		fmt.Fprintln(os.Stderr, "hostile: stopping:", why, stop())
		os.Exit(1)
	}()
	return m.Run(), stop()
}

// start starts a System whose files are in a folder of that name.
func start(name string, c harness.Config) (s *harness.System, err error) {
	if c.Programs, err = world.programs(); err != nil {
		return nil, err
	}
	c.Dir = filepath.Join(world.folder.Dir, name)
	if s, err = harness.StartSystem(context.Background(), c); err != nil {
		return nil, err
	}
	world.mu.Lock()
	defer world.mu.Unlock()
	world.started = append(world.started, s)
	return s, nil
}

// system is the one that most attacks are on.
func system(t *testing.T) *harness.System {
	t.Helper()
	s, err := world.system()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// own is a System of the test's own, for measures that nobody else may disturb.
func own(t *testing.T, c harness.Config) *harness.System {
	t.Helper()
	s, err := start(t.Name(), c)
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
