package oracle_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/test/oracle"
	"github.com/jobstream/jobstream/test/oracle/draw"
)

// ours is the claim of a reconciler with default flags.
var ours = events.Claim{ManagedBy: v1alpha1.DefaultManagedBy}

// TestRebuildProjectsBack: the oracle judges the same Job that the function decides about.
func TestRebuildProjectsBack(t *testing.T) {
	drawn := map[string]bool{}
	rapid.Check(t, func(t *rapid.T) {
		real := draw.Job(t)
		draw.Options(t, real)
		real.Status = draw.Status(t, real)
		want := events.ProjectJob(draw.Edited(t, real), ours)
		want.Options.Ignored = nil // ignored options do not affect the verdict
		noteOptions(want.Options, drawn)
		got := events.ProjectJob(oracle.Rebuild(want), ours)
		want.TemplateHash, got.TemplateHash = "", "" // the oracle's template is another, and no decision reads the hash
		a, b := text(t, want), text(t, got)
		if a != b {
			t.Fatalf("want %s\ngot  %s", a, b)
		}
		if err := oracle.Editable(want, want); err != nil {
			t.Fatal(err)
		}
		if err := oracle.Verdict(want, want); err != nil {
			t.Fatal(err)
		}
	})
	for option := range reflect.TypeFor[events.Options]().Fields() {
		if !drawn[option.Name] {
			t.Errorf("no drawn Job has the option %s: draw its annotation in test/oracle/draw/job.go, and write it in test/oracle/rebuild.go", option.Name)
		}
	}
}

// noteOptions records the options of a Job. Two have no effect here: ParentSpan, and the messages about Ignored options.
func noteOptions(o events.Options, drawn map[string]bool) {
	drawn["ParentSpan"], drawn["Ignored"] = true, true
	for option, value := range reflect.ValueOf(o).Fields() {
		drawn[option.Name] = drawn[option.Name] || !value.IsZero()
	}
}

func text(t *rapid.T, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// BenchmarkVerdict measures how many writes the oracle judges.
func BenchmarkVerdict(b *testing.B) {
	one := int32(1)
	j := events.Job{Namespace: "default", Name: "pi", UID: "job-1", Version: 1, Parallelism: 1, Completions: &one}
	for b.Loop() {
		if err := oracle.Verdict(j, j); err != nil {
			b.Fatal(err)
		}
	}
}
