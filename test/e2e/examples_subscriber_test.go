package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/jobstream/jobstream/internal/dev/size"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

const eventsStream = "jobstream_" + harness.ClusterName + "_events"

// publicEvent is a public event as any subscriber reads it.
type publicEvent struct{ Source, ID, Type, Subject, Sequence string }

func (e publicEvent) finish() bool { return e.Type == "dev.jobstream.job.finish.v1" }

// While many Jobs run, one subscriber is off, and another (examples/subscriber) is killed twenty times. Neither misses a
// JobFinish; the one that was off receives each once, after its JobStart.
func TestSubscribersMissNothing(t *testing.T) {
	t.Parallel()
	const kills, underWay = 20, 30
	jobs := size.SubscriberJobs
	s := own(t, harness.Config{})
	p := s.Space(t)
	truth, filter := watchTruth(p), "jobstream.events."+harness.ClusterName+"."+p.Namespace+".job.>"
	js := connectNATS(t, s)
	off, err := js.CreateConsumer(t.Context(), eventsStream, jetstream.ConsumerConfig{Durable: "off", FilterSubject: filter, AckPolicy: jetstream.AckExplicitPolicy})
	if err != nil {
		t.Fatal(err)
	}
	example := buildExample(t, s, "subscriber", "-filter="+filter)
	if err := example.Start(); err != nil {
		t.Fatal(err)
	}
	began, killed, lines := time.Now(), 0, 0
	for i := range jobs {
		p.Apply(harness.Shell(fmt.Sprintf("job-%d", i), "true", harness.Size(1, 1, 0)))
		harness.Until(t, timeout, "most Jobs to end", func(context.Context) error { return atLeast(ends(truth), i+1-underWay) })
		if (i+1)%(jobs/kills) == 0 {
			harness.Until(t, timeout, "the subscriber to receive an event in this life", func(context.Context) error { return atLeast(len(readEvents(t, example)), lines+1) })
			if err := example.Kill(); err != nil {
				t.Fatal(err)
			}
			killed, lines = killed+1, len(readEvents(t, example))
			if err := example.Start(); err != nil {
				t.Fatal(err)
			}
		}
	}
	harness.Until(t, timeout, "all Jobs to end", func(context.Context) error { return atLeast(ends(truth), jobs) })
	t.Logf("%d Jobs in %v, %d at once", jobs, time.Since(began).Round(time.Second), underWay)

	receivesAll(t, truth, off, jobs)
	want := finishes(truth)
	harness.Until(t, timeout, "the killed subscriber to have received every end", func(context.Context) error {
		have := map[string]int{}
		for _, e := range readEvents(t, example) {
			have[e.ID]++
		}
		for id := range want {
			if have[id] == 0 {
				return fmt.Errorf("%s is missing", id)
			}
		}
		return nil
	})
	all := readEvents(t, example)
	t.Logf("killed %d times: %d lines, %d events, %d repeated", killed, len(all), distinct(all), len(all)-distinct(all))

	if err := js.DeleteStream(t.Context(), eventsStream); err != nil {
		t.Fatal(err)
	}
	p.Apply(harness.Shell("afterwards", "true", harness.Size(1, 1, 0)))
	harness.Until(t, timeout, "the subscriber to continue with the new stream", func(context.Context) error {
		for _, e := range readEvents(t, example) {
			if e.finish() && e.Subject == "afterwards" {
				return nil
			}
		}
		return fmt.Errorf("it has not received it")
	})
	if err := example.Stop(); err != nil {
		t.Fatal(err)
	}
	if code, err := example.Exit(timeout); err != nil || code != 0 {
		t.Errorf("asked to stop, it exits with %d, %v", code, err)
	}
}

// receivesAll starts the subscriber that was off, and compares what it receives with the cluster.
func receivesAll(t *testing.T, truth *jobTruth, c jetstream.Consumer, jobs int) {
	t.Helper()
	began := time.Now()
	var all []publicEvent
	harness.Until(t, timeout, "the subscriber that was off to receive every end", func(context.Context) error {
		batch, err := c.Fetch(500, jetstream.FetchMaxWait(time.Second))
		if err != nil {
			return err
		}
		for m := range batch.Messages() {
			all = append(all, parse(t, m.Data()))
			if err := m.Ack(); err != nil {
				return err
			}
		}
		return atLeast(len(all), 2*jobs)
	})
	started, last, ended := map[string]bool{}, map[string]string{}, map[[2]string]bool{}
	for _, e := range all {
		job := strings.Split(e.ID, "/")[0]
		if e.Sequence <= last[job] {
			t.Errorf("%s: %s comes after %s", e.Subject, e.Sequence, last[job])
		}
		last[job] = e.Sequence
		switch {
		case !e.finish():
			started[job] = true
		case !started[job]:
			t.Errorf("the end of %s comes before its start", e.Subject)
		default:
			ended[[2]string{e.Source, e.ID}] = true
		}
	}
	for key := range ended {
		if _, ok := finishes(truth)[key[1]]; !ok {
			t.Errorf("%v was never true", key)
		}
	}
	if len(ended) != jobs {
		t.Errorf("%d ends are received, want %d", len(ended), jobs)
	}
	t.Logf("off for all that time: %d events in %v, %d JobFinish, each a (source, id) of its own, each after its JobStart", len(all), time.Since(began).Round(time.Millisecond), len(ended))
}

func connectNATS(t *testing.T, s *harness.System) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(s.NATS.URL, nats.Timeout(timeout))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(timeout))
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// buildExample builds a program of examples/ that writes events to a file, not started yet.
func buildExample(t *testing.T, s *harness.System, name string, args ...string) *harness.Process {
	t.Helper()
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, name), "./examples/"+name)
	build.Dir = harness.Root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p := &harness.Process{Name: name, Path: filepath.Join(dir, name), LogFile: filepath.Join(dir, name+".log"),
		Args: append([]string{"-url=" + s.NATS.URL, "-stream=" + eventsStream, "-file=" + filepath.Join(dir, "events")}, args...)}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("%s:\n%s", name, harness.Tail(p.Printed(), 20))
		}
	})
	return p
}

// readEvents returns the complete lines that the example has written.
func readEvents(t *testing.T, p *harness.Process) (all []publicEvent) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(filepath.Dir(p.LogFile), "events"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		if bytes.HasSuffix(line, []byte("\n")) {
			all = append(all, parse(t, line))
		}
	}
	return all
}

func parse(t *testing.T, event []byte) (e publicEvent) {
	t.Helper()
	if err := json.Unmarshal(event, &e); err != nil {
		t.Fatalf("%v: %s", err, event)
	}
	return e
}

func distinct(all []publicEvent) int {
	seen := map[[2]string]bool{}
	for _, e := range all {
		seen[[2]string{e.Source, e.ID}] = true
	}
	return len(seen)
}

// finishes returns the ids of the ends that the API server had.
func finishes(truth *jobTruth) map[string]string {
	all := truth.all()
	maps.DeleteFunc(all, func(id, _ string) bool { return !strings.Contains(id, "/finish/") })
	return all
}

func ends(truth *jobTruth) int { return len(finishes(truth)) }

func atLeast(have, want int) error {
	if have < want {
		return fmt.Errorf("%d of %d", have, want)
	}
	return nil
}
