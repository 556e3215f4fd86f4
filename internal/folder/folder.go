// Package folder opens the folder in which a program keeps its files, for one process at a time.
package folder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	lockName = ".lock"
	// orphanAge protects a folder that another program has created and not locked yet from removal.
	orphanAge = time.Minute
)

// Folder holds all files of one program. It is locked while in use, by a lock that the kernel frees when the program ends,
// however it ends: so a folder with a free lock has no owner.
type Folder struct {
	dir  string
	temp bool
	lock *os.File
}

// InUse is the error of Open if another process has the folder.
type InUse struct{ Program, Dir string }

func (e *InUse) Error() string {
	return fmt.Sprintf("another %s is running in %s: stop it, or use another folder", e.Program, e.Dir)
}

// Open locks dir for a program of that name, and creates it if necessary; if dir is empty, it creates a temporary folder. Close
// removes a temporary folder; if the program is killed instead, the next Open of a temporary folder of that name does. The error
// is an *InUse if another process has the folder.
func Open(dir, program string) (*Folder, error) {
	f := &Folder{dir: dir, temp: dir == ""}
	var err error
	if f.temp {
		removeOrphans(os.TempDir(), program+"-")
		f.dir, err = os.MkdirTemp("", program+"-")
	} else if f.dir, err = filepath.Abs(dir); err == nil {
		err = os.MkdirAll(f.dir, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("folder for %s: %w", program, err)
	}
	f.lock, err = tryLock(filepath.Join(f.dir, lockName), os.O_CREATE|os.O_RDWR)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, &InUse{Program: program, Dir: f.dir}
	}
	if err != nil {
		return nil, fmt.Errorf("lock the folder of %s: %w", program, err)
	}
	return f, nil
}

// Dir is the absolute path of the folder.
func (f *Folder) Dir() string { return f.dir }

// Temporary reports whether Close removes the folder.
func (f *Folder) Temporary() bool { return f.temp }

// Path names a file in the folder.
func (f *Folder) Path(elem ...string) string {
	return filepath.Join(append([]string{f.dir}, elem...)...)
}

// Close frees the folder, and removes it if it is a temporary one.
func (f *Folder) Close() error {
	var err error
	if f.temp {
		err = os.RemoveAll(f.dir)
	}
	return errors.Join(err, f.lock.Close())
}

// removeOrphans removes the temporary folders of programs that were killed. It is a courtesy: what cannot be
// removed stays.
func removeOrphans(parent, prefix string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !entry.IsDir() || !strings.HasPrefix(entry.Name(), prefix) || time.Since(info.ModTime()) < orphanAge {
			continue
		}
		dir := filepath.Join(parent, entry.Name())
		lock, err := tryLock(filepath.Join(dir, lockName), os.O_RDWR)
		if err != nil {
			continue // in use, or another user's
		}
		_ = os.RemoveAll(dir)
		_ = lock.Close()
	}
}

// tryLock takes an exclusive lock on a file, or fails with EWOULDBLOCK at once.
func tryLock(path string, flags int) (*os.File, error) {
	file, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
