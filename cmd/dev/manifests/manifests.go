// Package manifests holds the Jobs that the demo applies: ordinary manifests, to be read, copied and applied by kubectl.
package manifests

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

//go:embed *.yaml
var files embed.FS

// Example is the one to try first: it is the name of its file and of its Job.
const Example = "squares"

// Load reads the Job of the file with that name, without ".yaml".
func Load(name string) (*batchv1.Job, error) {
	text, err := files.ReadFile(name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("manifest %s: %w", name, err)
	}
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(text, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("manifest %s: %w", name, err)
	}
	job, ok := object.(*batchv1.Job)
	if !ok {
		return nil, fmt.Errorf("manifest %s holds a %T, not a Job", name, object)
	}
	return job, nil
}

// WriteTo writes all manifests into the folder, for kubectl.
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
