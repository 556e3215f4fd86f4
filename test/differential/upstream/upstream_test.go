package upstream_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestLayouts compares the declarations of functions and types in this package with the source of the linked version: a link
// between two different signatures would read the wrong memory, and the linker does not check it.
func TestLayouts(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	if err != nil {
		t.Fatal(err)
	}
	root := strings.TrimSpace(string(out))
	theirs, ours := source{}, source{}
	theirs.read(t, filepath.Join(root, "pkg/controller/job"), "job.")
	theirs.read(t, filepath.Join(root, "pkg/apis/batch/validation"), "validation.")
	links := maps.Clone(types)
	maps.Copy(links, ours.read(t, ".", ""))
	for ourName, theirName := range links {
		want, ok := theirs[theirName]
		if !ok {
			t.Errorf("Kubernetes no longer has %s", theirName)
			continue
		}
		if got := ours[ourName]; !slices.Equal(got, want) {
			t.Errorf("%s is %v here\n%s is %v upstream", ourName, got, theirName, want)
		}
	}
	if len(links) < 20 {
		t.Errorf("only %d links are found", len(links))
	}
	t.Logf("%d functions and types agree with Kubernetes", len(links))
}

// types maps types of this package to those of Kubernetes. For functions, their //go:linkname does. BackoffStore and
// UIDExpectations are missing: they are used by pointer only.
var types = map[string]string{
	"Interval": "job.interval", "Intervals": "job.orderedIntervals", "BackoffRecord": "job.backoffRecord",
	"SyncJobCtx": "job.syncJobCtx", "UncountedTerminatedPods": "job.uncountedTerminatedPods",
}

// linkname matches the function of this package and that of Kubernetes, after the last slash of its package.
var linkname = regexp.MustCompile(`^//go:linkname (\w+) k8s\.io/\S*/(\w+\.\S+)$`)

// source holds the types of parameters and results of functions, and of fields of types, by name.
type source map[string][]string

// read records the declarations in the folder's files, and returns their links.
func (s source) read(t *testing.T, folder, prefix string) map[string]string {
	t.Helper()
	links := map[string]string{}
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no source in %s: %v", folder, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				s.function(prefix, d)
				if link := linked(d); link != nil {
					links[link[1]] = strings.NewReplacer("(", "", ")", "").Replace(link[2])
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if spec, ok := spec.(*ast.TypeSpec); ok {
						s[prefix+spec.Name.Name] = shape(spec.Type)
					}
				}
			}
		}
	}
	return links
}

// linked returns the function's match of linkname.
func linked(d *ast.FuncDecl) []string {
	if d.Doc == nil {
		return nil
	}
	for _, c := range d.Doc.List {
		if link := linkname.FindStringSubmatch(c.Text); link != nil {
			return link
		}
	}
	return nil
}

// function records a function; a method is a function whose first parameter is its receiver.
func (s source) function(prefix string, d *ast.FuncDecl) {
	types := slices.Concat(fields(d.Type.Params), []string{"->"}, fields(d.Type.Results))
	if d.Recv != nil {
		receiver := fields(d.Recv)
		prefix += text(d.Recv.List[0].Type) + "."
		types = append(receiver, types...)
	}
	s[prefix+d.Name.Name] = types
}

func shape(e ast.Expr) []string {
	if s, ok := e.(*ast.StructType); ok {
		return fields(s.Fields)
	}
	return []string{common(e)}
}

func fields(list *ast.FieldList) (out []string) {
	if list == nil {
		return nil
	}
	for _, f := range list.List {
		for range max(1, len(f.Names)) {
			out = append(out, common(f.Type))
		}
	}
	return out
}

// common returns a type in words that both sides share.
func common(e ast.Expr) string {
	return strings.NewReplacer("batchv1.", "batch.", "corev1.", "v1.", "[]interval", "[]Interval", "orderedIntervals", "Intervals",
		"*backoffStore", "*BackoffStore", "backoffRecord", "BackoffRecord", "*syncJobCtx", "*SyncJobCtx", "*job.Controller", "*Controller",
		"uncountedTerminatedPods", "UncountedTerminatedPods", "*uidTrackingExpectations", "*UIDExpectations").Replace(text(e))
}

func text(e ast.Expr) string {
	var b bytes.Buffer
	if err := printer.Fprint(&b, token.NewFileSet(), e); err != nil {
		return err.Error()
	}
	return b.String()
}
