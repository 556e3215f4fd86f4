package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"
	"go.yaml.in/yaml/v3"

	"github.com/jobstream/jobstream/bus/cloudevent"
	"github.com/jobstream/jobstream/events"
)

// The parts of an AsyncAPI 3.0 document that we use, in the order in which one reads them.
type (
	asyncapi struct {
		AsyncAPI           string               `json:"asyncapi"`
		Info               info                 `json:"info"`
		DefaultContentType string               `json:"defaultContentType"`
		Servers            map[string]server    `json:"servers"`
		Channels           map[string]channel   `json:"channels"`
		Operations         map[string]operation `json:"operations"`
		Components         components           `json:"components"`
	}
	info struct {
		Title        string            `json:"title"`
		Version      string            `json:"version"`
		Description  string            `json:"description"`
		License      map[string]string `json:"license"`
		ExternalDocs map[string]string `json:"externalDocs"`
	}
	server struct {
		Host        string `json:"host"`
		Protocol    string `json:"protocol"`
		Description string `json:"description"`
	}
	channel struct {
		Address     string               `json:"address"`
		Description string               `json:"description"`
		Messages    map[string]reference `json:"messages"`
		Parameters  map[string]parameter `json:"parameters"`
	}
	parameter struct {
		Description string   `json:"description"`
		Enum        []string `json:"enum,omitempty"`
	}
	operation struct {
		Action   string         `json:"action"`
		Summary  string         `json:"summary"`
		Channel  reference      `json:"channel"`
		Messages []reference    `json:"messages"`
		Bindings map[string]any `json:"bindings"`
	}
	message struct {
		Name        string             `json:"name"`
		Title       string             `json:"title"`
		Summary     string             `json:"summary"`
		ContentType string             `json:"contentType"`
		Headers     *jsonschema.Schema `json:"headers"`
		Payload     reference          `json:"payload"`
		Examples    []example          `json:"examples"`
	}
	example struct {
		Name    string            `json:"name"`
		Headers map[string]string `json:"headers"`
		Payload json.RawMessage   `json:"payload"`
	}
	components struct {
		Messages map[string]message            `json:"messages"`
		Schemas  map[string]*jsonschema.Schema `json:"schemas"`
	}
	reference struct {
		Ref string `json:"$ref"`
	}
)

const (
	about = "The public events of jobstream, a Kubernetes Job controller: CloudEvents 1.0 on NATS JetStream. " +
		"They are stored in the stream `jobstream_<cluster>_events`. jobstream sends; a subscriber receives, by a durable consumer with a filter of its own. " +
		"Messages are in structured mode, or, where the operator has set `--event-mode=binary`, in binary mode. " +
		"Within v1 there are only additions: ignore fields, attributes and values that you do not know. " +
		"docs/events.md has what a document such as this cannot say: order, delivery, retention, how to read."
	placeholder = "A placeholder: the NATS servers that `--nats-url` names, with JetStream."
)

// document is docs/asyncapi.yaml.
func document(all []described) ([]byte, error) {
	out := asyncapi{
		AsyncAPI: "3.0.0",
		Info: info{Title: "jobstream: public events", Version: "1.0.0", Description: about,
			License:      map[string]string{"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
			ExternalDocs: map[string]string{"description": "The contract in words", "url": "https://github.com/jobstream/jobstream/blob/main/docs/events.md"}},
		DefaultContentType: events.ContentType,
		Servers:            map[string]server{"nats": {Host: "nats.example.com:4222", Protocol: "nats", Description: placeholder}},
		Channels:           map[string]channel{}, Operations: map[string]operation{},
		Components: components{Messages: map[string]message{}, Schemas: map[string]*jsonschema.Schema{}},
	}
	for _, d := range all {
		if err := out.add(d); err != nil {
			return nil, err
		}
	}
	text, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	return toYAML(text)
}

// add puts an event into the document: a channel, an operation, two messages, the schemas of the data and of the whole.
func (a asyncapi) add(d described) error {
	id, inBinary := strings.ToLower(d.name[:1])+d.name[1:], d.name+"Binary"
	address := template(events.PublicSubject(cluster, d.prototype), ".")
	ch := channel{Address: address, Description: d.comment, Parameters: map[string]parameter{}, Messages: map[string]reference{
		d.name: to("components", "messages", d.name), inBinary: to("components", "messages", inBinary)}}
	for _, part := range strings.FieldsFunc(address, func(r rune) bool { return r == '.' }) {
		if name := strings.Trim(part, "{}"); name != part {
			ch.Parameters[name] = parameter{Description: parameters[name], Enum: d.words[name]}
		}
	}
	a.Channels[id] = ch
	a.Operations["send"+d.name] = operation{Action: "send", Summary: "jobstream announces: " + d.comment, Channel: to("channels", id),
		Messages: []reference{to("channels", id, "messages", d.name), to("channels", id, "messages", inBinary)},
		Bindings: map[string]any{"nats": map[string]string{"bindingVersion": "0.1.0"}}}
	a.Components.Schemas[d.name] = d.whole(&jsonschema.Schema{Ref: to("components", "schemas", d.name+"Data").Ref})
	a.Components.Schemas[d.name+"Data"] = d.data

	var err error
	if a.Components.Messages[d.name], err = d.message(cloudevent.Structured); err != nil {
		return err
	}
	a.Components.Messages[inBinary], err = d.message(cloudevent.Binary)
	return err
}

func to(path ...string) reference { return reference{"#/" + strings.Join(path, "/")} }

// message is that of one mode, with the golden samples as examples.
func (d described) message(mode cloudevent.Mode) (message, error) {
	m := message{Name: d.cloudEventType, Title: d.name + ", in " + string(mode) + " mode", Summary: d.comment, ContentType: events.ContentType,
		Payload: to("components", "schemas", d.name), Headers: &jsonschema.Schema{Type: "object", Properties: jsonschema.NewProperties()}}
	require := func(name string, s *jsonschema.Schema) {
		m.Headers.Properties.Set(name, s)
		m.Headers.Required = append(m.Headers.Required, name)
	}
	if mode == cloudevent.Structured {
		require("Content-Type", &jsonschema.Schema{Type: "string", Const: events.ContentType})
	} else {
		m.ContentType = "application/json"
		m.Payload = to("components", "schemas", d.name+"Data")
		for _, a := range d.attributes {
			s := a.schema()
			s.Format = "" // a header is percent-encoded
			require("ce-"+a.name, s)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.samples)) {
		p, err := events.DecodePublic(d.samples[name])
		if err != nil {
			return m, err
		}
		e, err := events.CloudEvent("prod.eu", p)
		if err != nil {
			return m, err
		}
		header, data, err := cloudevent.Encode(e, mode)
		if err != nil {
			return m, err
		}
		x := example{Name: name, Headers: map[string]string{}, Payload: data}
		for key := range header {
			x.Headers[key] = header.Get(key)
		}
		m.Examples = append(m.Examples, x)
	}
	return m, nil
}

// toYAML is the JSON as YAML, in the same order.
func toYAML(text []byte) ([]byte, error) {
	var tree yaml.Node
	if err := yaml.Unmarshal(text, &tree); err != nil {
		return nil, err
	}
	plain(&tree)
	tree.HeadComment = `Generated from the Go types by "make contract": do not edit.`
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(&tree); err != nil {
		return nil, err
	}
	return out.Bytes(), enc.Close()
}

// plain lets the encoder choose quotes and brackets.
func plain(n *yaml.Node) {
	n.Style = 0
	for _, child := range n.Content {
		plain(child)
	}
}
