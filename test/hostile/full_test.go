package hostile

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// full is a stream that an attacker fills: how, and what tells an operator of it.
type full struct {
	stream string
	// prefix and suffix surround the namespace and the UID in its subjects.
	prefix, suffix string
	header         nats.Header
	bytes          int // the limit of the stream
	remedy         string
}

var (
	states = full{stream: "KV_jobstream_" + harness.ClusterName + "_state_job", prefix: "$KV.jobstream_" + harness.ClusterName + "_state_job.",
		bytes: stateBytes, remedy: "raise --nats-state-bytes"}
	timers = full{stream: "jobstream_" + harness.ClusterName + "_timers", prefix: "timers." + harness.ClusterName + ".job.", suffix: ".x",
		header: nats.Header{"Nats-Schedule": {"@at 2126-01-01T00:00:00Z"}, "Nats-Schedule-Target": {"fired." + harness.ClusterName + ".3.job." + nowhere + ".x.x"}},
		bytes:  256 << 20, remedy: "look for what fills it"}
)

// The size of the states is the smallest allowed, so that filling them takes 64 MiB and not 512.
const (
	stateBytes  = 64 << 20
	smallMemory = "--nats-state-bytes=67108864"
)

// nowhere is a namespace that does not exist.
const nowhere = "nowhere"

// about returns the subjects of one Job.
func (f full) about(j *batchv1.Job) string {
	return f.prefix + events.Token(j.Namespace) + "." + events.Token(string(j.UID)) + f.suffix
}

// of returns the filter for all its messages about the Job.
func (f full) of(j *batchv1.Job) string {
	subjects := strings.TrimSuffix(f.about(j), f.suffix)
	if f.suffix != "" {
		subjects += ".>"
	}
	return subjects
}

// filler is a client of NATS with a reconciler's right to write. It fills streams with the largest messages that the server
// takes.
type filler struct {
	*testing.T
	js   jetstream.JetStream
	made int
}

func newFiller(t *testing.T, s *harness.System) *filler {
	t.Helper()
	nc, err := nats.Connect(s.NATS.URL, nats.Name("filler"), nats.Timeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	return &filler{T: t, js: js}
}

// fill writes as much as the stream may hold, each message for another Job.
func (f *filler) fill(s full) error {
	payload := make([]byte, 8<<20-4096)
	for bytes := 0; bytes < s.bytes; bytes += len(payload) {
		f.made++
		other := &batchv1.Job{}
		other.Namespace, other.UID = nowhere, types.UID(fmt.Sprintf("0b5e7a10-0000-4000-8000-%012d", f.made))
		if _, err := f.js.PublishMsg(f.Context(), &nats.Msg{Subject: s.about(other), Header: s.header, Data: payload}); err != nil {
			return fmt.Errorf("fill %s: %w", s.stream, err)
		}
	}
	return nil
}

// look returns the stream, and how many of its subjects match.
func (f *filler) look(ctx context.Context, stream, subjects string) (jetstream.Stream, int, error) {
	s, err := f.js.Stream(ctx, stream)
	if err != nil {
		return nil, 0, err
	}
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(subjects))
	if err != nil {
		return nil, 0, err
	}
	return s, len(info.State.Subjects), nil
}

// forget fills the stream until it holds nothing of the Job.
func (f *filler) forget(s full, j *batchv1.Job) {
	f.Helper()
	if _, n, err := f.look(f.Context(), s.stream, s.of(j)); err != nil || n == 0 {
		f.Fatalf("%s holds %d messages of %s before it is filled: %v", s.stream, n, j.Name, err)
	}
	f.drain(s, j)
}

// drain fills the stream until it holds nothing of the Job, and at least once; it may hold nothing of it before.
func (f *filler) drain(s full, j *batchv1.Job) {
	f.Helper()
	for range 5 { // a fact in flight may have restored something
		if err := f.fill(s); err != nil {
			f.Fatal(err)
		}
		_, n, err := f.look(f.Context(), s.stream, s.of(j))
		if err != nil {
			f.Fatal(err)
		}
		if n == 0 {
			return
		}
	}
	f.Fatalf("%s has been filled five times and still holds what it held of %s", s.stream, j.Name)
}

// keep fills the stream again every second, until stop is called.
func (f *filler) keep(s full) (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		again := time.NewTicker(time.Second)
		defer again.Stop()
		for {
			if err := f.fill(s); err != nil {
				f.Error(err)
				return
			}
			select {
			case <-again.C:
			case <-end:
				return
			}
		}
	}()
	return func() { close(end); <-ended }
}

// doctor returns what the doctor reports about the stream.
func doctor(t *testing.T, s *harness.System, stream string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), suite.Programs(t).Reconciler, "doctor", "--kubeconfig="+s.ControlPlane.Kubeconfig(),
		"--nats-url="+s.NATS.URL, "--cluster-name="+harness.ClusterName, smallMemory).Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	_, told, found := strings.Cut(string(out), "stream "+stream+" ")
	if !found {
		t.Fatalf("the doctor does not mention %s:\n%s", stream, out)
	}
	told, _, _ = strings.Cut(told, "  stream ")
	return told
}

// use is how full the stream is by the program's metrics, from 0 to 1.
func use(ctx context.Context, p *harness.Process, stream string) (float64, error) {
	text, err := harness.Metrics(ctx, p)
	if err != nil {
		return 0, err
	}
	var of [2]float64
	for i, name := range []string{"jobstream_stream_bytes", "jobstream_stream_limit_bytes"} {
		_, rest, _ := strings.Cut(text, "\n"+name+`{stream="`+stream+`"} `)
		number, _, _ := strings.Cut(rest, "\n")
		if of[i], err = strconv.ParseFloat(number, 64); err != nil {
			return 0, fmt.Errorf("%s of %s: %w", name, stream, err)
		}
	}
	return of[0] / of[1], nil
}

// A client that may write states and timers fills both streams while Jobs run and wait. The streams drop their oldest messages:
// the states of these Jobs, and the timer of one. The Jobs end with exact counts all the same, the one that has lost its timer
// after the next list; new Jobs are not affected. The doctor names the full stream and the remedy.
func TestFullStreamsCostNoCounts(t *testing.T) {
	t.Parallel() // it waits for a deadline
	s := own(t, harness.Config{Flags: []string{smallMemory}})
	p, f := newPeace(t, s), newFiller(t, s)
	gate := t.TempDir() + "/go"
	running := p.Apply(harness.Shell("running", "until [ -e '"+gate+"' ]; do sleep 0.2; done", harness.Size(3, 3, 0), harness.Indexed))
	late := p.Apply(harness.Shell("late", "sleep 1000", func(s *batchv1.JobSpec) { s.ActiveDeadlineSeconds = ptr.To[int64](60) }))
	p.Await("running", timeout, "to run", func(j *batchv1.Job) bool { return ptr.Deref(j.Status.Ready, 0) == 3 })
	p.Await("late", timeout, "to run", func(j *batchv1.Job) bool { return ptr.Deref(j.Status.Ready, 0) == 1 })
	f.forget(timers, late)
	f.forget(states, late)
	f.drain(states, running)
	if j := p.Job("late"); harness.Is(j, batchv1.JobFailed) {
		t.Fatalf("its timer has fired before it was lost, so this run proves nothing: %s", harness.Brief(j.Status))
	}
	for _, one := range []full{states, timers} {
		if told := doctor(t, s, one.stream); !strings.Contains(told, "are full: the oldest go") || !strings.Contains(told, one.remedy) {
			t.Errorf("of the full stream %s the doctor reports: %s", one.stream, told)
		}
		harness.Until(t, timeout, "the metrics to show that "+one.stream+" is full", func(ctx context.Context) error {
			if n, err := use(ctx, s.Reconcilers[0], one.stream); err != nil || n <= 0.8 { // the threshold of the alert in docs/operations.md
				return fmt.Errorf("%v: %w", n, err)
			}
			return nil
		})
	}
	stop := f.keep(states)
	p.round(t)
	open(t, gate)
	if end := p.AwaitEnd("running", batchv1.JobComplete, timeout); end.Status.Succeeded != 3 || end.Status.CompletedIndexes != "0-2" {
		t.Errorf("the Job whose memory was lost is %s", harness.Brief(end.Status))
	}
	stop()
	relist(t, s)
	if end := p.AwaitEnd("late", batchv1.JobFailed, 2*timeout); end.Status.Failed != 1 {
		t.Errorf("the Job whose timer was lost is %s", harness.Brief(end.Status))
	}
	unharmed(t, s)

	for _, one := range []full{states, timers} { // as `nats stream purge --subject` does
		stream, _, err := f.look(t.Context(), one.stream, one.prefix+nowhere+".>")
		if err == nil {
			err = stream.Purge(t.Context(), jetstream.WithPurgeSubject(one.prefix+nowhere+".>"))
		}
		if err != nil {
			t.Fatal(err)
		}
		if told := doctor(t, s, one.stream); strings.Contains(told, "full") {
			t.Errorf("of %s, which was purged, the doctor reports: %s", one.stream, told)
		}
	}
	p.round(t)
}
