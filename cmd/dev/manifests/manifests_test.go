package manifests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

func TestEveryManifestIsAJobOfOurs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	if err := WriteTo(dir); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadDir(dir)
	if err != nil || len(written) < 4 {
		t.Fatalf("%d manifests, %v", len(written), err)
	}
	for _, file := range written {
		name := strings.TrimSuffix(file.Name(), ".yaml")
		j, err := Load(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if j.Name != name || ptr.Deref(j.Spec.ManagedBy, "") != v1alpha1.DefaultManagedBy {
			t.Errorf("%s holds Job %s of %q", file.Name(), j.Name, ptr.Deref(j.Spec.ManagedBy, ""))
		}
	}
	if _, err := Load(Example); err != nil {
		t.Errorf("the example: %v", err)
	}
	if _, err := Load("nonsense"); err == nil {
		t.Error("a manifest that is not there can be loaded")
	}
}
