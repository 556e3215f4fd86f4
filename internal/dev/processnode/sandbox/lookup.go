package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Lookup finds a program as execvp does, with the PATH and the working directory of a container. A program that does not
// exist is an error that is fs.ErrNotExist.
func Lookup(program, path, dir string) (string, error) {
	if strings.Contains(program, "/") {
		full := program
		if !filepath.IsAbs(full) {
			full = filepath.Join(dir, full)
		}
		if err := executable(full); err != nil {
			return "", err
		}
		return full, nil
	}
	for _, d := range filepath.SplitList(path) {
		if full := filepath.Join(d, program); filepath.IsAbs(d) && executable(full) == nil {
			return full, nil
		}
	}
	return "", fs.ErrNotExist
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir() || info.Mode()&0o111 == 0:
		return fs.ErrPermission
	}
	return nil
}
