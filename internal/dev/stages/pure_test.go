package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPureStartsNoGoroutine: the race detector finds nothing in the packages that "make unit" runs without it.
func TestPureStartsNoGoroutine(t *testing.T) {
	const root = "../../.."
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^PURE = ((?:.*\\\n)*.*)$`).FindSubmatch(makefile)
	if m == nil {
		t.Fatal("the Makefile has no PURE")
	}
	files := 0
	for _, pattern := range strings.Fields(strings.ReplaceAll(string(m[1]), "\\\n", " ")) {
		folder, below := strings.CutSuffix(pattern, "/...")
		folder = filepath.Join(root, folder)
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && path != folder && !below:
				return fs.SkipDir
			case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
				files++
				return startsNoGoroutine(t, path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 100 {
		t.Errorf("only %d files are read", files)
	}
}

// startsNoGoroutine looks for go statements, and for calls of the method Go, which groups have.
func startsNoGoroutine(t *testing.T, path string) error {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		s, method := n.(*ast.SelectorExpr)
		if _, starts := n.(*ast.GoStmt); starts || method && s.Sel.Name == "Go" {
			t.Errorf("%s starts a goroutine: remove its package from PURE in the Makefile", path)
		}
		return true
	})
	return nil
}
