package main

import (
	"strings"
	"testing"
)

const definition = `---
spec:
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        properties:
          spec:
            properties:
              jobTemplate:
                description: |-
                  jobTemplate is
                  the template.
                properties:
                  metadata: {description: gone, type: object}
                  spec:
                    description: gone
                    properties:
                      description: {description: gone, type: string}
                      rules: {items: {anyOf: [{description: gone, type: string}]}}
`

// What stays is the template's own description, and a field that is called description.
func TestShorten(t *testing.T) {
	want := header + `spec:
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        properties:
          spec:
            properties:
              jobTemplate:
                description: jobTemplate is the template.
                properties:
                  metadata:
                    type: object
                  spec:
                    properties:
                      description:
                        type: string
                      rules:
                        items:
                          anyOf:
                          - type: string
`
	got, err := shorten([]byte(definition))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("it has become\n%s", got)
	}
	again, err := shorten(got)
	if err != nil || string(again) != want {
		t.Errorf("a second time it has become\n%s%v", again, err)
	}
}

func TestShortenRefuses(t *testing.T) {
	for name, c := range map[string]struct{ definition, want string }{
		"an empty file":      {"", "no versions"},
		"a renamed template": {strings.Replace(definition, "jobTemplate:", "template:", 1), "version v1 has no field spec.jobTemplate"},
		"no YAML":            {"\t", "yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := shorten([]byte(c.definition)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q in it", err, c.want)
			}
		})
	}
}

func TestJoined(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"one line":         {"a.", "a."},
		"a broken line":    {"a\nb.", "a b."},
		"two paragraphs":   {"a\nb.\n\nc\nd.", "a b.\n\nc d."},
		"a list":           {"a:\n- b\nc\n- d", "a:\n- b c\n- d"},
		"an indented part": {"a:\n  b\n  c\nd\ne", "a:\n  b\n  c\nd e"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := joined(c.text); got != c.want {
				t.Errorf("%q has become %q, want %q", c.text, got, c.want)
			}
		})
	}
}
