package cloudevents

import (
	"bytes"
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	cenats "github.com/cloudevents/sdk-go/protocol/nats/v2"
	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/nats-io/nats.go"

	"github.com/jobstream/jobstream/bus/cloudevent"
	"github.com/jobstream/jobstream/events"
)

var modes = []cloudevent.Mode{cloudevent.Structured, cloudevent.Binary}

// sample is an event that headers can hold as it is, with the subject that is given.
func sample(t *testing.T, subject string) event.Event {
	t.Helper()
	e := event.New()
	e.SetID("1234")
	e.SetSource("/mycontext")
	e.SetType("com.example.someevent")
	e.SetSubject(subject)
	e.SetTime(time.Date(2018, 4, 5, 3, 56, 24, 0, time.UTC))
	e.SetExtension("partitionkey", "p")
	if err := e.SetData("application/json", map[string]int{"a": 1}); err != nil {
		t.Fatal(err)
	}
	return e
}

func same(a, b event.Event) bool {
	return reflect.DeepEqual(a.Context.AsV1(), b.Context.AsV1()) && bytes.Equal(a.Data(), b.Data())
}

// What jobstream announces, the SDK reads, in either mode, from the stream that subscribers read.
func TestTheSDKReadsWhatJobstreamAnnounces(t *testing.T) {
	job := events.Reference{Namespace: "shop", Name: "nightly.report", UID: "8d0c3a52-77a4-4a38-9c51-3f6b1f0a2c11"}
	start := time.Date(2026, 1, 2, 3, 4, 1, 0, time.UTC)
	all := []events.Public{
		events.JobStarted{Job: job, Start: start, Parallelism: 2, CompletionMode: "Indexed"},
		events.JobFinished{Job: job, Result: events.JobFailed, Reason: "FailedIndexes", Message: "100% über", Start: start, End: start.Add(time.Minute), DurationSeconds: 60},
		events.TickDecided{ScheduledJob: job, Verdict: events.Started, Nominal: start, Count: 1},
	}
	for _, mode := range modes {
		t.Run(string(mode), func(t *testing.T) {
			p := open(t)
			b := p.announcer(t, mode)
			for _, e := range all {
				if err := b.Announce(t.Context(), e); err != nil {
					t.Fatal(err)
				}
			}
			for i, m := range p.readTheirs(t, "jobstream_test_events", "jobstream.events.test.>", len(all)) {
				if got, want := m.ReadEncoding() == binding.EncodingBinary, mode == cloudevent.Binary; got != want {
					t.Errorf("the SDK takes it for binary: %v, want %v", got, want)
				}
				e, err := binding.ToEvent(t.Context(), m)
				if err != nil {
					t.Fatal(err)
				}
				want, err := events.CloudEvent("test", all[i])
				if err != nil {
					t.Fatal(err)
				}
				if !same(*e, want) {
					t.Errorf("the SDK reads\n%v, want\n%v", e, want)
				}
			}
		})
	}
}

// What the SDK sends, jobstream's reader reads, in either mode, even what it should have encoded.
func TestOurReaderReadsWhatTheSDKSends(t *testing.T) {
	p := open(t)
	for _, mode := range modes {
		for _, subject := range []string{"nightly", "a b", `say "hello"`, "100%", "héllo €", "😀"} {
			want := sample(t, subject)
			p.sendTheirs(t, want, mode)
			m := p.last(t)
			got, err := cloudevent.Decode(m.Header, m.Data)
			if err != nil || !same(got, want) {
				t.Errorf("%s, %q: read\n%v, want\n%v (%v)", mode, subject, got, want, err)
			}
		}
	}
}

// The SDK's module for NATS without JetStream knows structured mode alone: in that, each reads the other.
func TestCoreNATS(t *testing.T) {
	p := open(t)
	ctx, stop := context.WithTimeout(t.Context(), soon)
	defer stop()
	ours, err := p.nc.SubscribeSync("core.theirs")
	if err != nil {
		t.Fatal(err)
	}
	sender, err := cenats.NewSenderFromConn(p.nc, "core.theirs")
	if err != nil {
		t.Fatal(err)
	}
	want := sample(t, "héllo 100%")
	if err := sender.Send(ctx, (*binding.EventMessage)(&want)); err != nil {
		t.Fatal(err)
	}
	m, err := ours.NextMsgWithContext(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := cloudevent.Decode(m.Header, m.Data); err != nil || !same(got, want) {
		t.Errorf("our reader: %v, %v", got, err)
	}
	header, data, err := cloudevent.Encode(want, cloudevent.Structured)
	if err != nil {
		t.Fatal(err)
	}
	theirs := cenats.NewMessage(&nats.Msg{Header: header, Data: data})
	if got, err := binding.ToEvent(ctx, theirs); err != nil || !same(*got, want) {
		t.Errorf("the SDK: %v, %v", got, err)
	}
}

// The remaining tests show where the SDK violates the binding. Each fails once that is fixed: then correct docs/events.md, too.

func TestTheSDKDoesNotEncodeHeaders(t *testing.T) {
	p := open(t)
	const subject = `héllo "x" 100%`
	p.sendTheirs(t, sample(t, subject), cloudevent.Binary)
	if got := p.last(t).Header.Get("ce-subject"); got != subject {
		t.Errorf("the SDK writes %q now, not %q", got, subject)
	}
}

// The one thing that jobstream's reader gets wrong for it: no reader can tell this from an event whose subject is "a b".
func TestTheSDKsPercentSignIsMistaken(t *testing.T) {
	p := open(t)
	p.sendTheirs(t, sample(t, "a%20b"), cloudevent.Binary)
	m := p.last(t)
	got, err := cloudevent.Decode(m.Header, m.Data)
	if err != nil {
		t.Fatal(err)
	}
	if m.Header.Get("ce-subject") != "a%20b" || got.Subject() != "a b" {
		t.Errorf("the SDK writes %q now, and we read %q", m.Header.Get("ce-subject"), got.Subject())
	}
}

func TestTheSDKDoesNotDecodeHeaders(t *testing.T) {
	p := open(t)
	p.sendAsTheBus(t, sample(t, "a b"), cloudevent.Binary)
	if got, err := p.lastOfTheirs(t); err != nil || got.Subject() != "a%20b" {
		t.Errorf("the SDK reads %v now (%v), no longer the subject a%%20b", got, err)
	}
}

func TestTheSDKKnowsLowerCaseHeadersOnly(t *testing.T) {
	p := open(t)
	header, data, err := cloudevent.Encode(sample(t, "nightly"), cloudevent.Binary)
	if err != nil {
		t.Fatal(err)
	}
	canonical := nats.Header{}
	for name, values := range header {
		canonical["CE"+strings.TrimPrefix(name, "ce")] = values
	}
	p.send(t, canonical, data)
	m := p.last(t)
	if got, err := cloudevent.Decode(m.Header, m.Data); err != nil || !same(got, sample(t, "nightly")) {
		t.Errorf("our reader: %v, %v", got, err)
	}
	if got, err := p.lastOfTheirs(t); err == nil || !strings.Contains(err.Error(), "specversion") {
		t.Errorf("the SDK reads %v now (%v)", got, err)
	}
}

func TestTheSDKSendsStructuredWithoutContentType(t *testing.T) {
	p := open(t)
	p.sendTheirs(t, sample(t, "nightly"), cloudevent.Structured)
	if got := p.last(t).Header; len(got) != 0 {
		t.Errorf("the SDK sends the headers %v now", got)
	}
}

func TestTheSDKDoesNotLookAtTheContentType(t *testing.T) {
	p := open(t)
	header, data, err := cloudevent.Encode(sample(t, "inside"), cloudevent.Structured)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"ce-specversion": "1.0", "ce-id": "other", "ce-source": "/other", "ce-type": "other"} {
		header[name] = []string{value}
	}
	p.send(t, header, data)
	m := p.last(t)
	if got, err := cloudevent.Decode(m.Header, m.Data); err != nil || got.ID() != "1234" {
		t.Errorf("our reader: %v, %v; the Content-Type says structured", got, err)
	}
	if got, err := p.lastOfTheirs(t); err != nil || got.ID() != "other" {
		t.Errorf("the SDK reads %v now (%v), and not the headers", got, err)
	}
}

func TestTheSDKSendsNoMessageID(t *testing.T) {
	p := open(t)
	for range 2 {
		p.sendTheirs(t, sample(t, "nightly"), cloudevent.Binary)
	}
	if seq, id := p.last(t).Sequence, p.last(t).Header.Get("Nats-Msg-Id"); seq != 2 || id != "" {
		t.Errorf("the same event twice is %d messages now, with the message id %q", seq, id)
	}
}

func TestTheSDKForCoreNATSReadsNoBinaryMode(t *testing.T) {
	header, data, err := cloudevent.Encode(sample(t, "nightly"), cloudevent.Binary)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := binding.ToEvent(t.Context(), cenats.NewMessage(&nats.Msg{Header: header, Data: data})); err == nil {
		t.Errorf("the SDK reads %v now", got)
	}
}
