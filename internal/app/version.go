package app

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// release is set by -ldflags "-X github.com/jobstream/jobstream/internal/app.release=v1.2.3" for a release.
var release string

// Version says what this program was built from: the release, else what the Go toolchain noted.
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

// longVersion is what --version prints.
func longVersion() string {
	return fmt.Sprintf("%s %s %s/%s", Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
