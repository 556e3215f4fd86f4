package parity

import (
	"embed"
	"os"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

// documentation is the folder with the Job manifests of the Kubernetes documentation, beside the repository.
const documentation = harness.Root + "/../shared/data/manifests"

//go:embed testdata/*.yaml
var own embed.FS

// available returns an error if the manifest is missing.
func (c Case) available() error {
	if !c.Documented {
		return nil
	}
	_, err := os.Stat(filepath.Join(documentation, c.File))
	return err
}

// read reads the manifest, with the folder of the run in place of {{dir}}. For a CronJob it returns the Job that it creates.
func (c Case) read(t testing.TB, dir string) *batchv1.Job {
	t.Helper()
	var text []byte
	var err error
	if c.Documented {
		text, err = os.ReadFile(filepath.Join(documentation, c.File))
	} else {
		text, err = own.ReadFile("testdata/" + c.File)
	}
	if err != nil {
		t.Fatal(err)
	}
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(strings.ReplaceAll(string(text), "{{dir}}", dir)), nil, nil)
	if err != nil {
		t.Fatalf("%s: %v", c.File, err)
	}
	switch o := object.(type) {
	case *batchv1.Job:
		return o
	case *batchv1.CronJob:
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: o.Name}, Spec: o.Spec.JobTemplate.Spec}
	}
	t.Fatalf("%s is a %T", c.File, object)
	return nil
}

// Manifests returns the names of this repository's manifests.
func Manifests() (names []string) {
	entries, err := own.ReadDir("testdata")
	if err != nil {
		panic(err) // it is part of the program
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
