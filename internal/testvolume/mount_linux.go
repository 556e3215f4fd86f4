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

// errFull is the kernel's error for a write to a full volume.
const errFull = syscall.ENOSPC

// script mounts the volume, and holds the namespace until its standard input is closed, at the latest when the test ends.
const script = `mount --make-rprivate / && mount -t tmpfs -o size="$1",mode=0700 tmpfs "$2" && echo mounted && read -r _`

// mount starts a process that holds a mount namespace with the volume. The test reaches it by the process's root in /proc. With a
// user namespace, every user may do that; where those are forbidden, only root may.
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
	if err := awaitReady(out); err != nil {
		_ = in.Close()
		_ = cmd.Wait()
		return 0, fmt.Errorf("%w: %s", err, strings.TrimSpace(complaint.String()))
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	return cmd.Process.Pid, nil
}
