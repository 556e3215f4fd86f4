//go:build linux

package sandbox

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// execute runs the specification and returns what the program has written. A kernel that refuses sandboxes skips the
// test and is quoted.
func execute(t *testing.T, spec Spec) (output string, err error) {
	t.Helper()
	spec.Stage = t.TempDir()
	ready, err := Prepare(spec)
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	attributes := &syscall.SysProcAttr{}
	Attributes(attributes)
	proc, err := os.StartProcess(ready.Path, ready.Args, &os.ProcAttr{
		Env: []string{"PATH=" + os.Getenv("PATH")}, Files: append([]*os.File{nil, w, w}, ready.Files...), Sys: attributes,
	})
	w.Close()
	err = ready.Started(err)
	if proc == nil {
		t.Skip(err)
	}
	var b bytes.Buffer
	if _, copyErr := io.Copy(&b, r); copyErr != nil {
		t.Fatal(copyErr)
	}
	if state, waitErr := proc.Wait(); err == nil && (waitErr != nil || !state.Success()) {
		t.Errorf("the program ended with %v, %v:\n%s", state, waitErr, b.String())
	}
	return b.String(), err
}

// folder makes a folder with one file in it.
func folder(t *testing.T, file, text string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestMountsAppearOnlyInside(t *testing.T) {
	one, two := folder(t, "f", "one\n"), folder(t, "f", "two\n")
	output, err := execute(t, Spec{
		Dir: "/jobstream-new/work",
		Mounts: []Mount{
			{Source: two, Target: "/jobstream-new/two/deep"},
			{Source: one, Target: "/usr/share/jobstream-new", ReadOnly: true},
			{Source: filepath.Join(one, "f"), Target: "/opt/jobstream-new.txt"},
			{Source: two, Target: "/var/run/jobstream-new"}, // /var/run is a link on most machines
		},
		Args: []string{"sh", "-c", `cat /jobstream-new/two/deep/f /usr/share/jobstream-new/f /opt/jobstream-new.txt /run/jobstream-new/f
			pwd; ls /usr/bin/env /proc/self/exe > /dev/null; test -w /dev/null || echo "no null device"
			echo x 2>/dev/null > /usr/share/jobstream-new/g && echo "read-only is not"
			echo x > /jobstream-new/two/deep/g`},
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := "two\none\none\ntwo\n/jobstream-new/work\n"; output != want {
		t.Errorf("output is %q and not %q", output, want)
	}
	if b, _ := os.ReadFile(filepath.Join(two, "g")); string(b) != "x\n" {
		t.Errorf("what was written into the volume is %q", b)
	}
	for _, path := range []string{"/jobstream-new", "/usr/share/jobstream-new", "/opt/jobstream-new.txt", "/run/jobstream-new"} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is on the host", path)
		}
	}
}

func TestWritesOutsideVolumesOfNewFolders(t *testing.T) {
	// A folder that only the container sees is writable as in a container's image.
	output, err := execute(t, Spec{Dir: "/", Mounts: []Mount{{Source: t.TempDir(), Target: "/jobstream-new/volume"}},
		Args: []string{"sh", "-c", "echo kept > /jobstream-new/file; cat /jobstream-new/file"}})
	if err != nil || output != "kept\n" {
		t.Errorf("output %q, error %v", output, err)
	}
}

func TestFailures(t *testing.T) {
	dir := folder(t, "f", "")
	for name, test := range map[string]struct {
		spec    Spec
		want    string
		missing bool
	}{
		"program":  {Spec{Dir: "/", Args: []string{"no-such-program-here"}}, "not exist", true},
		"dir":      {Spec{Dir: "/etc/passwd", Args: []string{"true"}}, "workingDir", false},
		"source":   {Spec{Dir: "/", Mounts: []Mount{{Source: "/no/such/source", Target: "/x"}}, Args: []string{"true"}}, "at /x", false},
		"mismatch": {Spec{Dir: "/", Mounts: []Mount{{Source: filepath.Join(dir, "f"), Target: "/usr"}}, Args: []string{"true"}}, "a file, the other a folder", false},
	} {
		_, err := execute(t, test.spec)
		var f Failure
		if !errors.As(err, &f) || !strings.Contains(f.Message, test.want) || f.Missing != test.missing {
			t.Errorf("%s: error is %+v", name, err)
		}
	}
}

func TestLookup(t *testing.T) {
	dir := folder(t, "plain", "")
	if err := os.WriteFile(filepath.Join(dir, "tool"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for program, want := range map[string]string{
		"tool": filepath.Join(dir, "tool"), "./tool": filepath.Join(dir, "tool"), filepath.Join(dir, "tool"): filepath.Join(dir, "tool"),
		"plain": "", "./plain": "", "nothing": "", "": "",
	} {
		if got, _ := Lookup(program, "relative:"+dir, dir); got != want {
			t.Errorf("Lookup(%q) is %q and not %q", program, got, want)
		}
	}
}
