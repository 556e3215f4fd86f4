// Package natsrelease builds released NATS servers from source, for tests against versions that jobstream does not link.
package natsrelease

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Build returns the path of the nats-server of a release, such as v2.10.29. It is built the first time, which takes a minute, and kept where
// the Makefile keeps such programs. It returns an error if the module cannot be fetched or built.
func Build(ctx context.Context, version string) (path string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "jobstream", "bin")
	path = filepath.Join(dir, "nats-server-"+version)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	temp, err := os.MkdirTemp(dir, "build-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)
	build := exec.CommandContext(ctx, "go", "install", "github.com/nats-io/nats-server/v2@"+version)
	build.Env = append(os.Environ(), "GOBIN="+temp, "GOFLAGS=-mod=mod")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go install nats-server %s: %w: %s", version, err, out)
	}
	// Another process may build it at the same time, and a file that is open for writing cannot be run: so it appears as a whole.
	return path, os.Rename(filepath.Join(temp, "nats-server"), path)
}
