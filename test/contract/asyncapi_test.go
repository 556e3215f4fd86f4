package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/jobstream/jobstream/bus/cloudevent"
	"github.com/jobstream/jobstream/events"
)

// asJSON is docs/asyncapi.yaml as the validator wants it.
func asJSON(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, asyncAPI))
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := yaml.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	plain, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	return read(t, plain)
}

// at is what stands in the tree at the path; a $ref on the way is followed.
func at(t *testing.T, tree map[string]any, path ...string) map[string]any {
	t.Helper()
	node := tree
	for _, step := range path {
		next, ok := node[step].(map[string]any)
		if !ok {
			t.Fatalf("nothing is at %v", path)
		}
		if ref, ok := next["$ref"].(string); ok {
			next = at(t, tree, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
		}
		node = next
	}
	return node
}

// TestAsyncAPI: the document is valid by AsyncAPI's own schema, which rejects broken ones.
func TestAsyncAPI(t *testing.T) {
	official := compile(t, "testdata/asyncapi-3.0.0.json")
	if err := official.Validate(asJSON(t)); err != nil {
		t.Error(err)
	}
	for what, breakIt := range map[string]func(map[string]any){
		"another action":   func(d map[string]any) { at(t, d, "operations", "sendTick")["action"] = "publish" },
		"no host":          func(d map[string]any) { delete(at(t, d, "servers", "nats"), "host") },
		"another version":  func(d map[string]any) { d["asyncapi"] = "2.6.0" },
		"a field it lacks": func(d map[string]any) { at(t, d, "channels", "tick")["topic"] = "x" },
		"a bad schema":     func(d map[string]any) { at(t, d, "components", "schemas", "Tick")["type"] = "record" },
	} {
		d := asJSON(t)
		breakIt(d)
		if official.Validate(d) == nil {
			t.Errorf("%s: it is valid all the same", what)
		}
	}
}

// TestChannels: the real subject of each golden sample is an address of its type's channel, each parameter is explained, and
// the operation sends what the channel has.
func TestChannels(t *testing.T) {
	doc := asJSON(t)
	for _, d := range all(t) {
		id := strings.ToLower(d.name[:1]) + d.name[1:]
		ch := at(t, doc, "channels", id)
		address := strings.Split(ch["address"].(string), ".")
		if op := at(t, doc, "operations", "send"+d.name); op["action"] != "send" || !reflect.DeepEqual(op["channel"], map[string]any{"$ref": "#/channels/" + id}) {
			t.Errorf("%s: %v", d.name, op)
		}
		for name, text := range d.samples {
			e, err := events.DecodePublic(text)
			if err != nil {
				t.Fatal(err)
			}
			subject := strings.Split(events.PublicSubject("prod.eu", e), ".")
			if len(subject) != len(address) {
				t.Errorf("%s goes to %v, not to %v", name, subject, address)
				continue
			}
			for i, part := range address {
				param := strings.Trim(part, "{}")
				if param == part {
					if subject[i] != part {
						t.Errorf("%s goes to %v, not to %v", name, subject, address)
					}
					continue
				}
				p := at(t, ch, "parameters", param)
				if known, ok := p["enum"].([]any); ok && !slices.Contains(known, any(subject[i])) || p["description"] == "" {
					t.Errorf("%s: %s is %s, want one of %v", name, param, subject[i], known)
				}
			}
		}
	}
}

// TestMessages: the examples are the golden samples, in both modes, and satisfy the message's own schemas.
func TestMessages(t *testing.T) {
	doc := asJSON(t)
	whole := jsonschema.NewCompiler()
	whole.AssertFormat()
	if err := whole.AddResource("doc.json", doc); err != nil {
		t.Fatal(err)
	}
	for _, d := range all(t) {
		for _, name := range []string{d.name, d.name + "Binary"} {
			m := at(t, doc, "components", "messages", name)
			headers, err := whole.Compile("doc.json#/components/messages/" + name + "/headers")
			if err != nil {
				t.Fatal(err)
			}
			payload, err := whole.Compile("doc.json" + m["payload"].(map[string]any)["$ref"].(string))
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, x := range m["examples"].([]any) {
				x := x.(map[string]any)
				names = append(names, x["name"].(string))
				if err := headers.Validate(x["headers"]); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if err := payload.Validate(x["payload"]); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if sample := read(t, d.samples[x["name"].(string)]); name == d.name && !reflect.DeepEqual(x["payload"], any(sample)) {
					t.Errorf("%s: the example %v is not the golden sample", name, x["name"])
				}
			}
			if want := slices.Sorted(maps.Keys(d.samples)); !slices.Equal(names, want) {
				t.Errorf("%s: examples %v, want %v", name, names, want)
			}
		}
	}
}

// TestBinaryModeInTheContract: docs/events.md shows a message in binary mode as it is.
func TestBinaryModeInTheContract(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "events.md"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "events", "testdata", "JobFinishedPlain.json"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := events.DecodePublic(text)
	if err != nil {
		t.Fatal(err)
	}
	e, err := events.CloudEvent("prod.eu", p)
	if err != nil {
		t.Fatal(err)
	}
	header, data, err := cloudevent.Encode(e, cloudevent.Binary)
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "\nce-specversion:")
	block, _, _ = strings.Cut("ce-specversion:"+block, "\n```")
	shown, payload, _ := strings.Cut(block, "\n\n")
	var want []string
	for name := range header {
		want = append(want, name+": "+header.Get(name))
	}
	if got := strings.Split(shown, "\n"); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
		t.Errorf("it shows\n%s\nand the headers are\n%s", shown, strings.Join(want, "\n"))
	}
	if payload != string(data) {
		t.Errorf("it shows\n%s\nand the payload is\n%s", payload, data)
	}
}
