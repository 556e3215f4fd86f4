package assets

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fill writes an empty program for each name.
func fill(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFindPrefersWhatTheUserSet(t *testing.T) {
	all := []string{"etcd", "kube-apiserver", "kube-controller-manager"} // kubectl is not required
	theirs, chosen := fill(t, all...), fill(t, all...)
	t.Setenv(EnvAssets, theirs)
	t.Setenv(EnvDir, chosen)
	if dir, err := Find(); err != nil || dir != theirs {
		t.Errorf("with %s: %s, %v", EnvAssets, dir, err)
	}
	t.Setenv(EnvAssets, "")
	if dir, err := Find(); err != nil || dir != chosen {
		t.Errorf("with %s: %s, %v", EnvDir, dir, err)
	}
	t.Setenv(EnvDir, "")
	t.Setenv("XDG_CACHE_HOME", "/cache")
	dir, err := BuildDir()
	if err != nil || !strings.HasPrefix(dir, "/cache/jobstream/controlplane/v"+KubernetesVersion+"-") {
		t.Errorf("with neither: %s, %v", dir, err)
	}
}

func TestFindNamesWhatIsMissingAndTheRemedy(t *testing.T) {
	t.Setenv(EnvAssets, fill(t, "etcd", "kube-apiserver"))
	expectError(t, "has no kube-controller-manager", EnvAssets, "make controlplane")
	t.Setenv(EnvAssets, "")
	t.Setenv(EnvDir, fill(t, "etcd"))
	expectError(t, "no kube-apiserver, kube-controller-manager in", "make controlplane")
}

func expectError(t *testing.T, parts ...string) {
	t.Helper()
	_, err := Find()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v does not say %q", err, part)
		}
	}
}

func TestVersionIsLinkedIn(t *testing.T) {
	for _, want := range []string{"version.gitVersion=v1.36.3 ", "version.gitMajor=1 ", "version.gitMinor=36 "} {
		if !strings.Contains(kubernetesLDFlags(), want) {
			t.Errorf("linker flags lack %q: %s", want, kubernetesLDFlags())
		}
	}
}
