// Package testvolume makes small file systems for tests, which are really full when they are filled: whoever writes there is told
// "no space left on device" by the kernel.
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

// Volume is a tmpfs of its own. It exists for as long as the test does, and in a mount namespace of its own: the machine's mounts
// stay as they are, whatever becomes of the test.
type Volume struct {
	// Dir is its root, for every process of our user.
	Dir string
}

// New makes a volume of so many bytes. Where the kernel lets us make none, the test is skipped and says why.
func New(t testing.TB, size int) *Volume {
	t.Helper()
	dir, err := mount(t, t.TempDir(), size)
	if err != nil {
		t.Skipf("a file system of our own cannot be made here: %v: it takes CAP_SYS_ADMIN, or user namespaces for everybody", err)
	}
	return &Volume{Dir: dir}
}

// ballast is what somebody else has on the volume.
func (v *Volume) ballast() string { return filepath.Join(v.Dir, "ballast") }

// Fill writes a file of somebody else's until nothing fits any more.
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

// Leave takes so many bytes off the end of that file: whole pages of 4 KiB.
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

// Free removes that file.
func (v *Volume) Free(t testing.TB) {
	t.Helper()
	if err := os.Remove(v.ballast()); err != nil {
		t.Fatal(err)
	}
}

// hear waits for the holder's word that the volume is there.
func hear(out io.Reader) error {
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || strings.TrimSpace(line) != "mounted" {
		return fmt.Errorf("mount says %q", strings.TrimSpace(line))
	}
	return nil
}
