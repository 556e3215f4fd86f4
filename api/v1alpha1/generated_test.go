package v1alpha1_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// TestGenerated generates the files again with the Makefile's recipe, and compares. "make unit" builds the generator.
func TestGenerated(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	cache := os.Getenv("CACHE")
	if cache == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		cache = filepath.Join(dir, "jobstream")
	}
	program := filepath.Join(cache, "bin", string(regexp.MustCompile(`controller-gen-v[0-9.]+`).Find(makefile)))
	if _, err := os.Stat(program); err != nil {
		t.Skip("needs controller-gen, which \"make generate\" builds: ", err)
	}
	dir := t.TempDir()
	c := exec.CommandContext(t.Context(), "make", "-C", "../..", "generate", "GENERATED="+dir, "CACHE="+cache)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"api/v1alpha1/zz_generated.deepcopy.go", "deploy/crd/scheduledjobs.yaml"} {
		have, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(have, want) {
			t.Errorf("%s is not what \"make generate\" makes: run it", name)
		}
	}
}
