package cloudevent_test

import (
	"strings"
	"testing"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/nats-io/nats.go"

	"github.com/jobstream/jobstream/bus/cloudevent"
)

const json = `{"specversion":"1.0","id":"1","source":"/s","type":"t","data":{"a":1}}`

// minimal returns the headers of a message in binary mode: the required attributes, changed by the test's pairs; "" removes a
// header.
func minimal(change ...string) nats.Header {
	h := nats.Header{"ce-specversion": {"1.0"}, "ce-id": {"1"}, "ce-source": {"/s"}, "ce-type": {"t"}}
	for i := 0; i < len(change); i += 2 {
		h[change[i]] = append(h[change[i]], change[i+1])
		if change[i+1] == "" {
			delete(h, change[i])
		}
	}
	return h
}

// TestMessagesThatAreEvents: the Content-Type decides the mode, header names are case-insensitive, and whatever has only one
// meaning is accepted.
func TestMessagesThatAreEvents(t *testing.T) {
	plain := func(e event.Event) bool { return e.ID() == "1" && e.Source() == "/s" && e.Type() == "t" }
	for name, tt := range map[string]struct {
		header nats.Header
		data   string
		also   func(event.Event) bool
	}{
		"structured":                           {header: nats.Header{"Content-Type": {"application/cloudevents+json"}}, data: json},
		"structured, with a charset":           {header: nats.Header{"Content-Type": {"application/cloudevents+json; charset=UTF-8"}}, data: json},
		"structured, by the prefix alone":      {header: nats.Header{"Content-Type": {"application/cloudevents"}}, data: json},
		"structured, in any case":              {header: nats.Header{"CONTENT-TYPE": {"Application/CloudEvents+JSON"}}, data: json},
		"structured, whatever else is there":   {header: minimal("Content-Type", "application/cloudevents+json", "ce-id", "", "ce-id", "2"), data: json},
		"structured, without a Content-Type":   {data: json},
		"structured, without, beside a msg id": {header: nats.Header{"Nats-Msg-Id": {"x"}}, data: json},
		"structured, with blanks and nulls": {data: ` { "specversion" : "1.0" , "subject":null, "time":null, "ext":null, "datacontenttype":null, "dataschema":null, "id":"1","source":"/s","type":"t", "data_base64" : "aGk=" } `,
			also: func(e event.Event) bool {
				return string(e.Data()) == "hi" && e.Subject() == "" && len(e.Extensions()) == 0
			}},
		"binary": {header: minimal()},
		"binary, canonical names of Go": {header: nats.Header{"Ce-Specversion": {"1.0"}, "Ce-Id": {"1"}, "CE-SOURCE": {"/s"}, "cE-tYPE": {"t"}, "Ce-Partitionkey": {"p"}},
			also: func(e event.Event) bool { return e.Extensions()["partitionkey"] == "p" }},
		"binary, data as it is": {header: minimal("ce-datacontenttype", "text/plain"), data: "hello",
			also: func(e event.Event) bool { return string(e.Data()) == "hello" && e.DataContentType() == "text/plain" }},
		"binary, the Content-Type instead": {header: minimal("Content-Type", "text/plain"), data: "hello",
			also: func(e event.Event) bool { return e.DataContentType() == "text/plain" }},
		"binary, the Content-Type beside": {header: minimal("Content-Type", "text/plain", "ce-datacontenttype", "text/html"), data: "hello",
			also: func(e event.Event) bool { return e.DataContentType() == "text/html" }},
		"binary, other headers": {header: minimal("Nats-Msg-Id", "x", "traceparent", "y"),
			also: func(e event.Event) bool { return len(e.Extensions()) == 0 }},
		"binary, two quotes with nothing between": {header: minimal("ce-ext", `""`),
			also: func(e event.Event) bool { return e.Extensions()["ext"] == "" }},
		"binary, nothing in it": {header: minimal(), also: func(e event.Event) bool { return e.Data() == nil }},
		"binary, an event inside of an event": {header: minimal("ce-datacontenttype", "application/cloudevents+json"), data: json,
			also: func(e event.Event) bool { return string(e.Data()) == json }},
	} {
		e, err := cloudevent.Decode(tt.header, []byte(tt.data))
		if err != nil || !plain(e) || tt.also != nil && !tt.also(e) {
			t.Errorf("%s: %v, %v", name, e, err)
		}
	}
}

// TestMessagesThatAreNoEvents: the error names what is wrong.
func TestMessagesThatAreNoEvents(t *testing.T) {
	asJSON := nats.Header{"Content-Type": {"application/cloudevents+json"}}
	for name, tt := range map[string]struct {
		header nats.Header
		data   string
		says   string
	}{
		"a batch":                     {nats.Header{"Content-Type": {"application/cloudevents-batch+json"}}, "[" + json + "]", "application/cloudevents-batch+json is a batch"},
		"a batch in disguise":         {asJSON, "[" + json + "]", "an array, and so a batch"},
		"a batch that says nothing":   {nil, "[" + json + "]", "an array, and so a batch"},
		"another format":              {nats.Header{"Content-Type": {"application/cloudevents+xml"}}, "<event/>", "a format that is not read here: send application/cloudevents+json"},
		"no event":                    {nats.Header{"Content-Type": {"text/plain"}}, "hello", "no CloudEvent: its Content-Type is text/plain"},
		"no event, not a word":        {nil, "hello", "no JSON"},
		"nothing at all":              {nil, "", "no JSON"},
		"cut short":                   {asJSON, json[:40], "no JSON"},
		"no object":                   {asJSON, `"hello"`, "a JSON object is wanted"},
		"two events":                  {asJSON, json + json, "something stands behind the event"},
		"no attributes":               {asJSON, `{}`, "specversion"},
		"structured, no id":           {asJSON, strings.Replace(json, `"id":"1",`, "", 1), "id: MUST be a non-empty string"},
		"structured, null for an id":  {asJSON, strings.Replace(json, `"1",`, "null,", 1), "id: MUST be a non-empty string"},
		"structured, an id twice":     {asJSON, strings.Replace(json, `"id"`, `"id":"2","id"`, 1), `"id" is there twice`},
		"structured, two cases":       {asJSON, strings.Replace(json, `"id"`, `"ext":"2","Ext":"3","id"`, 1), `"Ext" is there twice`},
		"structured, version 2":       {asJSON, strings.Replace(json, `1.0`, `2.0`, 1), "specversion"},
		"structured, version 0.3":     {asJSON, strings.Replace(json, `1.0`, `0.3`, 1), "its specversion is 0.3: only 1.0 is supported"},
		"structured, id is a number":  {asJSON, strings.Replace(json, `"1",`, `1,`, 1), "no CloudEvent"},
		"structured, a bad time":      {asJSON, strings.Replace(json, `"id"`, `"time":"noon","id"`, 1), "time"},
		"structured, a bad name":      {asJSON, strings.Replace(json, `"id"`, `"a-b":"2","id"`, 1), `"a-b" cannot be the name of an attribute`},
		"structured, bytes a number":  {asJSON, strings.Replace(json, `"data":{"a":1}`, `"data_base64":5`, 1), "data_base64 is no string"},
		"structured, bytes that lie":  {asJSON, strings.Replace(json, `"data":{"a":1}`, `"data_base64":"?"`, 1), "base64"},
		"binary, no version":          {minimal("ce-specversion", ""), "", "ce-specversion is missing"},
		"binary, another version":     {minimal("ce-specversion", "", "ce-specversion", "0.3"), "", "its specversion is 0.3: only 1.0 is supported"},
		"binary, no id":               {minimal("ce-id", ""), "", "id: MUST be a non-empty string"},
		"binary, no source":           {minimal("ce-source", ""), "", "source: REQUIRED"},
		"binary, no type":             {minimal("ce-type", ""), "", "type: MUST be a non-empty string"},
		"binary, an id twice":         {minimal("ce-id", "2"), "", "header ce-id is there 2 times"},
		"binary, an id in two cases":  {minimal("Ce-Id", "1"), "", "header ce-id is there 2 times"},
		"binary, two content types":   {minimal("Content-Type", "text/plain", "content-type", "text/html"), "", "header content-type is there 2 times"},
		"binary, a bad time":          {minimal("ce-time", "noon"), "", "header ce-time"},
		"binary, a bad source":        {minimal("ce-source", "", "ce-source", "%25zz"), "", "header ce-source"},
		"binary, a bad name":          {minimal("ce-a_b", "x"), "", `"a_b" cannot be the name of an attribute`},
		"binary, no name":             {minimal("ce-", "x"), "", `"" cannot be the name of an attribute`},
		"binary, data is the payload": {minimal("ce-data", "x"), "", `"data" cannot be the name of an attribute`},
		"binary, an overlong space":   {minimal("ce-subject", "a%C0%A0b"), "", "is not UTF-8"},
		"binary, half of a euro":      {minimal("ce-subject", "%E2%82"), "", "is not UTF-8"},
		"binary, raw bytes":           {minimal("ce-subject", "a\xffb"), "", "is not UTF-8"},
	} {
		e, err := cloudevent.Decode(tt.header, []byte(tt.data))
		if err == nil || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, %v; want an error that says %q", name, e, err, tt.says)
		}
	}
}

// FuzzDecode: no message makes it panic, and it can write what it has read.
func FuzzDecode(f *testing.F) {
	f.Add("", "", json)
	f.Add("Content-Type", "application/cloudevents+json", strings.Replace(json, `"data":{"a":1}`, `"data_base64":""`, 1))
	f.Add("ce-subject", "%22%", "hello")
	f.Fuzz(func(t *testing.T, name, value, data string) {
		for _, header := range []nats.Header{{name: {value}}, minimal(name, value)} {
			e, err := cloudevent.Decode(header, []byte(data))
			if err != nil {
				continue
			}
			if _, _, err := cloudevent.Encode(e, cloudevent.Binary); err != nil {
				t.Errorf("%v %s was read as %v, which is not written: %v", header, data, e, err)
			}
		}
	})
}
