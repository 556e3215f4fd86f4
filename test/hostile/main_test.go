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

// world is the one System that is attacked, started by the first test that asks for it.
var world struct {
	folder *harness.Folder
	start  func() (*harness.System, error)
	system *harness.System
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
	world.start = sync.OnceValues(func() (*harness.System, error) {
		programs, err := harness.BuildPrograms(context.Background(), filepath.Join(world.folder.Dir, "bin"))
		if err != nil {
			return nil, err
		}
		world.system, err = harness.StartSystem(context.Background(), harness.Config{Programs: programs, Dir: filepath.Join(world.folder.Dir, "system"),
			Reconcilers: 2, ReconcilerFlags: []string{"--ttl-after-finished"}})
		return world.system, err
	})
	stop := sync.OnceValue(func() error {
		var err error
		if world.system != nil {
			err = world.system.Stop()
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

func system(t *testing.T) *harness.System {
	t.Helper()
	s, err := world.start()
	if err != nil {
		t.Fatal(err)
	}
	return s
}
