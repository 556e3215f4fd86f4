package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/jobstream/jobstream/internal/app"
	"github.com/jobstream/jobstream/internal/dev/controlplane"
	"github.com/jobstream/jobstream/internal/dev/controlplane/assets"
	"github.com/jobstream/jobstream/internal/dev/port"
)

// ensurePrograms builds the control plane's programs if they are missing and the source is at hand.
func ensurePrograms(ctx context.Context, say func(string, ...any)) error {
	_, err := controlplane.Assets()
	if err == nil {
		return nil
	}
	missing := &app.Fatal{Cannot: "start a control plane", Err: err, Remedy: "in a checkout of jobstream, \"make controlplane\" builds it; beside a cluster that exists, \"jobstream --kubeconfig\" runs without it"}
	root := checkout()
	if root == "" || os.Getenv(assets.EnvAssets) != "" { // never write into a folder that the user has named
		return missing
	}
	say("the control plane has not been built yet: building it from source, about five minutes the first time")
	build := exec.CommandContext(ctx, "go", "run", "-C", filepath.Join(root, "test"), "./controlplane/build")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	build.Cancel = func() error { return build.Process.Signal(os.Interrupt) }
	if err := build.Run(); err != nil {
		missing.Err = fmt.Errorf("its build failed: %w: see above", err)
		return missing
	}
	if _, missing.Err = controlplane.Assets(); missing.Err != nil {
		return missing
	}
	return nil
}

// checkout returns the root of jobstream's source if the working directory is in it, else "".
func checkout() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for {
		if mod, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil && strings.HasPrefix(string(mod), "module github.com/jobstream/jobstream\n") {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}

// freePort returns the wanted port on loopback, or any free one if that is taken or 0.
func freePort(ctx context.Context, wanted int) int {
	var listen net.ListenConfig
	if l, err := listen.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(wanted))); wanted > 0 && err == nil {
		defer l.Close()
		return wanted
	}
	if free, err := port.Free(); err == nil {
		return free
	}
	return wanted // the server that listens on it reports the error
}

// freeAddress returns the wanted address, or one on loopback with any free port if that is taken.
func freeAddress(ctx context.Context, wanted string) string {
	if wanted == app.Off {
		return wanted
	}
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", wanted)
	if err != nil {
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(freePort(ctx, 0)))
	}
	defer l.Close()
	return l.Addr().String()
}
