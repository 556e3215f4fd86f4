package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/jobstream/jobstream/bus/cloudevent"
	"github.com/jobstream/jobstream/events"
)

// message is a stream message, with the parts that the subscriber reads.
type message struct {
	jetstream.Msg
	header nats.Header
	data   []byte
}

func (m message) Subject() string      { return "jobstream.events.default.shop.job.finish.succeeded.a" }
func (m message) Headers() nats.Header { return m.header }
func (m message) Data() []byte         { return m.data }

// A line is the whole event, in either mode; a message that is not an event blocks nothing.
func TestALineIsTheWholeEvent(t *testing.T) {
	finish := events.JobFinished{Job: events.Reference{Namespace: "shop", Name: "a", UID: "1"}, Result: events.JobSucceeded, End: time.Unix(0, 0)}
	e, err := events.CloudEvent("default", finish)
	if err != nil {
		t.Fatal(err)
	}
	want, err := events.EncodePublic("default", finish)
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(filepath.Join(t.TempDir(), "lines"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	messages := []message{{data: []byte("hello")}}
	for _, mode := range []cloudevent.Mode{cloudevent.Structured, cloudevent.Binary} {
		header, data, err := cloudevent.Encode(e, mode)
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, message{header: header, data: data})
	}
	for _, m := range messages {
		if err := work(m, out); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(out.Name())
	if twice := strings.Repeat(string(want)+"\n", 2); err != nil || string(got) != twice {
		t.Errorf("%v\ngot  %s\nwant %s", err, got, twice)
	}
}
