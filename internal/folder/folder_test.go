package folder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const owner = "jobstream-test"

func TestFolderIsLockedWhileInUse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	first, err := Open(dir, owner)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, owner); err == nil || !strings.Contains(err.Error(), "another "+owner+" is running in "+dir) {
		t.Errorf("second owner: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(dir, owner)
	if err != nil {
		t.Fatalf("a folder that was given is kept, and free after close: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

func TestOrphanedFoldersAreRemoved(t *testing.T) {
	parent := t.TempDir()
	t.Setenv("TMPDIR", parent)
	inUse, err := Open("", owner)
	if err != nil {
		t.Fatal(err)
	}
	orphan := filepath.Join(parent, owner+"-"+"orphan")
	fresh := filepath.Join(parent, owner+"-"+"fresh")
	other := filepath.Join(parent, "other")
	old := time.Now().Add(-2 * orphanAge)
	for _, dir := range []string{orphan, fresh, other} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, lockName), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{orphan, other, inUse.dir} {
		if err := os.Chtimes(dir, old, old); err != nil {
			t.Fatal(err)
		}
	}
	removeOrphans(parent, owner+"-")
	for dir, want := range map[string]bool{orphan: false, fresh: true, other: true, inUse.dir: true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s: there %v, want %v", filepath.Base(dir), err == nil, want)
		}
	}
	if err := inUse.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(inUse.dir); !os.IsNotExist(err) {
		t.Errorf("a temporary folder outlives its use: %v", err)
	}
}
