// Command krew builds what krew, the package manager of kubectl's plugins, needs to install kubectl jobstream: an archive for
// each platform, and the manifest that lists them with their sums. "make krew" runs it in the root of the repository.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"
)

// manifest is the template.
//
//go:embed jobstream.yaml
var manifest string

// program is the plugin's name, in the archive and for krew.
const program = "kubectl-jobstream"

// release describes what to build.
type release struct {
	// Version is a semantic one with a v before it; Base is the URL of the folder that the archives will be in.
	Version, Base string
	// Out is the folder to write to, Source the root of the repository.
	Out, Source string
	// Platforms are of the form linux/amd64.
	Platforms []string
}

// archive is the archive of one platform.
type archive struct{ OS, Arch, File, SHA256 string }

func main() {
	r := release{Source: "."}
	platforms := ""
	flag.StringVar(&r.Version, "version", "", "`version`, such as v0.1.0")
	flag.StringVar(&r.Base, "base", "", "`URL` of the folder that the archives will be in")
	flag.StringVar(&r.Out, "out", "bin/krew", "`folder` to write to")
	flag.StringVar(&platforms, "platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64", "`list` of platforms")
	flag.Parse()
	r.Platforms = strings.Split(platforms, ",")
	if err := r.build(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// semver matches the versions that krew accepts (https://semver.org), with a v before them.
var semver = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)

// check returns an error for values that krew would reject later.
func (r release) check() error {
	if !semver.MatchString(r.Version) {
		return fmt.Errorf("the version %q is none: write make krew VERSION=v0.1.0 BASE=https://…", r.Version)
	}
	if u, err := url.Parse(r.Base); err != nil || u.Scheme == "" || u.Host == "" || strings.ContainsAny(r.Base, " \n#") {
		return fmt.Errorf("the base %q is no URL: write that of the folder that the archives will be in: make krew VERSION=%s BASE=https://…", r.Base, r.Version)
	}
	return nil
}

// build writes the archives and the manifest.
func (r release) build(ctx context.Context) error {
	if err := r.check(); err != nil {
		return err
	}
	if err := os.MkdirAll(r.Out, 0o755); err != nil {
		return err
	}
	var archives []archive
	for _, platform := range r.Platforms {
		goos, goarch, ok := strings.Cut(platform, "/")
		if !ok {
			return fmt.Errorf("the platform %q is none: write it as in linux/amd64", platform)
		}
		a, err := r.archive(ctx, goos, goarch)
		if err != nil {
			return fmt.Errorf("build the archive for %s: %w", platform, err)
		}
		archives = append(archives, a)
		fmt.Println(filepath.Join(r.Out, a.File))
	}
	var text bytes.Buffer
	err := template.Must(template.New("manifest").Parse(manifest)).Execute(&text, struct {
		Version, Base string
		Archives      []archive
	}{r.Version, strings.TrimSuffix(r.Base, "/"), archives})
	if err != nil {
		return err
	}
	_, filled, _ := strings.Cut(text.String(), "apiVersion:") // without the template's own comment
	path := filepath.Join(r.Out, "jobstream.yaml")
	fmt.Println(path)
	return os.WriteFile(path, []byte("apiVersion:"+filled), 0o644)
}

// archive builds the plugin for a platform, and writes it into an archive. The same source gives the same bytes.
func (r release) archive(ctx context.Context, goos, goarch string) (a archive, err error) {
	dir, err := os.MkdirTemp("", "jobstream-krew-")
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	binary := filepath.Join(dir, program)
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", binary, "./cmd/"+program)
	build.Dir, build.Env = r.Source, append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch)
	if out, err := build.CombinedOutput(); err != nil {
		return a, fmt.Errorf("%w\n%s", err, out)
	}
	var packed bytes.Buffer
	if err := pack(&packed, binary, filepath.Join(r.Source, "LICENSE")); err != nil {
		return a, err
	}
	a = archive{OS: goos, Arch: goarch, File: fmt.Sprintf("%s_%s_%s_%s.tar.gz", program, r.Version, goos, goarch), SHA256: fmt.Sprintf("%x", sha256.Sum256(packed.Bytes()))}
	return a, os.WriteFile(filepath.Join(r.Out, a.File), packed.Bytes(), 0o644)
}

// pack writes an archive of the files, under their own names and without times and owners. The first is a program.
func pack(out *bytes.Buffer, files ...string) error {
	zipped := gzip.NewWriter(out)
	archive := tar.NewWriter(zipped)
	for i, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		mode := int64(0o644)
		if i == 0 {
			mode = 0o755
		}
		if err := archive.WriteHeader(&tar.Header{Name: filepath.Base(file), Mode: mode, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
			return err
		}
		if _, err := archive.Write(text); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), zipped.Close())
}
