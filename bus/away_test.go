package bus

import (
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// oneWay is a proxy between a client and its server. While it is mute, it forwards requests and drops answers.
type oneWay struct {
	mute atomic.Bool
	url  string
}

func startOneWay(t *testing.T, server string) *oneWay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &oneWay{url: "nats://" + l.Addr().String()}
	var all sync.WaitGroup
	t.Cleanup(func() { l.Close(); all.Wait() })
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			upstream, err := net.Dial("tcp", strings.TrimPrefix(server, "nats://"))
			if err != nil {
				client.Close()
				continue
			}
			all.Go(func() { _, _ = io.Copy(upstream, client); upstream.Close() })
			all.Go(func() { _, _ = io.Copy(p.answers(client), upstream); client.Close() })
		}
	})
	return p
}

// answers is the subject prefix of answers.
func (p *oneWay) answers(client io.Writer) io.Writer {
	return writer(func(b []byte) (int, error) {
		if p.mute.Load() {
			return len(b), nil
		}
		return client.Write(b)
	})
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

// A write whose answer does not arrive may have been stored. So the bus repeats no write by itself, except facts, whose id merges
// copies: the caller gets an error, and can find out.
func TestUnansweredWritesAreNotRepeatedBlindly(t *testing.T) {
	t.Parallel()
	s := serve(t)
	p := startOneWay(t, s.URL())
	b := connect(t, nil, func(c *Config) { c.URL = p.url })
	st := store(t, b)
	tap, err := nats.Connect(s.URL(), nats.Timeout(soon))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tap.Close)
	var mu sync.Mutex
	seen := map[string][]nats.Header{}
	for _, subject := range []string{"facts.>", "$KV.>", "timers.>", "jobstream.events.>", "$JS.API.STREAM.MSG.GET.>"} {
		if _, err := tap.Subscribe(subject, func(m *nats.Msg) {
			mu.Lock()
			defer mu.Unlock()
			family, _, _ := strings.Cut(m.Subject, ".")
			seen[family] = append(seen[family], m.Header)
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := tap.Flush(); err != nil {
		t.Fatal(err)
	}
	copies := func(family string) []nats.Header {
		mu.Lock()
		defer mu.Unlock()
		return append([]nats.Header(nil), seen[family]...)
	}

	p.mute.Store(true)
	key := keyOf(uid(1))
	var all sync.WaitGroup
	all.Go(func() {
		if _, err := st.Save(t.Context(), key, []byte("x"), 0, false); err == nil {
			t.Error("saved without an answer")
		}
	})
	all.Go(func() {
		if _, _, err := st.Load(t.Context(), key); err == nil {
			t.Error("loaded without an answer")
		}
	})
	all.Go(func() {
		if err := b.Timers().Set(t.Context(), key, "x", time.Now().Add(time.Hour)); err == nil {
			t.Error("a timer was set without an answer")
		}
	})
	all.Go(func() {
		if err := b.Announce(t.Context(), tick("shop", "nightly", 1)); err == nil {
			t.Error("announced without an answer")
		}
	})
	if err := b.Publish(t.Context(), observation(key, 1)); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	until(t, "the fact is sent again", func() bool { return len(copies("facts")) > 1 })
	for _, h := range copies("facts") {
		if got := h.Get(jetstream.MsgIDHeader); got != observation(key, 1).ID() {
			t.Errorf("a copy of the fact has the id %q", got)
		}
	}
	if n := len(copies("$JS")); n != len(loadTimeouts) { // a read may be repeated, and should be: see loadTimeouts
		t.Errorf("a state was asked for %d times, want %d", n, len(loadTimeouts))
	}
	for family, header := range map[string]string{"$KV": jetstream.ExpectedLastSubjSeqHeader, "timers": headerSchedule, "jobstream": jetstream.MsgIDHeader} {
		sent := copies(family)
		if len(sent) != 1 || sent[0].Get(header) == "" {
			t.Errorf("%s was sent %d times, want once, with %s: %v", family, len(sent), header, sent)
		}
	}
}

// lines counts log lines.
type lines struct {
	slog.Handler
	mu  sync.Mutex
	all map[string]int
}

func (l *lines) Enabled(context.Context, slog.Level) bool { return true }
func (l *lines) WithAttrs([]slog.Attr) slog.Handler       { return l }

func (l *lines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all[r.Message]++
	return nil
}

func (l *lines) counts() (sum int, of map[string]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of = map[string]int{}
	for message, n := range l.all {
		of[message] = n
		sum += n
	}
	return sum, of
}

// For a minute there is no server, and all callers go on with requests: facts, states, timers, events, 64 partitions. The log
// stays readable, and when the server is back, so is the bus.
func TestBusAwayForAMinute(t *testing.T) {
	t.Parallel()
	away := time.Minute
	if testing.Short() {
		away = 3 * time.Second
	}
	dir := t.TempDir()
	s := serveIn(t, dir, freePort(t))
	port := portOf(t, s)
	log := &lines{all: map[string]int{}}
	b := connect(t, s, func(c *Config) { c.Log = slog.New(log) })
	st := store(t, b)
	key := keyOf(uid(1))
	e := listen(t, b, allPartitions(), nil)
	until(t, "all partitions are consumed", func() bool { return consumers(t, b) == 64 })
	before, _ := log.counts()

	ctx, stop := context.WithTimeout(t.Context(), away)
	defer stop()
	var asked atomic.Int64
	var all sync.WaitGroup
	for _, ask := range []func(n uint64) error{
		func(n uint64) error { return b.Publish(ctx, observation(key, n)) },
		func(uint64) error { return b.Flush(ctx) },
		func(uint64) error { _, err := st.Save(ctx, key, []byte("x"), 0, false); return err },
		func(uint64) error { _, _, err := st.Load(ctx, key); return err },
		func(uint64) error { return b.Timers().Set(ctx, key, "x", time.Now()) },
		func(n uint64) error { return b.Announce(ctx, tick("shop", "nightly", int(n))) },
	} {
		all.Go(func() {
			again := time.NewTicker(5 * time.Millisecond)
			defer again.Stop()
			for n := uint64(1); ; n++ {
				select {
				case <-ctx.Done():
					return
				case <-again.C:
					_ = ask(n) // the stream may exist when the first request arrives
					asked.Add(1)
				}
			}
		})
	}
	s.Shutdown()
	all.Wait()
	sum, of := log.counts()
	t.Logf("away for %v: %d requests, %d lines: %v", away, asked.Load(), sum-before, of)
	if most := 3 * (2 + int(away/quietFor)); sum-before > most || of["bus lost; reconnecting"] == 0 {
		t.Errorf("%d lines, want that the bus is lost, and at most %d: %v", sum-before, most, of)
	}
	serveIn(t, dir, port)
	until(t, "the bus is ready", func() bool { return b.Ready() == nil })
	const last = 1 << 40
	until(t, "facts flow", func() bool {
		_ = b.Publish(t.Context(), observation(key, last)) // dropped until a loss has been signalled
		for _, v := range e.versions(key) {
			if v == last {
				return true
			}
		}
		return false
	})
}
