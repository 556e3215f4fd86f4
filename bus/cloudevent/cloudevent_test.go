package cloudevent_test

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/nats-io/nats.go"
	"pgregory.net/rapid"

	"github.com/jobstream/jobstream/bus/cloudevent"
)

// full is an event with every attribute that there is, and an extension of each type.
func full(t testing.TB) event.Event {
	t.Helper()
	e := event.New()
	e.SetID("1234")
	e.SetSource("/mycontext/sub%20context")
	e.SetType("com.example.someevent")
	e.SetSubject(`Euro € 😀 "100%"`)
	e.SetDataSchema("https://example.com/schema?a=b")
	e.SetTime(time.Date(2018, 4, 5, 3, 56, 24, 120e6, time.UTC))
	e.SetExtension("text", "a+b=c;d,e~")
	e.SetExtension("number", 42)
	e.SetExtension("truth", true)
	e.SetExtension("bytes", []byte{0xff})
	e.SetExtension("moment", time.Date(2018, 4, 5, 3, 56, 24, 0, time.FixedZone("east", 3600)))
	e.SetExtension("link", url.URL{Scheme: "https", Host: "example.com"})
	if err := e.SetData("application/json", map[string]string{"a": "<b>"}); err != nil {
		t.Fatal(err)
	}
	return e
}

// TestBinaryMode: each attribute is a header, in the canonical form of its type and percent-encoded; the data is the payload.
func TestBinaryMode(t *testing.T) {
	header, data, err := cloudevent.Encode(full(t), cloudevent.Binary)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"ce-specversion":     "1.0",
		"ce-id":              "1234",
		"ce-source":          "/mycontext/sub%2520context",
		"ce-type":            "com.example.someevent",
		"ce-subject":         "Euro%20%E2%82%AC%20%F0%9F%98%80%20%22100%25%22",
		"ce-dataschema":      "https://example.com/schema?a=b",
		"ce-time":            "2018-04-05T03:56:24.12Z",
		"ce-datacontenttype": "application/json",
		"Content-Type":       "application/json",
		"ce-text":            "a+b=c;d,e~",
		"ce-number":          "42",
		"ce-truth":           "true",
		"ce-bytes":           "/w==",
		"ce-moment":          "2018-04-05T02:56:24Z",
		"ce-link":            "https://example.com",
	}
	for name, value := range want {
		if got := header[name]; !slices.Equal(got, []string{value}) {
			t.Errorf("%s: %q, want %q", name, got, value)
		}
	}
	if len(header) != len(want) {
		t.Errorf("%d headers, want %d: %v", len(header), len(want), slices.Sorted(maps.Keys(header)))
	}
	if got := string(data); got != `{"a":"\u003cb\u003e"}` {
		t.Errorf("payload %s", got)
	}
}

// TestStructuredMode: the payload is all, and says so.
func TestStructuredMode(t *testing.T) {
	header, data, err := cloudevent.Encode(full(t), cloudevent.Structured)
	if err != nil {
		t.Fatal(err)
	}
	if len(header) != 1 || header.Get("Content-Type") != "application/cloudevents+json" {
		t.Errorf("headers %v", header)
	}
	var e event.Event
	if err := e.UnmarshalJSON(data); err != nil || e.Subject() != full(t).Subject() {
		t.Errorf("%s: %v", data, err)
	}
}

// TestBothModesComeBack: what was written is read, whatever it was; extensions become strings in binary mode.
func TestBothModesComeBack(t *testing.T) {
	for _, mode := range []cloudevent.Mode{cloudevent.Structured, cloudevent.Binary} {
		rapid.Check(t, func(t *rapid.T) {
			text := rapid.Map(rapid.String(), func(s string) string { return "." + s + "." }) // the SDK trims what it is given
			e := event.New()
			e.SetID(text.Draw(t, "id"))
			e.SetSource("/s/" + url.PathEscape(text.Draw(t, "source")))
			e.SetType(text.Draw(t, "type"))
			e.SetSubject(text.Draw(t, "subject"))
			e.SetExtension("ext", text.Draw(t, "extension"))
			if err := e.SetData(rapid.SampledFrom([]string{"application/json", "application/json; charset=utf-8"}).Draw(t, "type of data"),
				rapid.String().Draw(t, "data")); err != nil {
				t.Fatal(err)
			}
			header, data, err := cloudevent.Encode(e, mode)
			if err != nil {
				t.Fatal(err)
			}
			for name, values := range header {
				if strings.ContainsFunc(values[0], func(r rune) bool { return r < ' ' || r > '~' }) {
					t.Fatalf("%s holds what no header can: %q", name, values[0])
				}
			}
			back, err := cloudevent.Decode(header, data)
			if err != nil {
				t.Fatalf("%v: %v %s", err, header, data)
			}
			if back.String() != e.String() || back.ID() != e.ID() || back.Subject() != e.Subject() || back.Extensions()["ext"] != e.Extensions()["ext"] {
				t.Fatalf("came back as\n%v, was\n%v", back, e)
			}
		})
	}
}

// TestHeaderValues: how a value is written, and how else it may be written to be read as the same. "" in want says that only
// reading is meant.
func TestHeaderValues(t *testing.T) {
	for name, tt := range map[string]struct {
		value string
		want  string
		reads []string
	}{
		"plain":             {"nightly", "nightly", []string{" nightly\t", `"nightly"`, "%6eightly", "%6Eightly"}},
		"space":             {"a b", "a%20b", []string{"a b", `"a b"`}},
		"double quote":      {`a"b`, "a%22b", []string{`a"b`, `"a\"b"`}},
		"only quotes":       {`""`, "%22%22", []string{`"\"\""`}},
		"backslash":         {`a\b`, `a\b`, []string{`"a\\b"`}},
		"percent":           {"100%", "100%25", []string{"100%"}}, // a percent sign that begins nothing is one
		"percent and digit": {"100%2", "100%252", []string{"100%2"}},
		"percent and word":  {"100%zz", "100%25zz", []string{"100%zz"}},
		"encoded once":      {"a%20b", "a%2520b", nil},
		"euro":              {"€", "%E2%82%AC", []string{"€", "%e2%82%ac"}},
		"emoji":             {"😀", "%F0%9F%98%80", []string{"😀"}},
		"line break":        {"a\r\nb", "a%0D%0Ab", nil},
		"del":               {"a\x7fb", "a%7Fb", nil},
		"not encoded":       {"!#$&'()*+,-./:;<=>?@[]^_`{|}~", "!#$&'()*+,-./:;<=>?@[]^_`{|}~", nil},
		"open quote":        {`"a`, "%22a", []string{`"a`}},
		"quotes and more":   {`"a" b`, "%22a%22%20b", []string{`"a" b`}},
		"quote not closed":  {`"a\"`, `%22a\%22`, []string{`"a\"`}},
	} {
		e := full(t)
		e.SetSubject(tt.value)
		header, data, err := cloudevent.Encode(e, cloudevent.Binary)
		if err != nil || header["ce-subject"][0] != tt.want {
			t.Errorf("%s: %q is written as %q, want %q (%v)", name, tt.value, header["ce-subject"], tt.want, err)
			continue
		}
		for _, written := range append(tt.reads, tt.want) {
			header["ce-subject"] = []string{written}
			if back, err := cloudevent.Decode(header, data); err != nil || back.Subject() != tt.value {
				t.Errorf("%s: %q reads %q, want %q (%v)", name, written, back.Subject(), tt.value, err)
			}
		}
	}
}

const json = `{"specversion":"1.0","id":"1","source":"/s","type":"t","data":{"a":1}}`

// minimal is a message in binary mode with what is required, and what the test adds: "" takes away.
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

// TestMessagesThatAreEvents: the mode is told by the Content-Type, names of headers have no case, and what can only be meant
// in one way is taken so.
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
		"structured, with blanks and nulls": {data: ` { "specversion" : "1.0" , "subject":null, "time":null, "ext":null, "id":"1","source":"/s","type":"t", "data_base64" : "aGk=" } `,
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

// TestMessagesThatAreNoEvents: the error says what is wrong, in words that help.
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

// TestEventsThatCannotBeSent: nothing leaves that breaks the specification.
func TestEventsThatCannotBeSent(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*event.Event)
		says   string
	}{
		"no id":          {func(e *event.Event) { e.SetID("") }, "id: id is required"},
		"a bad source":   {func(e *event.Event) { e.SetSource("/a%zz") }, "source"},
		"not UTF-8":      {func(e *event.Event) { e.SetSubject("a\xff") }, "subject: it is not UTF-8"},
		"version 0.3":    {func(e *event.Event) { e.SetSpecVersion("0.3") }, "its specversion is 0.3"},
		"a name of ours": {func(e *event.Event) { e.SetExtension("data", "x") }, `"data" cannot be the name`},
	} {
		for _, mode := range []cloudevent.Mode{cloudevent.Structured, cloudevent.Binary} {
			e := full(t)
			tt.change(&e)
			if header, _, err := cloudevent.Encode(e, mode); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%s, %s: %v, %v; want an error that says %q", name, mode, header, err, tt.says)
			}
		}
	}
	e := full(t)
	e.DataEncoded = []byte("{")
	if _, _, err := cloudevent.Encode(e, cloudevent.Structured); err == nil {
		t.Error("half of an object was sent as JSON")
	}
	if _, _, err := cloudevent.Encode(full(t), "batch"); err == nil || !strings.Contains(err.Error(), "use structured or binary") {
		t.Errorf("batch: %v", err)
	}
}

// TestContentTypeOfBinaryMode: it never says that the message is structured, and holds no more than a header can.
func TestContentTypeOfBinaryMode(t *testing.T) {
	for declared, want := range map[string]string{
		"text/plain; charset=utf-8":                "text/plain; charset=utf-8",
		"application/cloudevents+json":             "",
		"Application/CloudEvents+JSON; charset=x":  "",
		"text/plain; title=\"a\u00e9\"":            "",
		"application/vnd.cloudevents.example+json": "application/vnd.cloudevents.example+json",
	} {
		e := full(t)
		e.SetDataContentType(declared)
		header, data, err := cloudevent.Encode(e, cloudevent.Binary)
		if err != nil {
			t.Errorf("%s: %v", declared, err)
			continue
		}
		if got := header.Get("Content-Type"); got != want {
			t.Errorf("%s: %q, want %q", declared, got, want)
		}
		if back, err := cloudevent.Decode(header, data); err != nil || back.DataContentType() != declared {
			t.Errorf("%s comes back as %q: %v", declared, back.DataContentType(), err)
		}
	}
}

// FuzzDecode: no message makes it panic, and what it reads it can write.
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
