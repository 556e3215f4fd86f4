package testvolume

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// errFull is what the kernel tells who writes to a volume that is full.
const errFull = syscall.ENOSPC

// script mounts, and holds the namespace until our end of its standard input is closed, as it is when we die.
const script = `mount --make-rprivate / && mount -t tmpfs -o size="$1",mode=0700 tmpfs "$2" && echo mounted && read -r _`

// mount starts a process that holds a mount namespace with the volume. We reach it by the process's root in /proc. A namespace
// of users, too, makes that possible for everybody; where those are forbidden, root may do without.
func mount(t testing.TB, dir string, size int) (string, error) {
	var refused []error
	for _, flags := range []uintptr{syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS, syscall.CLONE_NEWNS} {
		pid, err := hold(t, flags, dir, size)
		if err == nil {
			return filepath.Join("/proc", strconv.Itoa(pid), "root", dir), nil
		}
		refused = append(refused, err)
	}
	return "", errors.Join(refused...)
}

func hold(t testing.TB, flags uintptr, dir string, size int) (pid int, err error) {
	cmd := exec.Command("sh", "-c", script, "sh", strconv.Itoa(size), dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
	if flags&syscall.CLONE_NEWUSER != 0 {
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	var complaint strings.Builder
	cmd.Stderr = &complaint
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	if err := hear(out); err != nil {
		_ = in.Close()
		_ = cmd.Wait()
		return 0, fmt.Errorf("%w: %s", err, strings.TrimSpace(complaint.String()))
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	return cmd.Process.Pid, nil
}
