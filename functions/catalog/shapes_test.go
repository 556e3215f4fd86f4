package catalog_test

import (
	"bufio"
	"encoding"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/catalog"
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/functions/job"
	"github.com/jobstream/jobstream/internal/zone"
)

// During every upgrade two versions of the programs meet: in the state of each object and in the facts on the bus. Both carry the
// version that wrote them, and that has to be true:
//
//	a State    any change in it, or in what its function observes, raises the Version of the function. Both directions
//	           break otherwise: an older program writes back a state without the fields that it lacks, and a newer one trusts a
//	           state in which a field was never set, or an event not observed. States of other versions are forgotten, and
//	           inventory is taken, which is always right.
//	a fact     may get another optional field (omitempty, omitzero): an older program does not read it, and for a newer one
//	           its absence is a valid value, whatever its type, if that type is new to the fact. A field that is removed, gets another name or type, or is
//	           required raises the fact's version: it is another fact then, which other versions do not mistake for theirs.
//
// The golden file has the shapes as they were when the version was last raised. To change one, raise the version that the test
// names, and update the file:
//
//	go test ./functions/catalog -run TestShapes -update
//
// -update fails if a needed version was not raised. A second change on the same branch needs no second version: restore the file
// of main first (git checkout main -- functions/catalog/testdata/shapes.txt), since main has the version that others run.
var update = flag.Bool("update", false, "write testdata/shapes.txt anew, where no version is missing")

func TestShapes(t *testing.T) {
	path := filepath.Join("testdata", "shapes.txt")
	was, err := readShapes(path)
	if err != nil {
		t.Fatal(err)
	}
	now := shapesNow(t)
	missing := missingVersions(was, now)
	for _, m := range missing {
		t.Error(m)
	}
	switch {
	case len(missing) > 0:
	case *update:
		if err := os.WriteFile(path, []byte(text(now)), 0o600); err != nil {
			t.Fatal(err)
		}
	case text(was) != text(now):
		t.Errorf("shapes have changed, and their versions say so or need not: run\n\tgo test ./functions/catalog -run TestShapes -update\n%s", diff(was, now))
	}
}

// shape is how something is encoded, one line for each field.
type shape struct {
	name    string // "state of job", "fact JobObserved"
	version int
	lines   []string
}

func (s shape) fact() bool { return strings.HasPrefix(s.name, "fact ") }

// missingVersions returns what has changed without a new version, and what to do about it.
func missingVersions(was, now []shape) (all []string) {
	for _, n := range now {
		i := slices.IndexFunc(was, func(w shape) bool { return w.name == n.name })
		if i < 0 {
			continue
		}
		w := was[i]
		gone, added := less(w.lines, n.lines), less(n.lines, w.lines)
		if n.fact() {
			known := map[string]bool{}
			for _, line := range w.lines {
				known[structOf(line)] = true
			}
			added = slices.DeleteFunc(added, func(line string) bool { return strings.HasSuffix(line, optional) || !known[structOf(line)] })
		}
		where := "raise Version in functions/" + strings.TrimPrefix(n.name, "state of ")
		if n.fact() {
			where = fmt.Sprintf("add %q with %d to versions in events/codec.go", strings.TrimPrefix(n.name, "fact "), w.version+1)
		}
		switch {
		case n.version < w.version:
			all = append(all, fmt.Sprintf("%s: version %d comes after %d: a version is never used again", n.name, n.version, w.version))
		case n.version == w.version && len(gone)+len(added) > 0:
			all = append(all, fmt.Sprintf("%s has changed and its version has not: %s, then run\n\tgo test ./functions/catalog -run TestShapes -update\n-\t%s\n+\t%s",
				n.name, where, strings.Join(gone, "\n-\t"), strings.Join(added, "\n+\t")))
		}
	}
	return all
}

// structOf returns the name of the struct whose field a line is. A struct that is new is reached by fields that are new: these have to
// be optional, or belong to another new one.
func structOf(line string) string {
	field, _, _ := strings.Cut(line, " ")
	return field[:max(0, strings.LastIndex(field, "."))]
}

func TestWhatNeedsAVersion(t *testing.T) {
	was := []shape{
		{"state of job", 5, []string{"State.Known bool", "State.Next int"}},
		{"fact JobGone", 1, []string{"JobGone.name string", "JobGone.version uint64 optional"}},
	}
	state := func(version int, lines ...string) shape { return shape{"state of job", version, lines} }
	fact := func(version int, lines ...string) shape { return shape{"fact JobGone", version, lines} }
	tests := []struct {
		name string
		now  shape
		want string // in what is said; "" for nothing
	}{
		{"nothing has changed", was[0], ""},
		{"a state has one more field", state(5, "State.Known bool", "State.Next int", "State.More int optional"), "raise Version in functions/job"},
		{"a state has one less", state(5, "State.Known bool"), "raise Version in functions/job"},
		{"a state's field has another type", state(5, "State.Known bool", "State.Next int32"), "-\tState.Next int\n"},
		{"a function observes something new", state(5, "observes JobMoved.v1", "State.Known bool", "State.Next int"), "+\tobserves JobMoved.v1"},
		{"a state has changed and so has its version", state(6, "State.Known bool"), ""},
		{"only the version has changed", state(6, was[0].lines...), ""},
		{"a version is used again", state(4, "State.Known bool"), "version 4 comes after 5"},
		{"a fact has an optional field more", fact(1, "JobGone.name string", "JobGone.version uint64 optional", "JobGone.why string optional"), ""},
		{"a fact has an optional field more, of a type with a required one", fact(1, "JobGone.name string", "JobGone.version uint64 optional", "JobGone.why *Why optional", "Why.word string"), ""},
		{"a fact has a required field more, of a type that is new", fact(1, "JobGone.name string", "JobGone.version uint64 optional", "JobGone.why Why", "Why.word string"), `add "JobGone" with 2`},
		{"a fact has a required field more", fact(1, "JobGone.name string", "JobGone.version uint64 optional", "JobGone.why string"), `add "JobGone" with 2 to versions in events/codec.go`},
		{"a fact has lost a field", fact(1, "JobGone.name string"), `add "JobGone" with 2`},
		{"a fact's field must be there now", fact(1, "JobGone.name string", "JobGone.version uint64"), `add "JobGone" with 2`},
		{"a fact has changed and so has its version", fact(2, "JobGone.name string"), ""},
		{"a fact is new", shape{"fact JobMoved", 1, []string{"JobMoved.name string"}}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := strings.Join(missingVersions(was, []shape{test.now}), "\n")
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// less returns the lines of a that are not in b.
func less(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(line string) bool { return slices.Contains(b, line) })
}

// diff returns the shapes that were added and removed, line by line.
func diff(was, now []shape) string {
	a, b := strings.Split(text(was), "\n"), strings.Split(text(now), "\n")
	return "-\t" + strings.Join(less(a, b), "\n-\t") + "\n+\t" + strings.Join(less(b, a), "\n+\t")
}

func shapesNow(t *testing.T) (all []shape) {
	for _, f := range catalog.All(job.DefaultLimits(), zone.Load) {
		all = append(all, stateShape(t, f))
	}
	for _, e := range events.Facts() {
		w := walker{t: t, tag: "json", own: jsonOwn}
		w.walk(reflect.TypeOf(e))
		all = append(all, shape{name: "fact " + string(e.Type()), version: e.Type().Version(), lines: w.lines})
	}
	return all
}

func stateShape(t *testing.T, f fn.Registered) shape {
	var observes []string
	for _, e := range f.Wakes {
		observes = append(observes, "observes "+e.Versioned())
	}
	slices.Sort(observes)
	w := walker{t: t, tag: "cbor", own: cborOwn}
	w.walk(f.State)
	return shape{name: "state of " + f.Name, version: f.Version, lines: append(observes, w.lines...)}
}

// walker records how the encoders of the standard library and of fxamacker/cbor see a type.
type walker struct {
	t     testing.TB
	tag   string
	own   []reflect.Type // interfaces by which a type encodes itself
	seen  map[reflect.Type]bool
	lines []string
}

var (
	jsonOwn = []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()}
	cborOwn = []reflect.Type{reflect.TypeFor[cbor.Marshaler](), reflect.TypeFor[encoding.BinaryMarshaler]()}
)

const (
	optional = " optional"
	house    = "github.com/jobstream/jobstream/"
)

// walk records the fields of a struct, and of all that it contains, each type once, and returns the name of the type.
func (w *walker) walk(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return "time"
	case slices.ContainsFunc(w.own, func(i reflect.Type) bool { return t.Implements(i) || reflect.PointerTo(t).Implements(i) }) && t.Kind() != reflect.Pointer:
		if strings.HasPrefix(t.PkgPath(), house) {
			w.t.Errorf("%v encodes itself, so that this test cannot see when its encoding changes: let its fields be encoded", t)
		}
		return name(t) + " (encodes itself)"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + w.walk(t.Elem())
	case reflect.Slice:
		return "[]" + w.walk(t.Elem())
	case reflect.Map:
		return "map[" + w.walk(t.Key()) + "]" + w.walk(t.Elem())
	case reflect.Struct:
		w.fields(t)
		return name(t)
	case reflect.Interface, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		w.t.Errorf("%v has no shape that a test could see", t)
	}
	return t.Kind().String()
}

// fields records the fields of a struct: in an array their order counts, in a map their names.
func (w *walker) fields(t reflect.Type) {
	if w.seen == nil {
		w.seen = map[reflect.Type]bool{}
	}
	if w.seen[t] {
		return
	}
	w.seen[t] = true
	array, n := false, 0
	at := len(w.lines)
	var lines []string
	used := map[string]bool{}
	for f := range fieldsOf(t, w.tag == "cbor") {
		tag, tagged := f.Tag.Lookup(w.tag)
		if !tagged {
			tag = f.Tag.Get("json") // as fxamacker/cbor does
		}
		key, options, _ := strings.Cut(tag, ",")
		if f.Name == "_" {
			array = w.tag == "cbor" && strings.Contains(options, "toarray")
			continue
		}
		if !f.IsExported() && !f.Anonymous || tag == "-" {
			continue
		}
		if key == "" {
			key = f.Name
		}
		if f.Anonymous && tag == "" || strings.Contains(options, "inline") {
			key = "(its fields)"
		}
		if array {
			key = fmt.Sprintf("[%d] %s", n, f.Name)
		}
		if used[key] {
			w.t.Errorf("%v has two fields %q, of parts that it embeds: the encoder would save neither", t, key)
		}
		used[key] = true
		n++
		line := name(t) + "." + key + " " + w.walk(f.Type)
		if strings.Contains(options, "string") {
			line += " as a string"
		}
		if !array && (strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")) {
			line += optional
		}
		lines = append(lines, line)
	}
	if !array {
		slices.Sort(lines)
	}
	w.lines = slices.Insert(w.lines, at, lines...)
}

// fieldsOf yields the fields of a struct; if it is flat, those of its embedded parts in their place.
func fieldsOf(t reflect.Type, flat bool) iter.Seq[reflect.StructField] {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			f := t.Field(i)
			if flat && f.Anonymous && f.Tag == "" {
				for part := range fieldsOf(f.Type, flat) {
					if !yield(part) {
						return
					}
				}
			} else if !yield(f) {
				return
			}
		}
	}
}

func name(t reflect.Type) string {
	return strings.TrimPrefix(strings.TrimPrefix(t.PkgPath(), house), "k8s.io/") + "." + t.Name()
}

// text returns the content of the golden file.
func text(shapes []shape) string {
	var b strings.Builder
	b.WriteString("# How states and facts are encoded, and in which version. Written by: go test ./functions/catalog -run TestShapes -update\n")
	for _, s := range shapes {
		fmt.Fprintf(&b, "\n== %s, version %d\n%s\n", s.name, s.version, strings.Join(s.lines, "\n"))
	}
	return b.String()
}

func readShapes(path string) (all []shape, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // the first time
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		if head, ok := strings.CutPrefix(line, "== "); ok {
			s := shape{}
			of, version, _ := strings.Cut(head, ", version ")
			if _, err := fmt.Sscan(version, &s.version); err != nil {
				return nil, fmt.Errorf("%s: %q: %w", path, line, err)
			}
			s.name = of
			all = append(all, s)
			continue
		}
		if len(all) > 0 && line != "" {
			last := &all[len(all)-1]
			last.lines = append(last.lines, line)
		}
	}
	return all, nil
}
