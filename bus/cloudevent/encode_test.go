package cloudevent_test

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"pgregory.net/rapid"

	"github.com/jobstream/jobstream/bus/cloudevent"
	_ "github.com/jobstream/jobstream/internal/dev/replay"
)

// full is an event with every attribute, and an extension of each type.
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

// TestStructuredMode: the payload is the whole event, and the Content-Type declares that.
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

// TestBothModesComeBack: every event that is written is read back; extensions become strings in binary mode.
func TestBothModesComeBack(t *testing.T) {
	for _, mode := range []cloudevent.Mode{cloudevent.Structured, cloudevent.Binary} {
		rapid.Check(t, func(t *rapid.T) {
			text := rapid.Map(rapid.String(), func(s string) string { return "." + s + "." }) // the SDK trims strings
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

// TestHeaderValues: the form in which a value is written, and other forms that are read as the same value. An empty want means
// that the value is only read.
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
		"open, a backslash": {`"a\`, `%22a\`, []string{`"a\`}},
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

// TestEventsThatCannotBeSent: Encode rejects every event that breaks the specification.
func TestEventsThatCannotBeSent(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*event.Event)
		says   string
	}{
		"no id":           {func(e *event.Event) { e.SetID("") }, "id: id is required"},
		"a bad source":    {func(e *event.Event) { e.SetSource("/a%zz") }, "source"},
		"not UTF-8":       {func(e *event.Event) { e.SetSubject("a\xff") }, "subject: it is not UTF-8"},
		"version 0.3":     {func(e *event.Event) { e.SetSpecVersion("0.3") }, "its specversion is 0.3"},
		"a reserved name": {func(e *event.Event) { e.SetExtension("data", "x") }, `"data" cannot be the name`},
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

// TestContentTypeOfBinaryMode: it never declares the message structured, and holds only what a header can.
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
