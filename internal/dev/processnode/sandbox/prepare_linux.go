package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Prepared is a sandbox that is ready to be forked: execute Path with Args, Files after the three standard ones and the
// attributes of Attributes, then call Started.
type Prepared struct {
	Path  string
	Args  []string
	Files []*os.File

	report *os.File
}

// Prepare readies the execution of spec.
func Prepare(spec Spec) (*Prepared, error) {
	slices.SortStableFunc(spec.Mounts, func(a, b Mount) int {
		return strings.Count(a.Target, "/") - strings.Count(b.Target, "/")
	})
	fd, err := unix.MemfdCreate("spec", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("cannot pass a sandbox's specification: %w", err)
	}
	file := os.NewFile(uintptr(fd), "spec")
	err = json.NewEncoder(file).Encode(spec)
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("cannot pass a sandbox's specification: %w", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		file.Close()
		return nil, err
	}
	return &Prepared{Path: "/proc/self/exe", Args: []string{Name}, Files: []*os.File{file, w}, report: r}, nil
}

// Attributes asks for the namespaces: a mount namespace, and without the right to one a user namespace to have the right in.
func Attributes(a *syscall.SysProcAttr) {
	a.Cloneflags |= unix.CLONE_NEWNS
	if uid := os.Geteuid(); uid != 0 {
		a.Cloneflags |= unix.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
}

// Started waits until the container's program runs, or returns the Failure to get there. It must be called after the
// fork, also where the fork has failed; the process of a failure still has to be waited for.
func (p *Prepared) Started(forked error) error {
	for _, f := range p.Files {
		f.Close()
	}
	defer p.report.Close()
	if forked != nil {
		if errors.Is(forked, syscall.EPERM) || errors.Is(forked, syscall.EINVAL) || errors.Is(forked, syscall.ENOSPC) {
			return Failure{Message: fmt.Sprintf("this kernel refuses a mount namespace (%v), which volumes need: allow "+
				"unprivileged user namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, "+
				"kernel.apparmor_restrict_unprivileged_userns=0), or run the node as root", forked)}
		}
		return forked
	}
	var f Failure
	switch err := json.NewDecoder(p.report).Decode(&f); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return Failure{Message: fmt.Sprintf("the sandbox ended without a word: %v", err)}
	}
	return f
}
