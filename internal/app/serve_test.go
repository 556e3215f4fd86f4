package app

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/bus"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/internal/engine"
)

func get(t *testing.T, h http.Handler, path string) (code int, body string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

func TestHealthAndReadiness(t *testing.T) {
	p := &Probes{}
	p.await("bus")
	p.Set("cluster", func(context.Context) error { return nil })
	if code, body := get(t, p.handler(), "/healthz"); code != http.StatusOK || body != "ok\n" {
		t.Errorf("/healthz while starting: %d %q", code, body)
	}
	if code, body := get(t, p.handler(), "/readyz"); code != http.StatusServiceUnavailable || body != "[-]bus failed: starting\n[+]cluster ok\nnot ready\n" {
		t.Errorf("/readyz while starting: %d %q", code, body)
	}
	p.Set("bus", func(context.Context) error { return nil })
	if code, body := get(t, p.handler(), "/readyz"); code != http.StatusOK || body != "[+]bus ok\n[+]cluster ok\nready\n" {
		t.Errorf("/readyz when ready: %d %q", code, body)
	}
	p.Set("bus", func(context.Context) error { return errors.New("gone\naway") })
	if code, body := get(t, p.handler(), "/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(body, "[-]bus failed: gone; away\n") {
		t.Errorf("/readyz without a bus: %d %q", code, body)
	}
}

// What only another process can mend is told to the kubelet: a liveness probe that fails makes it start one.
func TestHealthOfWhatIsBrokenForGood(t *testing.T) {
	p := &Probes{}
	var broken error
	p.SetAlive(func() error { return broken })
	if code, _ := get(t, p.handler(), "/healthz"); code != http.StatusOK {
		t.Errorf("/healthz of what works: %d", code)
	}
	broken = errors.New("closed\nfor good")
	if code, body := get(t, p.handler(), "/healthz"); code != http.StatusInternalServerError || body != "closed; for good\n" {
		t.Errorf("/healthz of what is broken: %d %q", code, body)
	}
}

func TestListen(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	for _, address := range []string{"", Off} {
		if l, err := listen(t.Context(), address, "x", nil, log); l != nil || err != nil {
			t.Errorf("%q: %v, %v", address, l, err)
		}
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, err = listen(t.Context(), taken.Addr().String(), "health-bind-address", nil, log)
	var fatal *Fatal
	if !errors.As(err, &fatal) || !strings.Contains(fatal.Remedy, "--health-bind-address") || !strings.Contains(fatal.Remedy, "JOBSTREAM_HEALTH_BIND_ADDRESS") {
		t.Errorf("a port that is taken: %v", err)
	}
}

func TestMetrics(t *testing.T) {
	m := newMetrics()
	m.forReconciler()
	m.forTrigger()
	m.expect("job")
	m.bus(func() error { return errors.New("away") })
	m.watches(func() int { return 2 })
	key := events.Key{Function: "job"}
	m.turned(engine.Turned{Function: "job", Facts: make([]events.Event, 3)})
	m.turned(engine.Turned{Function: "job", Err: engine.Retry{Err: errors.New("busy")}})
	for _, answers := range [][]events.Event{nil, {events.EffectRefused{}}} {
		a := m.counted(engine.ActorFunc(func(context.Context, events.Key, effect.Effect) ([]events.Event, error) { return answers, nil }))
		if _, err := a.Act(t.Context(), key, effect.CreatePod{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{nil, io.EOF, forGood{}} {
		_ = m.announcing(announcer{err}).Announce(t.Context(), events.JobFinished{}) // counted is all that it is
	}
	m.schedules.ScheduleStatusWritten(&v1alpha1.ScheduledJob{}, &v1alpha1.ScheduledJob{}, []events.TickDecided{{Verdict: events.Started, Count: 1}})
	full := bus.Backlog{Messages: 7, Bytes: 80, MaxBytes: 100, MaxAge: time.Hour, First: 12, Oldest: time.Unix(1000, 0)}
	m.backlog(func() (bus.Backlog, bool) { return full, full.Messages > 0 })
	m.uses(func() []bus.Use {
		return []bus.Use{{Stream: "KV_x_state_job", Bytes: 30, MaxBytes: 40}, {Stream: "x_old", Bytes: 5, MaxBytes: -1}}
	})
	m.unread("job")
	code, body := get(t, m.handler(), "/metrics")
	if code != http.StatusOK {
		t.Fatalf("%d: %s", code, body)
	}
	for _, want := range []string{
		`jobstream_stream_bytes{stream="KV_x_state_job"} 30`,
		`jobstream_stream_limit_bytes{stream="KV_x_state_job"} 40`,
		`jobstream_stream_bytes{stream="x_old"} 5`,
		`jobstream_unread_facts_total{function="job"} 1`,
		`jobstream_turns_total{function="job",result="ok"} 1`,
		`jobstream_turns_total{function="job",result="retry"} 1`,
		`jobstream_turn_duration_seconds_count{function="job"} 2`,
		`jobstream_facts_total{function="job"} 3`,
		`jobstream_effects_total{effect="CreatePod",function="job",result="ok"} 1`,
		`jobstream_effects_total{effect="CreatePod",function="job",result="refused"} 1`,
		`jobstream_quarantined_total{function="job"} 0`, // so that the first one is an increase
		`jobstream_bus_ready 0`,
		`jobstream_announcements_total{result="confirmed",type="dev.jobstream.job.finish.v1"} 1`,
		`jobstream_announcements_total{result="unconfirmed",type="dev.jobstream.job.finish.v1"} 1`,
		`jobstream_announcements_total{result="unsendable",type="dev.jobstream.job.finish.v1"} 1`,
		`jobstream_announcements_total{result="unconfirmed",type="dev.jobstream.job.start.v1"} 0`,
		`jobstream_announcements_total{result="gap",type="dev.jobstream.schedule.tick.v1"} 1`,
		`jobstream_events_stream_bytes 80`,
		`jobstream_events_stream_limit_bytes 100`,
		`jobstream_events_stream_limit_seconds 3600`,
		`jobstream_events_stream_messages 7`,
		`jobstream_events_stream_first_sequence 12`,
		`jobstream_events_stream_oldest_timestamp_seconds 1000`,
		`jobstream_relists_total 0`,
		`jobstream_watches_failing 2`,
		`jobstream_build_info{version=`,
		`go_goroutines`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s", want)
		}
	}
}

// announcer answers what it is told to.
type announcer struct{ err error }

func (a announcer) Announce(context.Context, events.Public) error { return a.err }

// forGood is an error that no repetition cures.
type forGood struct{ error }

func (forGood) Permanent() bool { return true }

func TestTurnResults(t *testing.T) {
	for want, err := range map[string]error{
		"ok":          nil,
		"retry":       engine.Retry{Err: io.EOF},
		"stopped":     engine.Retry{Err: context.Canceled},
		"quarantined": engine.Poisoned{Cause: io.EOF},
		"newer":       fn.ErrNewer{},
		"error":       io.EOF,
	} {
		if got := turnResult(err); got != want {
			t.Errorf("%v is %s, want %s", err, got, want)
		}
	}
}

func TestNotReadyBeforeItHasBegun(t *testing.T) {
	if report, ready := new(Probes).Report(t.Context()); ready {
		t.Errorf("ready without any check: %s", report)
	}
}
