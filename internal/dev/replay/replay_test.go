package replay_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

const (
	root   = "../../.."
	drawer = `"pgregory.net/rapid"`
	replay = `"github.com/jobstream/jobstream/internal/dev/replay"`
)

// TestWhatIsDrawnLeavesNoFile: every package whose tests draw imports package replay, and no file of an earlier run is left.
func TestWhatIsDrawnLeavesNoFile(t *testing.T) {
	draws, keeps := map[string]bool{}, map[string]bool{}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && name != ".":
			return fs.SkipDir
		case path.Ext(name) == ".fail" && strings.Contains(name, "testdata/rapid/"):
			t.Errorf("%s decides how later runs end: mend what it shows, and remove it with rm -r %s", name, path.Dir(path.Dir(name)))
		case !d.IsDir() && strings.HasSuffix(name, "_test.go"):
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			for _, i := range file.Imports {
				draws[path.Dir(name)] = draws[path.Dir(name)] || i.Path.Value == drawer
				keeps[path.Dir(name)] = keeps[path.Dir(name)] || i.Path.Value == replay
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	packages := 0
	for dir, yes := range draws {
		if yes {
			packages++
		}
		if yes && !keeps[dir] {
			t.Errorf("the tests of %s draw with rapid: let one of their files import _ %s", dir, replay)
		}
	}
	if packages == 0 {
		t.Error("no package was found that draws")
	}
}
