package manifests

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

func TestEveryManifestIsOfJobstream(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	if err := WriteTo(dir); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadDir(dir)
	if err != nil || len(written) < 6 {
		t.Fatalf("%d manifests, %v", len(written), err)
	}
	for _, file := range written {
		name := strings.TrimSuffix(file.Name(), ".yaml")
		s, notScheduled := ScheduledJob(name)
		j, err := Job(name)
		if (err == nil) == (notScheduled == nil) {
			t.Errorf("%s is a Job: %v, and a ScheduledJob: %v", name, err, notScheduled)
		}
		if notScheduled == nil {
			j.Name, j.Spec = s.Name, s.Spec.JobTemplate.Spec
			j.Spec.ManagedBy = cmp.Or(j.Spec.ManagedBy, ptr.To(v1alpha1.DefaultManagedBy)) // unless the manifest has another
		}
		if j.Name != name || ptr.Deref(j.Spec.ManagedBy, "") != v1alpha1.DefaultManagedBy {
			t.Errorf("%s holds Job %s of %q", file.Name(), j.Name, ptr.Deref(j.Spec.ManagedBy, ""))
		}
	}
	if _, err := Job(Example); err != nil {
		t.Errorf("the example: %v", err)
	}
	if _, err := Job("nonsense"); err == nil {
		t.Error("a manifest that is not there can be loaded")
	}
}
