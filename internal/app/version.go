package app

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// release is set by -ldflags "-X github.com/jobstream/jobstream/internal/app.release=v1.2.3" for a release.
var release string

// Version returns the version that the program was built from: the release, else what the Go toolchain recorded.
func Version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}

// longVersion is the output of --version.
func longVersion() string {
	return fmt.Sprintf("%s %s %s/%s", Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
