package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // what the user's other kubeconfigs may ask for

	"github.com/jobstream/jobstream/internal/controlplane"
)

// pluginNames are how kubectl finds "kubectl jobstream", and what the Tab key offers for it.
var pluginNames = []string{"kubectl-jobstream", "kubectl_complete-jobstream"}

// isPlugin reports whether the user has called kubectl's plugin: this program holds it, too, so that it is at hand wherever this
// program runs, and of the same version.
func isPlugin(program string) bool { return slices.Contains(pluginNames, filepath.Base(program)) }

// plugIn fills a folder for the user's PATH: the plugin, and kubectl where the user has none and it was built with the control plane.
func plugIn(dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, name := range pluginNames {
		if err := link(self, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	const kubectl = "kubectl"
	if _, err := exec.LookPath(kubectl); err == nil {
		return nil
	}
	assets, err := controlplane.Assets()
	if err != nil {
		return nil //nolint:nilerr // the user has another way to come by it
	}
	if built, err := exec.LookPath(filepath.Join(assets, kubectl)); err == nil {
		return link(built, filepath.Join(dir, kubectl))
	}
	return nil
}

// link makes a symbolic link, in place of one that is there.
func link(to, name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(to, name)
}

// quoted is a text as a shell takes it for one word.
func quoted(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.,:/", r)
	}
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool { return !plain(r) }) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
