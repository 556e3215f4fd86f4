package processnode

import (
	"io/fs"
	"os"
	"path/filepath"
)

// removeAll removes a folder also where a container has taken the rights on parts of it away. What still cannot be
// removed is left: there is nobody to tell.
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
