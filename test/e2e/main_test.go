package e2e

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
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
	stop     func() error
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

func run(m *testing.M) (code int, err error) {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler)) // what client-go says in this process about servers that we have killed
	if all.folder, err = harness.OpenFolder(os.Getenv(logsEnv)); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, all.folder.Close()) }()
	all.programs = sync.OnceValues(func() (harness.Programs, error) {
		bin, err := os.MkdirTemp(all.folder.Dir, "bin-")
		if err != nil {
			return harness.Programs{}, err
		}
		return harness.BuildPrograms(context.Background(), bin)
	})
	all.stop = func() error { return nil }
	all.system = sync.OnceValues(func() (*harness.System, error) {
		p, err := all.programs()
		if err != nil {
			return nil, err
		}
		s, err := harness.StartSystem(context.Background(), harness.Config{Programs: p, Dir: filepath.Join(all.folder.Dir, "shared")})
		if err == nil {
			all.stop = s.Stop
		}
		return s, err
	})
	code = m.Run()
	err = all.stop()
	if left := harness.Children(); len(left) > 0 {
		err = errors.Join(err, fmt.Errorf("processes are left: %q", left))
	}
	return code, err
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
	c.Programs, c.Dir = programs(t), filepath.Join(all.folder.Dir, t.Name())
	s, err := harness.StartSystem(t.Context(), c)
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
