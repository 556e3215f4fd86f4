package main

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
	tempPrefix = "jobstream-dev-"
	// orphanAge keeps a sweep from taking a folder that another program has made and not locked yet.
	orphanAge = time.Minute
)

// folder holds all files of a system. The kernel frees its lock when this program ends, however it ends: so a temporary
// folder whose lock is free was left behind by a program that was killed, and the next one removes it.
type folder struct {
	dir  string
	temp bool
	lock *os.File
}

// openFolder locks the folder, or a new temporary one where dir is empty.
func openFolder(dir string) (*folder, error) {
	f := &folder{dir: dir, temp: dir == ""}
	var err error
	if f.temp {
		removeOrphans(os.TempDir())
		f.dir, err = os.MkdirTemp("", tempPrefix)
	} else if f.dir, err = filepath.Abs(dir); err == nil {
		err = os.MkdirAll(f.dir, 0o700)
	}
	if err != nil {
		return nil, err
	}
	if f.lock, err = lock(f.dir); errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("another jobstream-dev is at work in %s", f.dir)
	}
	return f, err
}

// close frees the folder, and removes a temporary one.
func (f *folder) close() error {
	var err error
	if f.temp {
		err = os.RemoveAll(f.dir)
	}
	return errors.Join(err, f.lock.Close())
}

// lock locks a folder by a file in it, or fails with EWOULDBLOCK at once.
func lock(dir string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// removeOrphans removes what killed programs have left. It is a courtesy: what cannot be removed stays.
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
		if file, err := lock(dir); err == nil {
			_ = os.RemoveAll(dir)
			_ = file.Close()
		}
	}
}
