package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"github.com/invopop/jsonschema"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/events"
)

// public is a public event. In its prototype everything that becomes a part of the subject holds the name of the parameter
// that it stands for.
type public struct {
	name      string
	prototype events.Public
}

// table has a line for every public event: a test finds those that are missing.
var table = []public{
	{"JobStart", events.JobStarted{Job: anything}},
	{"JobFinish", events.JobFinished{Job: anything, Result: "result"}},
	{"PodFinish", events.PodFinished{Job: anything, Result: "result"}},
	{"Tick", events.TickDecided{ScheduledJob: anything, Verdict: "verdict"}},
}

// cluster and anything are the parameters that all subjects have.
const cluster = "cluster"

var anything = events.Reference{Namespace: "namespace", Name: "name", UID: "uid"}

// parameters are the parts of subjects. Those that are not here are words of the type.
var parameters = map[string]string{
	cluster:     "The cluster's name (`--cluster-name`), escaped.",
	"namespace": "The namespace of the Job, or of the ScheduledJob.",
	"name":      "The name of the Job, or of the ScheduledJob, escaped: `tax.report` reads `tax=2Ereport`.",
	"result":    "How the Job has finished, or what the end of the Pod counts as, in lower case.",
	"verdict":   "What became of the nominal time, in lower case.",
}

// elsewhere are the constants of types from other packages.
var elsewhere = map[reflect.Type][]constant{
	reflect.TypeFor[batchv1.CompletionMode](): {{value: string(batchv1.NonIndexedCompletion)}, {value: string(batchv1.IndexedCompletion)}},
}

// constant is a value that a field may have.
type constant struct{ value, comment string }

// source is what the source of the package events has beyond what reflection finds.
type source struct {
	root      string
	comments  map[string]string     // by type, and by type and field
	constants map[string][]constant // by type
}

const module = "github.com/jobstream/jobstream"

// readSource reads the package events below the root.
func readSource(root string) (source, error) {
	here, err := importPath(root)
	if err != nil {
		return source{}, err
	}
	dir := filepath.Join(root, "events")
	var r jsonschema.Reflector
	if err := r.AddGoComments(here, dir, jsonschema.WithFullComment()); err != nil {
		return source{}, err
	}
	s := source{root: root, comments: r.CommentMap, constants: map[string][]constant{}}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return source{}, err
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return source{}, err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok {
				s.addConstant(spec)
			}
			return true
		})
	}
	return s, nil
}

// importPath is that of the folder in which we run: what the library wants to know to find out that of another.
func importPath(root string) (string, error) {
	top, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	below, err := filepath.Rel(top, here)
	if err != nil {
		return "", err
	}
	return path.Join(module, filepath.ToSlash(below)), nil
}

// addConstant notes "Started Verdict = "Started"" and its like.
func (s source) addConstant(spec *ast.ValueSpec) {
	of, ok := spec.Type.(*ast.Ident)
	if !ok || len(spec.Values) != 1 {
		return
	}
	literal, ok := spec.Values[0].(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return
	}
	if value, err := strconv.Unquote(literal.Value); err == nil {
		s.constants[of.Name] = append(s.constants[of.Name], constant{value, rename(oneLine(spec.Doc.Text()), spec.Names[0].Name, value)})
	}
}

// of are the constants of a type, none for a type that may have any value.
func (s source) of(t reflect.Type) []constant {
	if t.PkgPath() == path.Join(module, "events") {
		return s.constants[t.Name()]
	}
	return elsewhere[t]
}

// comment is that of a type, or of a field of it.
func (s source) comment(t reflect.Type, field string) string {
	return oneLine(s.comments[strings.TrimSuffix(t.PkgPath()+"."+t.Name()+"."+field, ".")])
}

// rename begins a comment with the name that subscribers know.
func rename(comment, from, to string) string {
	if rest, ok := strings.CutPrefix(comment, from+" "); ok {
		return to + " " + rest
	}
	return comment
}

func oneLine(comment string) string { return strings.Join(strings.Fields(comment), " ") }

// samples are the golden samples of the type, by the names of their files.
func (s source) samples(cloudEventType string) (map[string]json.RawMessage, error) {
	files, err := filepath.Glob(filepath.Join(s.root, "events", "testdata", "*.json"))
	if err != nil {
		return nil, err
	}
	out := map[string]json.RawMessage{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var is struct{ Type string }
		if err := json.Unmarshal(text, &is); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if is.Type == cloudEventType {
			out[strings.TrimSuffix(filepath.Base(name), ".json")] = bytes.TrimSpace(text)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no golden sample in events/testdata is a %s", cloudEventType)
	}
	return out, nil
}
