// Package manifests holds the manifests that the demo applies. Users may read, copy and apply them with kubectl.
package manifests

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

//go:embed *.yaml
var files embed.FS

// Example is the manifest to try first: the name of the file and of its Job.
const Example = "squares"

// Job reads the Job of the file with that name, without ".yaml".
func Job(name string) (*batchv1.Job, error) {
	job := &batchv1.Job{}
	return job, load(name, batchv1.SchemeGroupVersion.WithKind("Job"), job)
}

// ScheduledJob reads the ScheduledJob of the file with that name, without ".yaml".
func ScheduledJob(name string) (*v1alpha1.ScheduledJob, error) {
	schedule := &v1alpha1.ScheduledJob{}
	return schedule, load(name, v1alpha1.GroupVersion.WithKind(v1alpha1.ScheduledJobKind), schedule)
}

// load reads an object of the kind. An unknown field is an error.
func load(name string, kind schema.GroupVersionKind, into runtime.Object) error {
	text, err := files.ReadFile(name + ".yaml")
	if err == nil {
		err = yaml.UnmarshalStrict(text, into)
	}
	if got := into.GetObjectKind().GroupVersionKind(); err == nil && got != kind {
		err = fmt.Errorf("it holds a %s", got.Kind)
	}
	if err != nil {
		return fmt.Errorf("manifest %s of a %s: %w", name, kind.Kind, err)
	}
	return nil
}

// WriteTo writes all manifests into the folder, for use with kubectl.
func WriteTo(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return err
	}
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}
