package bus

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/engine"
	"github.com/jobstream/jobstream/internal/testvolume"
)

// volumeBytes is the size of a server's disk: enough for empty streams.
const volumeBytes = 8 << 20

// configureOn starts a server that stores on the volume and assumes that it has far more room, like one whose max_file_store is
// larger than its disk, or whose disk other programs fill.
func configureOn(t *testing.T, v *testvolume.Volume) *configured {
	t.Helper()
	c := &configured{dir: t.TempDir(), listen: fmt.Sprintf("127.0.0.1:%d", freePort(t)), disk: fmt.Sprintf("store_dir: %q, max_file_store: 1TB", v.Dir)}
	c.start(t, monitoring)
	return c
}

const monitoring = `http: "127.0.0.1:-1"`

// health returns the health that the server's monitoring reports.
func health(t *testing.T, s *configured) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.process.ask(whereMonitor)+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A disk is really full: the server leaves what it cannot write unanswered, and everything sent later to that stream. A log line
// names cause and remedy, and readiness is false, also when there is room again; once the server was restarted, work goes on.
// Everything confirmed is there.
func TestFullVolume(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 64<<10)
	for name, c := range map[string]struct {
		stream string
		write  func(context.Context, *Bus, int) error
		check  func(t *testing.T, b *Bus, confirmed []int)
	}{
		"facts": {
			stream: "jobstream_test_facts",
			write: func(ctx context.Context, b *Bus, n int) error {
				f := observation(keyOf(uid(n)), 2)
				f.Event = events.PodObserved{Pod: events.Pod{Name: large, UID: "pod", Version: 2}}
				if err := b.Publish(ctx, f); err != nil {
					return err
				}
				return b.Flush(ctx)
			},
			check: func(t *testing.T, b *Bus, confirmed []int) {
				e := listen(t, b, allPartitions(), nil)
				for _, n := range confirmed {
					until(t, "a fact that was confirmed is received", func() bool { return len(e.versions(keyOf(uid(n)))) > 0 })
				}
			},
		},
		"states": {
			stream: "KV_jobstream_test_state_job",
			write: func(ctx context.Context, b *Bus, n int) error {
				_, err := (&Store{bus: b, function: "job"}).Save(ctx, keyOf(uid(n)), []byte(large), 0, false)
				return err
			},
			check: func(t *testing.T, b *Bus, confirmed []int) {
				for _, n := range confirmed {
					if data, _, err := store(t, b).Load(t.Context(), keyOf(uid(n))); err != nil || string(data) != large {
						t.Errorf("state %d: %d bytes, %v", n, len(data), err)
					}
				}
			},
		},
		"timers": {
			stream: "jobstream_test_timers",
			write: func(ctx context.Context, b *Bus, n int) error {
				return b.Timers().Set(ctx, keyOf(uid(n)), "x", time.Now().Add(time.Second))
			},
			check: func(t *testing.T, b *Bus, confirmed []int) {
				e := listen(t, b, allPartitions(), nil)
				for _, n := range confirmed {
					until(t, "a timer that was set fires", func() bool {
						return e.count(func(d engine.Delivery) bool { return d.Key() == keyOf(uid(n)) && versionOf(d.Event()) == 0 }) > 0
					})
				}
			},
		},
		"events": {
			stream: "jobstream_test_events",
			write: func(ctx context.Context, b *Bus, n int) error {
				return b.Announce(ctx, tick("shop", "nightly", n))
			},
			check: func(t *testing.T, b *Bus, confirmed []int) {
				if n := messages(t, b, "jobstream_test_events"); n < uint64(len(confirmed)) {
					t.Errorf("%d events, of %d that were confirmed", n, len(confirmed))
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, j := testvolume.New(t, volumeBytes), &journal{}
			s := configureOn(t, v)
			b := connect(t, nil, logged(j), func(c *Config) { c.URL = "nats://" + s.listen })
			store(t, b)
			recovers(t, b, 1)
			var confirmed []int
			n := 0
			attempt := func() {
				ctx, cancel := context.WithTimeout(t.Context(), 2*requestTimeout)
				defer cancel()
				if n++; c.write(ctx, b, n) == nil {
					confirmed = append(confirmed, n)
				}
			}
			attempt()
			v.Fill(t)
			words := []string{"the stream " + c.stream, "confirms nothing", "make room on the server's disk", "restart the server"}
			for deadline := time.Now().Add(2 * soon); b.Ready() == nil; attempt() {
				if time.Now().After(deadline) {
					t.Fatalf("ready, on a full disk, with %d of %d confirmed", len(confirmed), n)
				}
			}
			unready(t, b, j, words...)
			if !holds(s.log.String(), "no space left on device", c.stream) {
				t.Errorf("the disk is not full:\n%s", s.log)
			}

			if text := health(t, s); !holds(text, "write error", "no space left on device", c.stream) {
				t.Errorf("the server's monitoring says %s", text)
			}

			v.Free(t)
			before := len(confirmed)
			if attempt(); len(confirmed) > before || b.Ready() == nil {
				t.Errorf("room alone has helped: %d confirmed, %v: then the remedy is wrong", len(confirmed)-before, b.Ready())
			}

			if losses(b) > 0 {
				t.Error("the cluster is to be listed again, for a stream that takes nothing")
			}
			s.restart(t, monitoring)
			until(t, "what is written is confirmed again, and all is well", func() bool {
				if b.nc.IsConnected() && len(confirmed) == before {
					attempt()
				}
				return len(confirmed) > before && b.Ready() == nil
			})
			t.Logf("%d of %d were confirmed", len(confirmed), n)
			if c.stream == b.names.facts() {
				signalled(t, b)
			}
			if l := j.lines("lets jobstream work again"); len(l) != 1 {
				t.Errorf("%d lines say that it is over:\n%s", len(l), j)
			}
			if l := j.lines("remedy="); len(l) != 1 {
				t.Errorf("%d lines name a remedy, not one:\n%s", len(l), strings.Join(l, "\n"))
			}
			c.check(t, b, confirmed)
		})
	}
}

// If the disk is full, a program that needs a missing stream reports the cause at the start.
func TestFullVolumeWithoutStreams(t *testing.T) {
	t.Parallel()
	v := testvolume.New(t, volumeBytes)
	s := configureOn(t, v)
	v.Fill(t)
	refused(t, Config{URL: "nats://" + s.listen}, "make stream jobstream_test_", "cannot write to its disk", "make room")
	v.Free(t)
	recovers(t, connect(t, nil, func(c *Config) { c.URL = "nats://" + s.listen }), 1)
}

// A message without permission is not confirmed either. That is no sign of a full disk, and a restart would be the wrong remedy.
func TestARefusedSubjectIsNoFullDisk(t *testing.T) {
	for _, refused := range []bool{false, true} {
		t.Run(fmt.Sprint("refused ", refused), func(t *testing.T) {
			b := connect(t, serve(t))
			if refused {
				b.problems.note(keyPublish+"facts", problem{words: "publishing is denied", denied: &denial{subject: "denied.subject"}})
			}
			stream := b.names.facts()
			b.failed(stream, context.DeadlineExceeded)
			b.ackGaps.answered(stream)
			b.ackGaps.mu.Lock()
			b.ackGaps.open[stream].answered = time.Now().Add(-time.Minute) // before the next message was sent
			b.ackGaps.mu.Unlock()
			b.failed(stream, context.DeadlineExceeded)
			if full := b.problems.any(keyFull); full == refused {
				t.Errorf("a full disk: %v", full)
			}
		})
	}
}
