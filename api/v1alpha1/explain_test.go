package v1alpha1_test

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/deploy"
)

// schema is what the tests read of a field's schema.
type schema struct {
	Description string            `json:"description"`
	Properties  map[string]schema `json:"properties"`
	Items       *schema           `json:"items"`
	Required    []string          `json:"required"`
	Enum        []string          `json:"enum"`
	Default     any               `json:"default"`
}

// fields calls f with each field below this one, and its path.
func (s schema) fields(path string, f func(path string, field schema)) {
	if s.Items != nil {
		s = *s.Items
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		f(path+"."+name, s.Properties[name])
		s.Properties[name].fields(path+"."+name, f)
	}
}

// definition returns the schema of the kind ScheduledJob.
func definition(t *testing.T) schema {
	t.Helper()
	var d struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					Schema schema `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(deploy.ScheduledJobs, &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Spec.Versions) != 1 {
		t.Fatalf("the definition has %d versions, want 1", len(d.Spec.Versions))
	}
	return d.Spec.Versions[0].Schema.Schema
}

const template = "spec.jobTemplate"

// Every field outside the template has a description, and none below it has one.
func TestEveryFieldIsDescribed(t *testing.T) {
	seen := 0
	for _, part := range []string{"spec", "status"} {
		definition(t).Properties[part].fields(part, func(path string, field schema) {
			seen++
			below := strings.HasPrefix(path, template+".")
			if below != (field.Description == "") {
				t.Errorf("the description of %s is %q", path, field.Description)
			}
		})
	}
	if seen < 500 { // the template alone has more
		t.Errorf("the definition has %d fields: the test does not find them", seen)
	}
}

// A field of the spec names its default, or is required, and has an example. Each value of an enum is an item of a list.
func TestFieldsOfTheSpecAreExplained(t *testing.T) {
	spec := definition(t).Properties["spec"]
	if len(spec.Properties) != reflect.TypeFor[v1alpha1.ScheduledJobSpec]().NumField() {
		t.Fatalf("the definition has the fields %v", slices.Collect(maps.Keys(spec.Properties)))
	}
	for name, field := range spec.Properties {
		want := []string{"Example", "Default: "}
		switch {
		case slices.Contains(spec.Required, name):
			want[1] = "Required. "
		case field.Default != nil:
			want[1] = fmt.Sprintf("Default: %v.", field.Default)
		}
		for _, value := range field.Enum {
			want = append(want, "\n- "+value+": ")
		}
		for _, w := range want {
			if !strings.Contains(field.Description, w) {
				t.Errorf("the description of spec.%s lacks %q:\n%s", name, w, field.Description)
			}
		}
	}
}

// Descriptions are for users, who know a field by its name in JSON: it is the first word, and no other field has its name in Go.
func TestDescriptionsNameFieldsAsUsersDo(t *testing.T) {
	inGo := goNames(reflect.TypeFor[v1alpha1.ScheduledJob](), map[string]string{})
	delete(inGo, "CatchUp") // it is a value of onScheduleChange, too
	all := definition(t)
	check := func(path string, field schema) {
		if name := path[strings.LastIndex(path, ".")+1:]; !strings.HasPrefix(field.Description, name+" ") {
			t.Errorf("the description of %s does not begin with %q: %s", path, name, field.Description)
		}
		for _, word := range regexp.MustCompile(`\w+`).FindAllString(field.Description, -1) {
			if inJSON := inGo[word]; inJSON != "" {
				t.Errorf("the description of %s has the word %s, want %s: %s", path, word, inJSON, field.Description)
			}
		}
	}
	for _, part := range []string{"spec", "status"} {
		check(part, all.Properties[part])
		all.Properties[part].fields(part, func(path string, field schema) {
			if !strings.HasPrefix(path, template+".") && !strings.HasPrefix(path, "status.active.") { // those are Kubernetes' own
				check(path, field)
			}
		})
	}
}

// goNames adds the fields of a type whose names consist of several words, and those of its structs in this package: each name in
// Go with the one in JSON.
func goNames(of reflect.Type, names map[string]string) map[string]string {
	for of.Kind() == reflect.Slice || of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || of.PkgPath() != reflect.TypeFor[v1alpha1.ScheduledJob]().PkgPath() {
		return names
	}
	for f := range of.Fields() {
		inJSON, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if strings.ToLower(f.Name[1:]) != f.Name[1:] && inJSON != f.Name && inJSON != "" {
			names[f.Name] = inJSON
		}
		goNames(f.Type, names)
	}
	return names
}

// "kubectl apply" keeps the definition as JSON in an annotation. Half of its 256 KiB is for the fields that Pods will have one day.
func TestDefinitionIsSmall(t *testing.T) {
	const annotations = 256 << 10 // of all annotations of an object (Kubernetes 1.36, TotalAnnotationSizeLimitB)
	compact, err := yaml.YAMLToJSON(deploy.ScheduledJobs)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the definition has %d bytes as JSON, at most %d", len(compact), annotations/2)
	if len(compact) > annotations/2 {
		t.Errorf("the definition has %d bytes as JSON, more than %d: shorten the descriptions", len(compact), annotations/2)
	}
}
