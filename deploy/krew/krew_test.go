package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// plugin is krew's manifest, v1alpha2: pkg/index/types.go of sigs.k8s.io/krew.
type plugin struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Version          string     `json:"version"`
		ShortDescription string     `json:"shortDescription"`
		Description      string     `json:"description"`
		Caveats          string     `json:"caveats"`
		Homepage         string     `json:"homepage"`
		Platforms        []platform `json:"platforms"`
	} `json:"spec"`
}

type platform struct {
	URI      string                `json:"uri"`
	SHA256   string                `json:"sha256"`
	Selector *metav1.LabelSelector `json:"selector"`
	Files    []struct {
		From string `json:"from"`
		To   string `json:"to"`
	} `json:"files"`
	Bin string `json:"bin"`
}

// valid returns the error that krew would report: internal/index/validation of sigs.k8s.io/krew, and the length that its guide to
// manifests requires of a short description.
func valid(p plugin, name string) error {
	s := p.Spec
	switch {
	case p.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || p.Kind != "Plugin":
		return fmt.Errorf("it is a %s of %s", p.Kind, p.APIVersion)
	case p.Name != name || !regexp.MustCompile(`^[\w-]+$`).MatchString(name):
		return fmt.Errorf("it is called %q", p.Name)
	case s.ShortDescription == "" || strings.ContainsAny(s.ShortDescription, "\r\n") || len(s.ShortDescription) > 60:
		return fmt.Errorf("its short description is %q", s.ShortDescription)
	case !semver.MatchString(s.Version):
		return fmt.Errorf("its version is %q", s.Version)
	case len(s.Platforms) == 0:
		return errors.New("it has no platforms")
	}
	for _, pl := range s.Platforms {
		switch {
		case pl.URI == "" || pl.Bin == "" || len(pl.Files) == 0 || !regexp.MustCompile(`^[a-f0-9]{64}$`).MatchString(pl.SHA256):
			return fmt.Errorf("a platform is %+v", pl)
		case pl.Selector == nil || len(pl.Selector.MatchLabels) != 2 || pl.Selector.MatchLabels["os"] == "" || pl.Selector.MatchLabels["arch"] == "":
			return fmt.Errorf("a platform has the selector %v", pl.Selector)
		}
		for _, f := range pl.Files {
			if f.From == "" || f.To == "" {
				return fmt.Errorf("a platform has the files %+v", pl.Files)
			}
		}
	}
	return nil
}

// unpack installs an archive into a folder, as krew does, and returns the file names.
func unpack(t *testing.T, packed []byte, dir string) (names []string) {
	t.Helper()
	zipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	for archive := tar.NewReader(zipped); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, h.Name), text, os.FileMode(h.Mode)); err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
	}
}

// krew accepts the manifest, and its content exists: the sum is that of the archive, and the program in it runs.
func TestRelease(t *testing.T) {
	out := t.TempDir()
	r := release{Version: "v0.1.0-rc.1", Base: "https://example.com/v0.1.0/", Out: out, Source: "../..", Platforms: []string{runtime.GOOS + "/" + runtime.GOARCH}}
	if err := r.build(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(out, "jobstream.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var p plugin
	if err := yaml.UnmarshalStrict(text, &p); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	if err := valid(p, "jobstream"); err != nil || len(p.Spec.Platforms) != 1 || p.Spec.Version != r.Version {
		t.Fatalf("%v:\n%s", err, text)
	}
	pl := p.Spec.Platforms[0]
	if l := pl.Selector.MatchLabels; l["os"] != runtime.GOOS || l["arch"] != runtime.GOARCH || !strings.HasPrefix(pl.URI, "https://example.com/v0.1.0/kubectl-jobstream_") {
		t.Errorf("the platform is %+v", pl)
	}
	packed, err := os.ReadFile(filepath.Join(out, path.Base(pl.URI)))
	if err != nil {
		t.Fatal(err)
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256(packed)); sum != pl.SHA256 {
		t.Errorf("the sum of the archive is %s, the manifest says %s", sum, pl.SHA256)
	}
	dir := t.TempDir()
	names := strings.Join(unpack(t, packed, dir), " ")
	for _, f := range pl.Files {
		if f.To != "." || !strings.Contains(names, f.From) {
			t.Errorf("of %s, %+v is to be copied", names, f)
		}
	}
	said, err := exec.CommandContext(t.Context(), filepath.Join(dir, pl.Bin), "--help").CombinedOutput()
	if err != nil || !strings.Contains(string(said), "\n  kubectl jobstream COMMAND\n") {
		t.Errorf("the program says %s, %v", said, err)
	}
}

// Archives contain no time and no user name.
func TestPackIsReproducible(t *testing.T) {
	file := filepath.Join(t.TempDir(), "program")
	var sums [2][]byte
	for i := range sums {
		if err := os.WriteFile(file, []byte("the same"), 0o600); err != nil {
			t.Fatal(err)
		}
		var packed bytes.Buffer
		if err := pack(&packed, file); err != nil {
			t.Fatal(err)
		}
		sums[i] = packed.Bytes()
	}
	if !bytes.Equal(sums[0], sums[1]) {
		t.Error("two archives of the same file differ")
	}
}

func TestWrongReleases(t *testing.T) {
	for _, tt := range []struct{ name, version, base, says string }{
		{"no version", "", "https://example.com", `the version "" is none: write make krew VERSION=v0.1.0 BASE=https://…`},
		{"a version without v", "0.1.0", "https://example.com", `the version "0.1.0" is none`},
		{"no base", "v0.1.0", "", `the base "" is no URL: write that of the folder that the archives will be in: make krew VERSION=v0.1.0 BASE=https://…`},
		{"a base that is a folder", "v0.1.0", "/tmp/x", `the base "/tmp/x" is no URL`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := (release{Version: tt.version, Base: tt.base}).build(t.Context()); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("want %q, got %v", tt.says, err)
			}
		})
	}
}
