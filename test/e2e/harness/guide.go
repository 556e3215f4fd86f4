package harness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobstream/jobstream/internal/dev/controlplane"
)

// Guide is a document whose commands a test follows, word for word, as an administrator of the System's cluster.
type Guide struct {
	path, text string
	dir        string // of the commands
	env        []string
}

// Guide opens a document of the repository. Its commands find kubectl, jobstream's programs by their names, and the variables.
func (s *System) Guide(t testing.TB, document string, variables ...string) *Guide {
	t.Helper()
	assets, err := controlplane.Assets()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(Root, document))
	if err != nil {
		t.Fatal(err)
	}
	deploy, err := filepath.Abs(filepath.Join(Root, "deploy"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir() // files of the commands are deleted with the test
	if err := os.Symlink(deploy, filepath.Join(dir, "deploy")); err != nil {
		t.Fatal(err)
	}
	path := strings.Join([]string{assets, filepath.Dir(s.config.Programs.Reconciler), os.Getenv("PATH")}, string(os.PathListSeparator))
	return &Guide{path: document, text: string(text), dir: dir, env: append([]string{"PATH=" + path, "KUBECONFIG=" + s.ControlPlane.Kubeconfig(), "HOME=" + dir}, variables...)}
}

// Follow runs all commands of the section, and returns what they printed. A command that fails fails the test.
func (g *Guide) Follow(t testing.TB, section string) string {
	t.Helper()
	out, err := g.follow(t.Context(), section)
	t.Logf("%s, %q:\n%s", g.path, section, out)
	if err != nil {
		t.Fatalf("%s, %q: %v", g.path, section, err)
	}
	return out
}

func (g *Guide) follow(ctx context.Context, section string) (string, error) {
	_, rest, found := strings.Cut(g.text, "# "+section+"\n")
	if !found {
		return "", fmt.Errorf("there is no such section")
	}
	if end := strings.Index(rest, "\n#"); end >= 0 {
		rest = rest[:end]
	}
	var script strings.Builder
	for block := range strings.SplitSeq(rest, "```sh\n") {
		if commands, _, closed := strings.Cut(block, "```"); closed {
			script.WriteString(commands)
		}
	}
	return g.Run(ctx, script.String())
}

// Run runs a script in the environment of the guide's commands.
func (g *Guide) Run(ctx context.Context, script string) (string, error) {
	c := exec.CommandContext(ctx, "bash", "-e", "-o", "pipefail", "-c", script)
	c.Dir, c.Env = g.dir, g.env
	out, err := c.CombinedOutput()
	return string(out), err
}
