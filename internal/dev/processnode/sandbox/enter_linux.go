package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func init() {
	if len(os.Args) > 0 && os.Args[0] == Name {
		fail(enter())
	}
}

// enter builds the sandbox and turns this process into the container's. It returns only with an error.
func enter() error {
	unix.CloseOnExec(specFD)
	unix.CloseOnExec(errorFD)
	var spec Spec
	if err := json.NewDecoder(os.NewFile(specFD, "spec")).Decode(&spec); err != nil {
		return fmt.Errorf("cannot read what to run: %w", err)
	}
	if err := build(spec); err != nil {
		return err
	}
	if err := os.Chdir(spec.Dir); err != nil {
		return fmt.Errorf("workingDir: %w", err)
	}
	// A change of user clears the parent-death signal, so set it again.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("prctl: %w", err)
	}
	path, err := Lookup(spec.Args[0], os.Getenv("PATH"), spec.Dir)
	if err == nil {
		err = syscall.Exec(path, spec.Args, os.Environ())
	}
	return Failure{Program: true, Missing: errors.Is(err, fs.ErrNotExist), Message: err.Error()}
}

// fail tells the node why and ends the process.
func fail(err error) {
	var f Failure
	if !errors.As(err, &f) {
		f.Message = err.Error()
	}
	_ = json.NewEncoder(os.NewFile(errorFD, "error")).Encode(f)
	os.Exit(125) // as docker run and env for "could not start"; the code is not used
}

// build puts the new root together and moves into it.
func build(spec Spec) error {
	// Nothing that is mounted here may travel back to the host.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("cannot make the mounts private: %w", err)
	}
	t, err := newTree(spec.Stage)
	if err != nil {
		return err
	}
	for _, m := range spec.Mounts {
		if err := t.mount(m); err != nil {
			return fmt.Errorf("cannot mount a volume at %s: %w", m.Target, err)
		}
	}
	// As container runtimes do. It may be in a volume; a failure shows when the working directory is entered.
	_, _ = t.place(spec.Dir, true)
	// Read-only comes last: a volume may have had to give room to another one below it.
	for _, m := range spec.Mounts {
		if m.ReadOnly {
			if err := t.protect(m.Target); err != nil {
				return fmt.Errorf("cannot make the volume at %s read-only: %w", m.Target, err)
			}
		}
	}
	return pivot(spec.Stage)
}

// pivot makes the stage the root. The old root is put on top of the new one and then unmounted, which needs no folder for it.
func pivot(stage string) error {
	if err := unix.Chdir(stage); err != nil {
		return fmt.Errorf("chdir: %w", err)
	}
	err := unix.PivotRoot(".", ".")
	switch {
	case err == nil:
		err = unix.Unmount(".", unix.MNT_DETACH)
	case errors.Is(err, unix.EINVAL):
		err = unix.Chroot(".") // a machine whose root is its initramfs cannot pivot
	}
	if err != nil {
		return fmt.Errorf("cannot change the root: %w", err)
	}
	return unix.Chdir("/")
}
