package processnode

import (
	"io/fs"
	"os"
	"path/filepath"
)

// removeAll removes a folder, even if a container has removed the permissions on parts of it. It leaves what still cannot be
// removed, because there is no caller to report it to.
func removeAll(path string) {
	if os.RemoveAll(path) == nil {
		return
	}
	_ = filepath.WalkDir(path, func(p string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(p, 0o700)
		}
		return nil
	})
	_ = os.RemoveAll(path)
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}
