package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/jobstream/jobstream/bus/cloudevent"
	"github.com/jobstream/jobstream/events"
)

// message is a stream message that records its acknowledgements.
type message struct {
	jetstream.Msg
	header nats.Header
	data   []byte
	told   string
}

func (m *message) Headers() nats.Header { return m.header }
func (m *message) Data() []byte         { return m.data }
func (m *message) Metadata() (*jetstream.MsgMetadata, error) {
	return &jetstream.MsgMetadata{NumDelivered: 1}, nil
}
func (m *message) Ack() error                       { m.told = "ack"; return nil }
func (m *message) TermWithReason(string) error      { m.told = "term"; return nil }
func (m *message) NakWithDelay(time.Duration) error { m.told = "nak"; return nil }

// The receiver gets an event in structured mode, whichever mode it came in; a message that is not an event is set aside, and not
// posted.
func TestForwardInEitherMode(t *testing.T) {
	finish := events.JobFinished{Job: events.Reference{Namespace: "shop", Name: "a", UID: "1"}, Result: events.JobSucceeded, End: time.Unix(0, 0)}
	e, err := events.CloudEvent("default", finish)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, r.Header.Get("Content-Type")+" "+string(body))
	}))
	defer receiver.Close()
	to, err := url.Parse(receiver.URL)
	if err != nil {
		t.Fatal(err)
	}
	f := &forwarder{url: to, tries: 3, client: receiver.Client()}
	structured, err := events.EncodePublic("default", finish)
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []cloudevent.Mode{cloudevent.Structured, cloudevent.Binary} {
		header, data, err := cloudevent.Encode(e, mode)
		if err != nil {
			t.Fatal(err)
		}
		got = nil
		m := &message{header: header, data: data}
		f.forward(t.Context(), m)
		if want := []string{"application/cloudevents+json " + string(structured)}; m.told != "ack" || !slices.Equal(got, want) {
			t.Errorf("%s: %s\ngot  %q\nwant %q", mode, m.told, got, want)
		}
	}
	got = nil
	m := &message{data: []byte("hello")}
	if f.forward(t.Context(), m); m.told != "term" || got != nil {
		t.Errorf("no event: %s, %q", m.told, got)
	}
}

// The meaning of a response: done, retry, or set aside.
func TestJudge(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		code  int
		after string // Retry-After
		done  bool
		final bool
		wait  time.Duration
	}{
		{code: 200, done: true}, {code: 204, done: true}, {code: 202, after: "5", done: true},
		{code: 301, final: true}, {code: 307, final: true}, {code: 400, final: true}, {code: 401, final: true}, {code: 404, final: true}, {code: 410, after: "5", final: true},
		{code: 408}, {code: 500}, {code: 502}, {code: 504},
		{code: 429, after: "7", wait: 7 * time.Second},
		{code: 503, after: "Fri, 02 Jan 2026 03:05:05 GMT", wait: time.Minute},
		{code: 503, after: "Fri, 02 Jan 2026 03:03:05 GMT"}, // in the past
		{code: 429, after: "soon"}, {code: 429, after: "-1"}, {code: 429, after: "0"},
		{code: 429, after: "2000000000", wait: longestAsked}, {code: 429, after: "99999999999999999999"},
	} {
		a := &http.Response{StatusCode: c.code, Header: http.Header{"Retry-After": {c.after}}}
		if o := judge(a, now); (o.err == nil) != c.done || o.final != c.final || o.wait != c.wait {
			t.Errorf("%d, Retry-After %q: %+v", c.code, c.after, o)
		}
	}
}

// The wait doubles up to a limit, however many tries there were.
func TestBackoff(t *testing.T) {
	for tries, want := range map[uint64]time.Duration{1: time.Second, 2: 2 * time.Second, 4: 8 * time.Second, 11: longestWait, 100: longestWait, 1 << 60: longestWait} {
		if got := backoff(tries); got != want {
			t.Errorf("after %d tries: %v, want %v", tries, got, want)
		}
	}
}

// An invalid setting is refused by name.
func TestSettings(t *testing.T) {
	for name, bad := range map[string]string{"WEBHOOK_URL": "no URL", "WEBHOOK_TIMEOUT": "ten", "WEBHOOK_TRIES": "0"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("WEBHOOK_URL", "https://127.0.0.1/events")
			if _, err := settings(); err != nil {
				t.Fatal(err)
			}
			t.Setenv(name, bad)
			if _, err := settings(); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s=%s: %v", name, bad, err)
			}
		})
	}
}
