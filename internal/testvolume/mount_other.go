//go:build !linux

package testvolume

import (
	"errors"
	"runtime"
	"syscall"
	"testing"
)

// errFull is the kernel's error for a write to a full volume.
const errFull = syscall.ENOSPC

func mount(testing.TB, string, int) (string, error) {
	return "", errors.New("not implemented on " + runtime.GOOS)
}
