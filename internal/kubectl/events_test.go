package kubectl

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/nats-io/nats.go"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/jobstream/jobstream/bus"
	"github.com/jobstream/jobstream/bus/cloudevent"
	"github.com/jobstream/jobstream/events"
)

// TestEvents: one of each type, in both modes of messages.
func TestEvents(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 1, 0, time.UTC)
	nominal := began.Add(-time.Second)
	owner := &events.RunOwner{ScheduledJob: reference("nightly"), Nominal: nominal}
	all := []events.Public{
		events.TickDecided{ScheduledJob: reference("nightly"), Verdict: events.Started, Nominal: nominal, Count: 1, Job: new(reference("nightly-x"))},
		events.JobStarted{Job: reference("nightly-x"), Start: began, Parallelism: 2, Completions: new(int32(3)), Owner: owner},
		events.PodFinished{Job: reference("nightly-x"), Pod: reference("nightly-x-1"), Result: events.PodFailed, Index: new(1), Start: began, End: began.Add(7 * time.Second),
			DurationSeconds: 7, Container: &events.ContainerEnd{Name: "main", ExitCode: 137, Reason: "OOMKilled"}, Node: "node-7"},
		events.JobFinished{Job: reference("nightly-x"), Result: events.JobFailed, Reason: "FailedIndexes", Succeeded: 2, Failed: 7, FailedIndexes: "1", Start: began,
			End: began.Add(57 * time.Second), DurationSeconds: 57, LastFailure: &events.PodFailure{Pod: "nightly-x-1", Container: "main", ExitCode: 137, Reason: "OOMKilled", Node: "node-7"}},
		events.TickDecided{ScheduledJob: reference("nightly"), Verdict: events.Missed, Reason: "Deadline", Nominal: nominal.Add(time.Hour), Until: nominal.Add(3 * time.Hour), Count: 3,
			Message: "too late\x1b[2J\nall of them"},
	}
	const want = `2026-01-02T03:04:00Z  TickDecided  shop/nightly  Started: Job nightly-x
2026-01-02T03:04:01Z  JobStart     shop/nightly-x  3 completions, parallelism 2; of nightly, 2026-01-02T03:04:00Z
2026-01-02T03:04:08Z  PodFinish    shop/nightly-x  Pod nightly-x-1: Failed, index 1 (container main, exit code 137, OOMKilled) in 7s on node-7
2026-01-02T03:04:58Z  JobFinish    shop/nightly-x  Failed(FailedIndexes): 2 succeeded, 7 failed in 57s; failed indexes 1; last failure: Pod nightly-x-1 (container main, exit code 137, OOMKilled) on node-7
2026-01-02T04:04:00Z  TickDecided  shop/nightly  Missed(Deadline): 3 times until 2026-01-02T06:04:00Z: too late?[2J all of them
`
	for _, mode := range []string{"structured", "binary"} {
		t.Run(mode, func(t *testing.T) {
			here := alone(t)
			b, url := newBus(t, func(c *bus.Config) { c.EventMode = cloudevent.Mode(mode) })
			for _, p := range all {
				if err := b.Announce(t.Context(), p); err != nil {
					t.Fatal(err)
				}
			}
			if got := call(t, "", []string{"events", "--nats-url=" + url}, here); got.code != 0 || got.out != want || got.err != "" {
				t.Errorf("got %s", got)
			}
			for args, lines := range map[string]int{"events -A": 5, "events --type=JobFinish": 1, "events --type=dev.jobstream.job.start.v1,tickdecided": 3, "events -n office": 0, "events -n *": 0, "events --since=24h": 5} {
				if got := call(t, "", strings.Fields(args), here); got.code != 0 || strings.Count(got.out, "\n") != lines || (lines == 0) != strings.Contains(got.err, "no event of the namespace") {
					t.Errorf("%s: want %d lines, got %s", args, lines, got)
				}
			}
			got := call(t, "", []string{"events", "-o", "json"}, here)
			for i, line := range strings.Split(strings.TrimSpace(got.out), "\n") {
				p, err := events.DecodePublic([]byte(line))
				if err != nil || events.PublicID(p) != events.PublicID(all[i]) || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' }) {
					t.Errorf("%v: %s", err, line)
				}
			}
		})
	}
}

// TestSafeJSON: nothing in it steers a terminal, and a parser reads the same.
func TestSafeJSON(t *testing.T) {
	for _, text := range []string{"plain", "\x1b[2J\n", "\u009b2J", "\u202eabc", "\u2028", "\U000e0001", "Grüße 日本 🙂", "\x7f", "\xff", `\ "quoted"`} {
		in, err := json.Marshal(map[string]string{"text": text})
		if err != nil {
			t.Fatal(err)
		}
		out, err := safeJSON(in)
		var a, b map[string]string
		if err != nil || json.Unmarshal(in, &a) != nil || json.Unmarshal([]byte(out), &b) != nil || a["text"] != b["text"] {
			t.Errorf("%q is %q: %v", text, out, err)
		}
		if strings.ContainsFunc(out, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q would steer a terminal", out)
		}
	}
}

// locked is a writer that a test reads while a command writes.
type locked struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestEventsFollow: what comes is shown as it comes, until the user interrupts; that is no failure. A message of another program on the
// subject is shown as what it is.
func TestEventsFollow(t *testing.T) {
	here := alone(t)
	b, url := newBus(t)
	var out locked
	p := newTool(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out})
	here(p)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() { ended <- execute(ctx, p, "kubectl jobstream", []string{"events", "-f", "--since=1m"}) }()
	nc, err := nats.Connect(url, nats.Timeout(patience))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	shows := func(want string) {
		t.Helper()
		eventually(t, func() string {
			if shown := out.String(); !strings.Contains(shown, want) {
				return fmt.Sprintf("it to show %q, it shows %s", want, shown)
			}
			return ""
		})
	}
	for i := range 3 {
		if err := b.Announce(t.Context(), events.JobStarted{Job: reference(fmt.Sprintf("job-%d", i)), Start: time.Now()}); err != nil {
			t.Fatal(err)
		}
		shows(fmt.Sprintf("shop/job-%d ", i))
	}
	if err := nc.Publish("jobstream.events.default.shop.job.start.x", []byte("\x1b]0;mine\a")); err != nil {
		t.Fatal(err)
	}
	shows("a message that is no event of this version: structured mode: ")
	stop()
	if code := <-ended; code != 0 || strings.Contains(out.String(), "\x1b") || strings.Count(out.String(), "\n") != 4 {
		t.Errorf("exit code %d: %s", code, out.String())
	}
}
