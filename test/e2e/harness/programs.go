package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Root is the root of the repository, seen from the folder in which the tests run.
const Root = "../.."

// Programs are the paths of the binaries.
type Programs struct{ Trigger, Reconciler, Jobstream, Dev, NATS, Node string }

// keptPrograms is where the last built programs are kept, in the checkout: "go build" does not relink a program that is up to
// date, which saves seconds for each.
var keptPrograms = filepath.Join(Root, ".cache", "programs")

// BuildPrograms builds the binaries from the source beside the tests into a folder. The flags are for the build of the programs
// under test.
func BuildPrograms(ctx context.Context, dir string, flags ...string) (Programs, error) {
	p := Programs{
		Trigger:    filepath.Join(dir, "jobstream-trigger"),
		Reconciler: filepath.Join(dir, "jobstream-reconciler"),
		Jobstream:  filepath.Join(dir, "jobstream"),
		Dev:        filepath.Join(dir, "jobstream-dev"),
		NATS:       filepath.Join(dir, "natsd"),
		Node:       filepath.Join(dir, "noded"),
	}
	at := dir
	if len(flags) == 0 {
		at = keptPrograms
		unlock, err := lockKept()
		if err != nil {
			return p, err
		}
		defer unlock()
	}
	test := filepath.Join(Root, "test")
	for _, b := range []struct {
		path, module, pkg string
		flags             []string
	}{
		{p.Trigger, Root, "./cmd/trigger", flags}, {p.Reconciler, Root, "./cmd/reconciler", flags}, {p.Jobstream, Root, "./cmd/jobstream", flags}, {p.Dev, Root, "./cmd/dev", nil},
		{p.NATS, test, "./e2e/natsd", nil}, {p.Node, test, "./e2e/noded", nil},
	} {
		built, err := filepath.Abs(filepath.Join(at, filepath.Base(b.path)))
		if err != nil {
			return p, err
		}
		build := exec.CommandContext(ctx, "go", append(append([]string{"build"}, b.flags...), "-o", built, b.pkg)...)
		build.Dir = b.module
		if out, err := build.CombinedOutput(); err != nil {
			return p, fmt.Errorf("build %s: %w\n%s", b.pkg, err, out)
		}
		if at != dir {
			if err := copyProgram(built, b.path); err != nil {
				return p, err
			}
		}
	}
	return p, nil
}

// lockKept waits until no other run of tests builds into keptPrograms. The kernel frees the lock when the process ends.
func lockKept() (unlock func(), err error) {
	if err := os.MkdirAll(keptPrograms, 0o700); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(keptPrograms, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() { _ = file.Close() }, nil
}

// copyProgram copies a program to where this run of tests starts it: the next build may replace the original meanwhile.
func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o700)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

const (
	folderPrefix = "jobstream-e2e-"
	// orphanAge keeps a sweep from removing a folder that another test has created and not locked yet.
	orphanAge = time.Minute
)

// Folder holds all files of a run of tests. The kernel frees its lock when the process ends in any way: a folder whose lock is
// free was left by a killed run, and the next run removes it.
type Folder struct {
	Dir  string
	kept bool
	lock *os.File
}

// OpenFolder creates a temporary folder, or uses the named one, which is kept.
func OpenFolder(named string) (*Folder, error) {
	f := &Folder{Dir: named, kept: named != ""}
	var err error
	if f.kept {
		f.Dir, err = filepath.Abs(named)
		err = errors.Join(err, os.MkdirAll(f.Dir, 0o700))
	} else {
		removeOrphans()
		f.Dir, err = os.MkdirTemp("", folderPrefix)
	}
	if err != nil {
		return nil, err
	}
	if f.lock, err = lock(f.Dir); err != nil {
		return nil, fmt.Errorf("another run of tests is at work in %s: %w", f.Dir, err)
	}
	return f, nil
}

// Close removes the folder, unless it is to be kept.
func (f *Folder) Close() error {
	var err error
	if !f.kept {
		err = os.RemoveAll(f.Dir)
	}
	return errors.Join(err, f.lock.Close())
}

func lock(dir string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// removeOrphans removes the folders of killed runs. What cannot be removed stays.
func removeOrphans() {
	entries, err := os.ReadDir(os.TempDir())
	if err != nil {
		return
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !entry.IsDir() || !strings.HasPrefix(entry.Name(), folderPrefix) || time.Since(info.ModTime()) < orphanAge {
			continue
		}
		dir := filepath.Join(os.TempDir(), entry.Name())
		if file, err := lock(dir); err == nil {
			_ = os.RemoveAll(dir)
			_ = file.Close()
		}
	}
}
