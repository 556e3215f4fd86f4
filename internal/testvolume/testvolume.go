// Package testvolume creates small file systems for tests. When a test has filled one, writes fail with the kernel's real "no
// space left on device".
package testvolume

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Volume is a tmpfs that exists as long as the test, in its own mount namespace: the machine's mounts are not changed.
type Volume struct {
	// Dir is its root, for every process of this user.
	Dir string
}

// New creates a volume of that many bytes. If the kernel does not allow it, the test is skipped with the reason.
func New(t testing.TB, size int) *Volume {
	t.Helper()
	dir, err := mount(t, t.TempDir(), size)
	if err != nil {
		t.Skipf("a file system of our own cannot be made here: %v: it takes CAP_SYS_ADMIN, or user namespaces for all users", err)
	}
	return &Volume{Dir: dir}
}

// ballast is a file that takes up the room.
func (v *Volume) ballast() string { return filepath.Join(v.Dir, "ballast") }

// Fill extends the ballast until nothing fits any more.
func (v *Volume) Fill(t testing.TB) {
	t.Helper()
	f, err := os.OpenFile(v.ballast(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, piece := range []int{64 << 10, 1} { // the last page to the last byte
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, piece))
		}
		if !errors.Is(err, errFull) {
			t.Fatal(err)
		}
	}
}

// Leave shortens the ballast by that many bytes: whole pages of 4 KiB.
func (v *Volume) Leave(t testing.TB, bytes int64) {
	t.Helper()
	info, err := os.Stat(v.ballast())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(v.ballast(), info.Size()-bytes); err != nil {
		t.Fatal(err)
	}
}

// Free removes the ballast.
func (v *Volume) Free(t testing.TB) {
	t.Helper()
	if err := os.Remove(v.ballast()); err != nil {
		t.Fatal(err)
	}
}

// awaitReady waits until the holder reports that the volume is mounted.
func awaitReady(out io.Reader) error {
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || strings.TrimSpace(line) != "mounted" {
		return fmt.Errorf("mount says %q", strings.TrimSpace(line))
	}
	return nil
}
