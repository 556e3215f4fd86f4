package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/invopop/jsonschema"

	"github.com/jobstream/jobstream/events"
)

// described is all that there is to say about a public event.
type described struct {
	public
	cloudEventType string
	comment        string
	data           *jsonschema.Schema // of the data alone
	attributes     []attribute
	samples        map[string]json.RawMessage
	words          map[string][]string // what each part of the subject may be, where that is known
}

// describe puts together what the type, its source and the golden samples say.
func (s source) describe(e public) (described, error) {
	c, err := events.CloudEvent(cluster, e.prototype)
	if err != nil {
		return described{}, err
	}
	t := reflect.TypeOf(e.prototype)
	d := described{public: e, cloudEventType: c.Type(), comment: rename(s.comment(t, ""), t.Name(), e.name), data: s.reflect(e.prototype)}
	if d.attributes, err = attributesOf(c); err != nil {
		return described{}, err
	}
	if d.samples, err = s.samples(c.Type()); err != nil {
		return described{}, err
	}
	d.words = map[string][]string{}
	for f := range t.NumField() {
		field := t.Field(f)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		for _, c := range s.of(field.Type) {
			d.words[name] = append(d.words[name], strings.ToLower(c.value))
		}
	}
	return d, nil
}

// reflect is the schema of the event's data. It allows what it does not know: fields may be added within a version.
func (s source) reflect(e events.Public) *jsonschema.Schema {
	r := jsonschema.Reflector{
		Anonymous: true, AllowAdditionalProperties: true, DoNotReference: true,
		Mapper: func(t reflect.Type) *jsonschema.Schema { return oneOf(s.of(t)) },
		LookupComment: func(t reflect.Type, field string) string {
			if field == "" {
				return "" // the purpose of a field tells more than that of its type
			}
			return s.comment(t, field)
		},
	}
	out := r.Reflect(e)
	out.Version = ""
	return out
}

// oneOf is a text that is one of the constants; nil without any. Values may be added, as fields may: so any other text is
// valid, too, and the constants are what there is today.
func oneOf(all []constant) *jsonschema.Schema {
	if len(all) == 0 {
		return nil
	}
	known := &jsonschema.Schema{}
	var comments []string
	for _, c := range all {
		known.Enum = append(known.Enum, c.value)
		if c.comment != "" {
			comments = append(comments, c.comment)
		}
	}
	known.Description = strings.Join(comments, " ")
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{known, {Type: "string", Description: "Values may be added: take one that you do not know for what it is."}}}
}

// attribute is one of the CloudEvents attributes of an event.
type attribute struct {
	name, format, comment string
	always                string // the value, where it is always the same
}

// comments are the descriptions of the attributes.
var comments = map[string]string{
	"specversion":     "Specversion is the version of CloudEvents.",
	"id":              "ID is made of the object's UID and the moment that the event is about. With the source it is the same however often the event is announced.",
	"source":          "Source is the object, in its cluster.",
	"type":            "Type is what has happened, and the version of what is said about it.",
	"subject":         "Subject is the name of the object.",
	"time":            "Time is the moment that the event is about, as the cluster has it.",
	"datacontenttype": "Datacontenttype is that of the data.",
	"partitionkey":    "Partitionkey is the UID of the object.",
	"traceparent":     "Traceparent is the span that the event is about: a W3C Trace Context of version 00.",
	"sequence":        "Sequence orders the events about one object: sort it as text.",
}

// attributesOf are those that an event of the type always has, in the order in which its JSON has them.
func attributesOf(c event.Event) ([]attribute, error) {
	out := []attribute{
		{name: "specversion", always: c.SpecVersion()},
		{name: "id"},
		{name: "source", format: "uri-reference"},
		{name: "type", always: c.Type()},
		{name: "subject"},
		{name: "datacontenttype", always: c.DataContentType()},
		{name: "time", format: "date-time"},
	}
	for _, name := range slices.Sorted(maps.Keys(c.Extensions())) {
		out = append(out, attribute{name: name})
	}
	for i := range out {
		if out[i].comment = comments[out[i].name]; out[i].comment == "" {
			return nil, fmt.Errorf("attribute %s is new: say in schema.go what it is", out[i].name)
		}
	}
	out[2].comment += " It reads `" + template(c.Source(), "/") + "`."
	return out, nil
}

// schema is that of the attribute's value.
func (a attribute) schema() *jsonschema.Schema {
	out := &jsonschema.Schema{Type: "string", Format: a.format, Description: a.comment}
	if a.always != "" {
		out.Const = a.always
	} else {
		out.MinLength = new(uint64(1))
	}
	return out
}

// template puts the parameters in a text into braces.
func template(text, separator string) string {
	parts := strings.Split(text, separator)
	for i, part := range parts {
		if parameters[part] != "" {
			parts[i] = "{" + part + "}"
		}
	}
	return strings.Join(parts, separator)
}

// whole is the schema of a whole message in structured mode, around that of the data.
func (d described) whole(data *jsonschema.Schema) *jsonschema.Schema {
	out := &jsonschema.Schema{Type: "object", Title: d.name, Description: d.comment, Properties: jsonschema.NewProperties()}
	for _, a := range d.attributes {
		out.Properties.Set(a.name, a.schema())
		out.Required = append(out.Required, a.name)
	}
	out.Properties.Set("data", data)
	out.Required = append(out.Required, "data")
	return out
}

// file is the schema of a whole message as a document of its own. Its id is a name: nothing is served there.
func (d described) file() ([]byte, error) {
	s := d.whole(d.data)
	s.Version, s.ID = jsonschema.Version, jsonschema.ID("https://jobstream.dev/schemas/"+d.cloudEventType+".json")
	s.Comments = `Generated from the Go types by "make contract": do not edit.`
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(s)
	return out.Bytes(), err
}
