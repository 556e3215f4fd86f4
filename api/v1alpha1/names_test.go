package v1alpha1_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNamesAreDocumented: a user finds every annotation and every label that the programs read or write in a document.
func TestNamesAreDocumented(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	var documents strings.Builder
	for _, page := range pages {
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		documents.Write(raw)
	}
	file, err := parser.ParseFile(token.NewFileSet(), "names.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasSuffix(spec.Names[0].Name, "Annotation") && !strings.HasSuffix(spec.Names[0].Name, "Label") {
			return true
		}
		sum, ok := spec.Values[0].(*ast.BinaryExpr) // Group + "/name"
		if !ok {
			return true
		}
		checked++
		if name := strings.Trim(sum.Y.(*ast.BasicLit).Value, `"`); !strings.Contains(documents.String(), "jobstream.dev"+name) {
			t.Errorf("no page of docs names jobstream.dev%s (%s)", name, spec.Names[0].Name)
		}
		return true
	})
	if checked < 10 {
		t.Errorf("only %d names found in names.go", checked)
	}
}
