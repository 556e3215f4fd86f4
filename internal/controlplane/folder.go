package controlplane

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
	tempPrefix = "jobstream-controlplane-"
	lockName   = ".lock"
	// orphanAge keeps a sweep from taking a folder that another program has made and not locked yet.
	orphanAge = time.Minute
)

// A folder holds all files of one control plane. It is locked while in use, by a lock that the kernel frees when
// this program ends, however it ends: so a folder with a free lock has no owner.
type folder struct {
	dir  string
	temp bool
	lock *os.File
}

// openFolder locks dir, or a new temporary folder if dir is empty.
func openFolder(dir string) (*folder, error) {
	f := &folder{dir: dir}
	var err error
	if dir == "" {
		removeOrphans(os.TempDir())
		f.temp = true
		f.dir, err = os.MkdirTemp("", tempPrefix)
	} else if f.dir, err = filepath.Abs(dir); err == nil {
		err = os.MkdirAll(f.dir, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("folder for the control plane: %w", err)
	}
	f.lock, err = tryLock(filepath.Join(f.dir, lockName), os.O_CREATE|os.O_RDWR)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("another control plane is running in %s: stop it, or use another folder", f.dir)
	}
	if err != nil {
		return nil, fmt.Errorf("lock the control plane's folder: %w", err)
	}
	return f, nil
}

// path names a file in the folder.
func (f *folder) path(elem ...string) string {
	return filepath.Join(append([]string{f.dir}, elem...)...)
}

// close frees the folder, and removes it if it is a temporary one.
func (f *folder) close() error {
	var err error
	if f.temp {
		err = os.RemoveAll(f.dir)
	}
	return errors.Join(err, f.lock.Close())
}

// removeOrphans removes the temporary folders of programs that were killed. It is a courtesy: what cannot be
// removed stays.
func removeOrphans(parent string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !entry.IsDir() || !strings.HasPrefix(entry.Name(), tempPrefix) || time.Since(info.ModTime()) < orphanAge {
			continue
		}
		dir := filepath.Join(parent, entry.Name())
		lock, err := tryLock(filepath.Join(dir, lockName), os.O_RDWR)
		if err != nil {
			continue // in use, or not ours
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
