package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // authentication plugins for the user's other kubeconfigs

	"github.com/jobstream/jobstream/internal/dev/controlplane"
)

// pluginNames are the file names by which kubectl finds "kubectl jobstream" and its completion.
var pluginNames = []string{"kubectl-jobstream", "kubectl_complete-jobstream"}

// isPlugin reports whether the user has called kubectl's plugin. This program contains the plugin, so that it is always at hand
// and has the same version.
func isPlugin(program string) bool { return slices.Contains(pluginNames, filepath.Base(program)) }

// plugIn fills a folder for the user's PATH: the plugin, and the kubectl built with the control plane if the user has none.
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
		return nil //nolint:nilerr // the user can install kubectl in another way
	}
	if built, err := exec.LookPath(filepath.Join(assets, kubectl)); err == nil {
		return link(built, filepath.Join(dir, kubectl))
	}
	return nil
}

// link makes a symbolic link, and replaces an existing one.
func link(to, name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(to, name)
}

// quoted quotes a text as one word for a shell.
func quoted(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.,:/", r)
	}
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool { return !plain(r) }) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
