package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// linkLimit bounds the symlinks followed on the way to a target, as the kernel does.
const linkLimit = 40

// tree is the new root while it is being built. Paths are those that the container will see.
type tree struct {
	stage    string
	revealed map[string]bool // folders of this tree, in which entries can be made
	volumes  []string
	targets  map[string]string // where a mount's target really is, behind symlinks
}

func newTree(stage string) (*tree, error) {
	if err := unix.Mount("tmpfs", stage, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return nil, fmt.Errorf("cannot mount a tmpfs: %w", err)
	}
	// Unbindable: or the bind of the folder that holds the stage would hold a copy of the stage.
	if err := unix.Mount("", stage, "", unix.MS_UNBINDABLE, ""); err != nil {
		return nil, fmt.Errorf("cannot set the tmpfs apart: %w", err)
	}
	t := &tree{stage: stage, revealed: map[string]bool{}, targets: map[string]string{}}
	return t, t.fill("/")
}

func (t *tree) in(path string) string { return filepath.Join(t.stage, path) }

// fill binds every entry of a folder of the host into the new root, where an empty folder waits for them.
func (t *tree) fill(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		err := t.bindHost(path, e.Type())
		// What has vanished meanwhile or must not be seen is not there for the container either.
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("cannot bind %s: %w", path, err)
		}
	}
	t.revealed[dir] = true
	return nil
}

func (t *tree) bindHost(path string, kind fs.FileMode) error {
	if kind&fs.ModeSymlink != 0 {
		to, err := os.Readlink(path)
		if err != nil {
			return err
		}
		return os.Symlink(to, t.in(path))
	}
	if err := point(t.in(path), kind.IsDir()); err != nil {
		return err
	}
	return unix.Mount(path, t.in(path), "", unix.MS_BIND|unix.MS_REC, "")
}

// point makes the empty file or folder that a mount needs.
func point(path string, dir bool) error {
	if dir {
		return os.Mkdir(path, 0o755)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// reveal rebuilds a folder of the host so that entries can be made in it, its parents first.
func (t *tree) reveal(dir string) error {
	if t.revealed[dir] {
		return nil
	}
	if err := t.reveal(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", t.in(dir), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("cannot cover %s: %w", dir, err)
	}
	return t.fill(dir)
}

// mount binds a volume at its target.
func (t *tree) mount(m Mount) error {
	info, err := os.Stat(m.Source)
	if err != nil {
		return err
	}
	target, err := t.place(m.Target, info.IsDir())
	if err != nil {
		return err
	}
	if err := unix.Mount(m.Source, t.in(target), "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	t.volumes = append(t.volumes, target)
	t.targets[m.Target] = target
	return nil
}

// place makes sure that the path exists in the new root and returns it with its symlinks resolved: they are resolved by
// hand, for to the kernel they still lead into the old root.
func (t *tree) place(path string, dir bool) (string, error) {
	links := 0
	at, rest := "/", strings.Split(strings.Trim(filepath.Clean(path), "/"), "/")
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		next := filepath.Join(at, name)
		info, err := os.Lstat(t.in(next))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if err := t.make(at, next, dir || len(rest) > 0); err != nil {
				return "", err
			}
		case err != nil:
			return "", err
		case info.Mode()&fs.ModeSymlink != 0:
			if links++; links > linkLimit {
				return "", unix.ELOOP
			}
			to, err := os.Readlink(t.in(next))
			if err != nil {
				return "", err
			}
			if !filepath.IsAbs(to) {
				to = filepath.Join(at, to)
			}
			at, rest = "/", append(strings.Split(strings.Trim(filepath.Clean(to), "/"), "/"), rest...)
			continue
		case len(rest) == 0 && info.IsDir() != dir:
			return "", errors.New("one of volume and target is a file, the other a folder")
		}
		at = next
	}
	if at == "/" {
		return "", errors.New("a volume cannot replace the root")
	}
	return at, nil
}

// make adds an entry to a folder of the new root, which is revealed first if it is the host's.
func (t *tree) make(parent, path string, dir bool) error {
	own := t.revealed[parent]
	for _, v := range t.volumes {
		own = own || parent == v || strings.HasPrefix(parent, v+"/")
	}
	if !own {
		if err := t.reveal(parent); err != nil {
			return err
		}
	}
	if err := point(t.in(path), dir); err != nil {
		return err
	}
	if dir && t.revealed[parent] {
		t.revealed[path] = true
	}
	return nil
}

// protect makes a mounted volume read-only. A user namespace may not drop the flags that the mount already has.
func (t *tree) protect(target string) error {
	path := t.in(t.targets[target])
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return err
	}
	// Statfs and mount number these flags alike.
	const kept = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_NOATIME | unix.MS_NODIRATIME
	flags := uintptr(st.Flags)&kept | unix.MS_REMOUNT | unix.MS_BIND | unix.MS_RDONLY
	if uintptr(st.Flags)&unix.ST_RELATIME != 0 {
		flags |= unix.MS_RELATIME
	}
	return unix.Mount("", path, "", flags, "")
}
