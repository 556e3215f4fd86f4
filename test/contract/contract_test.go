package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/jobstream/jobstream/events"
)

const root = "../.."

// all describes every event of the table.
func all(t *testing.T) []described {
	t.Helper()
	s, err := readSource(root)
	if err != nil {
		t.Fatal(err)
	}
	var out []described
	for _, e := range table {
		d, err := s.describe(e)
		if err != nil {
			t.Fatalf("%s: %v", e.name, err)
		}
		out = append(out, d)
	}
	return out
}

// compile reads a schema as a subscriber would, and takes formats such as date-time seriously.
func compile(t *testing.T, path string) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	s, err := c.Compile(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func schemaOf(t *testing.T, d described) *jsonschema.Schema {
	t.Helper()
	return compile(t, filepath.Join(root, schemas, d.cloudEventType+".json"))
}

// read parses JSON into what the validator understands.
func read(t *testing.T, text []byte) map[string]any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v.(map[string]any)
}

// TestFilesAreWhatTheTypesSay: the files fit the types, which were not changed without "make contract"; nor were the files by
// hand.
func TestFilesAreWhatTheTypesSay(t *testing.T) {
	files, err := contract(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(root, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the types say (%v): run \"make contract\"", name, err)
		}
	}
	have, err := filepath.Glob(filepath.Join(root, schemas, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(have) != len(table) {
		t.Errorf("%d files in %s, for %d types: run \"make contract\"", len(have), schemas, len(table))
	}
}

// TestEveryPublicEventIsInTheTable: a type with a method kind() is an event for subscribers.
func TestEveryPublicEventIsInTheTable(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "events", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var want, have []string
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil && f.Name.Name == "kind" {
				want = append(want, fmt.Sprint(f.Recv.List[0].Type))
			}
		}
	}
	for _, e := range table {
		have = append(have, reflect.TypeOf(e.prototype).Name())
	}
	slices.Sort(want)
	slices.Sort(have)
	if len(want) == 0 || !slices.Equal(want, have) {
		t.Errorf("the table has %v, the package events %v", have, want)
	}
}

// TestGoldenSamplesAreValid: the golden samples, which pin what is sent, satisfy the schemas.
func TestGoldenSamplesAreValid(t *testing.T) {
	for _, d := range all(t) {
		s := schemaOf(t, d)
		for name, text := range d.samples {
			if err := s.Validate(read(t, text)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestLeastEventsAreValid: an event with only the required properties is valid.
func TestLeastEventsAreValid(t *testing.T) {
	job, at := events.Reference{Namespace: "n", Name: "j", UID: "u"}, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	least := map[string]events.Public{
		"JobStart":  events.JobStarted{Job: job, Start: at, CompletionMode: "NonIndexed"},
		"JobFinish": events.JobFinished{Job: job, Result: events.JobFailed, End: at},
		"PodFinish": events.PodFinished{Job: job, Pod: job, Result: events.PodFailed, End: at},
		"Tick":      events.TickDecided{ScheduledJob: job, Verdict: events.Started, Nominal: at, Count: 1},
	}
	for _, d := range all(t) {
		e := least[d.name]
		if e == nil {
			t.Errorf("%s: add its smallest event here", d.name)
			continue
		}
		text, err := events.EncodePublic("c", e)
		if err != nil {
			t.Fatal(err)
		}
		if err := schemaOf(t, d).Validate(read(t, text)); err != nil {
			t.Errorf("%s: %v", d.name, err)
		}
	}
}

// TestSchemasRefuse: the schemas reject wrong events.
func TestSchemasRefuse(t *testing.T) {
	for _, d := range all(t) {
		s := schemaOf(t, d)
		for name, text := range d.samples {
			wrong := map[string]any{"specversion": "0.3", "id": "", "source": ":", "type": "other", "subject": 5, "datacontenttype": "text/plain",
				"time": "noon", "partitionkey": 5, "sequence": 5, "data": "text"}
			sample := read(t, text)
			for attribute := range sample {
				broken := read(t, text)
				delete(broken, attribute)
				if s.Validate(broken) == nil {
					t.Errorf("%s is valid without %s", name, attribute)
				}
				broken[attribute] = wrong[attribute]
				if s.Validate(broken) == nil {
					t.Errorf("%s is valid with %s %v", name, attribute, wrong[attribute])
				}
			}
			for field, value := range sample["data"].(map[string]any) {
				broken := read(t, text)
				data := broken["data"].(map[string]any)
				data[field] = true
				if s.Validate(broken) == nil {
					t.Errorf("%s is valid with true for %s", name, field)
				}
				if v, ok := value.(string); ok && strings.HasSuffix(v, "Z") {
					data[field] = "2026-01-02 03:04"
					if s.Validate(broken) == nil {
						t.Errorf("%s is valid with a time that is none for %s", name, field)
					}
				}
			}
		}
	}
}

// TestOnlyAdditions: a client that validates with today's schema accepts tomorrow's additions: attributes, fields, verdicts,
// results.
func TestOnlyAdditions(t *testing.T) {
	for _, d := range all(t) {
		s := schemaOf(t, d)
		for name, text := range d.samples {
			later := read(t, text)
			later["traceparent"] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
			data := later["data"].(map[string]any)
			data["newField"] = map[string]any{"a": 1}
			for _, field := range []string{"verdict", "result", "completionMode", "reason"} {
				if data[field] != nil {
					data[field] = "New"
				}
			}
			if err := s.Validate(later); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestConstantsAreInTheSchema: the schema has every verdict and result.
func TestConstantsAreInTheSchema(t *testing.T) {
	results := map[string][]any{
		"JobFinish": {string(events.JobSucceeded), string(events.JobFailed)},
		"PodFinish": {string(events.PodSucceeded), string(events.PodFailed), string(events.PodIgnored)},
	}
	for _, d := range all(t) {
		for field, want := range map[string][]any{
			"verdict":        {string(events.Started), string(events.Skipped), string(events.Missed), string(events.Blocked), string(events.NotCreated)},
			"result":         results[d.name],
			"completionMode": {"NonIndexed", "Indexed"},
		} {
			if s, ok := d.data.Properties.Get(field); ok && !reflect.DeepEqual(s.AnyOf[0].Enum, want) {
				t.Errorf("%s: %s is one of %v, want %v", d.name, field, s.AnyOf[0].Enum, want)
			}
		}
	}
}

// TestEverythingIsDescribed: every property of every event has a description.
func TestEverythingIsDescribed(t *testing.T) {
	var look func(path string, s map[string]any) int
	look = func(path string, s map[string]any) (n int) {
		properties, _ := s["properties"].(map[string]any)
		for name, p := range properties {
			p := p.(map[string]any)
			if p["description"] == nil && path+"/"+name != "/data" {
				t.Errorf("%s/%s has no description: comment the field in events/", path, name)
			}
			n += 1 + look(path+"/"+name, p)
		}
		return n
	}
	for _, d := range all(t) {
		text, err := os.ReadFile(filepath.Join(root, schemas, d.cloudEventType+".json"))
		if err != nil {
			t.Fatal(err)
		}
		if n := look("", read(t, text)); n < 15 || d.comment == "" {
			t.Errorf("%s: %d properties, %q", d.name, n, d.comment)
		}
	}
}
