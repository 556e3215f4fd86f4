// Package assets knows which programs make up the test control plane, how they are built, and where they are.
//
// Two packages use it and must agree: test/controlplane/build writes the programs, internal/dev/controlplane starts
// them. It imports the standard library only, so that the check for the programs compiles quickly.
//
// Programs are looked for in this order:
//
//	KUBEBUILDER_ASSETS          a folder filled by another program (envtest's convention); never written to
//	JOBSTREAM_CONTROLPLANE_DIR  a folder of your choice, filled by "make controlplane"
//	the user's cache folder     jobstream/controlplane/v1.36.3-<hash of the recipe>, filled by "make controlplane"
package assets

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// The environment variables with the folders of the programs.
const (
	EnvAssets = "KUBEBUILDER_ASSETS"
	EnvDir    = "JOBSTREAM_CONTROLPLANE_DIR"
)

// The versions that are built. The go.mod files in test/controlplane/kubernetes and test/controlplane/etcd
// pin the same ones; a test there compares them.
const (
	KubernetesVersion = "1.36.3"
	EtcdVersion       = "3.7.3"
)

// A Program is one executable of the control plane and its source.
type Program struct {
	Name     string // of the executable
	Version  string
	Module   string // folder below test/controlplane whose go.mod pins it
	Package  string // main package
	LDFlags  string
	Required bool // a control plane cannot start without it
}

// Programs returns what "make controlplane" builds, in build order. kubectl shares nearly all its packages with the others, so it
// is cheap; it is for users, and no package here needs it.
func Programs() []Program {
	const kubernetes = "k8s.io/kubernetes/cmd/"
	return []Program{
		{"etcd", EtcdVersion, "etcd", "go.etcd.io/etcd/server/v3", "-s -w", true},
		{"kube-apiserver", KubernetesVersion, "kubernetes", kubernetes + "kube-apiserver", kubernetesLDFlags(), true},
		{"kube-controller-manager", KubernetesVersion, "kubernetes", kubernetes + "kube-controller-manager", kubernetesLDFlags(), true},
		{"kubectl", KubernetesVersion, "kubernetes", kubernetes + "kubectl", kubernetesLDFlags(), false},
	}
}

// kubernetesLDFlags sets the version, as the Kubernetes release scripts do. Without it the server says
// v0.0.0-master+$Format, which clients that check the version skew (Helm charts, kubectl) refuse.
func kubernetesLDFlags() string {
	major, rest, _ := strings.Cut(KubernetesVersion, ".")
	minor, _, _ := strings.Cut(rest, ".")
	flags := []string{"-s", "-w"}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags,
			"-X", pkg+".gitVersion=v"+KubernetesVersion,
			"-X", pkg+".gitMajor="+major,
			"-X", pkg+".gitMinor="+minor,
			"-X", pkg+".gitTreeState=archive")
	}
	return strings.Join(flags, " ")
}

// BuildFlags are the flags of "go build" for every program: the tags are those of a Kubernetes release
// (no test hooks, no gRPC tracing: both keep the linker from dropping dead code).
func BuildFlags() []string {
	return []string{"-trimpath", "-buildvcs=false", "-tags=selinux,notest,grpcnotrace"}
}

// Recipe describes all inputs of the build. It is stored beside the programs, and its hash is in the name of the cache folder, so
// that a changed version or flag never meets an old program.
func Recipe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s/%s %s\n", runtime.GOOS, runtime.GOARCH, strings.Join(BuildFlags(), " "))
	for _, p := range Programs() {
		fmt.Fprintf(&b, "%s %s %s %s\n", p.Name, p.Version, p.Package, p.LDFlags)
	}
	return b.String()
}

// BuildDir is the folder that "make controlplane" fills.
func BuildDir() (string, error) {
	if dir := os.Getenv(EnvDir); dir != "" {
		return filepath.Abs(dir)
	}
	// Not os.UserCacheDir: one rule on every system, and the one the documentation states.
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("no place for the control plane: %w; set %s", err, EnvDir)
		}
		cache = filepath.Join(home, ".cache")
	}
	sum := sha256.Sum256([]byte(Recipe()))
	return filepath.Join(cache, "jobstream", "controlplane", "v"+KubernetesVersion+"-"+hex.EncodeToString(sum[:4])), nil
}

// Find returns the folder that holds the control plane's programs. Its error names what is missing, where it
// was looked for, and the remedy.
func Find() (string, error) {
	if dir := os.Getenv(EnvAssets); dir != "" {
		if missing := Missing(dir); len(missing) > 0 {
			return "", fmt.Errorf("%s=%s has no %s: put it there, or unset %s and run \"make controlplane\"",
				EnvAssets, dir, strings.Join(missing, ", "), EnvAssets)
		}
		return dir, nil
	}
	dir, err := BuildDir()
	if err != nil {
		return "", err
	}
	if missing := Missing(dir); len(missing) > 0 {
		return "", fmt.Errorf("no %s in %s: run \"make controlplane\" (about five minutes the first time), or set %s",
			strings.Join(missing, ", "), dir, EnvAssets)
	}
	return dir, nil
}

// Missing returns the names of the required programs that dir lacks.
func Missing(dir string) []string {
	var missing []string
	for _, p := range Programs() {
		if p.Required && !Executable(filepath.Join(dir, p.Name)) {
			missing = append(missing, p.Name)
		}
	}
	return missing
}

// Executable reports whether path is a program that can be run.
func Executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
