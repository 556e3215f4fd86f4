// Crd rewrites the CustomResourceDefinition that controller-gen has made from api/, in place. "make generate" runs it.
//
//	go run ./internal/dev/crd deploy/crd/scheduledjobs.yaml
//
// It removes the descriptions of the fields below spec.jobTemplate. With those of all of a Pod's fields, the definition would be
// larger than the annotation in which "kubectl apply" keeps what it has applied, and "kubectl explain cronjob.spec.jobTemplate"
// shows them anyway. It also joins the lines of each description, because "kubectl explain" breaks lines itself.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const header = "# Generated from api/v1alpha1 by \"make generate\": do not edit.\n"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "crd:", err)
		os.Exit(1)
	}
}

func run(files []string) error {
	if len(files) != 1 {
		return fmt.Errorf("want the file of one definition, not %d arguments", len(files))
	}
	definition, err := os.ReadFile(files[0])
	if err != nil {
		return err
	}
	if definition, err = shorten(definition); err != nil {
		return fmt.Errorf("%s: %w", files[0], err)
	}
	return os.WriteFile(files[0], definition, 0o600) // the file exists, and keeps its mode
}

// shorten returns the definition with the descriptions that users see. An error means that it does not define ScheduledJobs.
func shorten(definition []byte) ([]byte, error) {
	var d map[string]any
	if err := yaml.Unmarshal(definition, &d); err != nil {
		return nil, err
	}
	versions, _, _ := unstructured.NestedFieldNoCopy(d, "spec", "versions")
	all, _ := versions.([]any)
	if len(all) == 0 {
		return nil, errors.New("the definition has no versions")
	}
	for _, v := range all {
		version, _ := v.(map[string]any)
		template, _, _ := unstructured.NestedFieldNoCopy(version, "schema", "openAPIV3Schema", "properties", "spec", "properties", "jobTemplate", "properties")
		if template == nil {
			return nil, fmt.Errorf("version %v has no field spec.jobTemplate", version["name"])
		}
		describe(template, func(string) string { return "" })
		describe(version["schema"], joined)
	}
	out, err := yaml.Marshal(d)
	return append([]byte(header), out...), err
}

// describe replaces each description in a part of a schema, and removes it if the new one is empty. A field that is called
// description is not one: its schema is no text.
func describe(part any, with func(string) string) {
	switch part := part.(type) {
	case map[string]any:
		if old, ok := part["description"].(string); ok {
			part["description"] = with(old)
			if part["description"] == "" {
				delete(part, "description")
			}
		}
		for _, v := range part {
			describe(v, with)
		}
	case []any:
		for _, v := range part {
			describe(v, with)
		}
	}
}

// joined returns a text with one line for each paragraph and each item of a list. Indented lines stay as they are.
func joined(text string) string {
	var b strings.Builder
	before := ""
	for i, line := range strings.Split(text, "\n") {
		switch {
		case i == 0:
		case line == "", before == "", strings.HasPrefix(line, "- "), strings.HasPrefix(line, " "), strings.HasPrefix(before, " "):
			b.WriteByte('\n')
		default:
			b.WriteByte(' ')
		}
		b.WriteString(line)
		before = line
	}
	return b.String()
}
