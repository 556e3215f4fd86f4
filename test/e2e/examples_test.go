package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/bus/cloudevent"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

const eventsOf = "jobstream_" + harness.ClusterName + "_events"

// The examples do what their READMEs describe, each as a program, with no more permissions than deploy/nats/accounts.conf gives
// to a subscriber; trigger and reconciler have those that it gives to them.
func TestExamples(t *testing.T) {
	t.Parallel()
	s := own(t, harness.Config{Subscribers: []string{"audit", "example", "javascript", "chain", "webhook"}})
	for _, e := range []struct {
		name string
		test func(*testing.T, *harness.System)
	}{{"doctor", doctor}, {"subscriber", subscriber}, {"javascript", javascript}, {"chain", chain}, {"webhook", webhook}, {"shell", shell}} {
		t.Run(e.name, func(t *testing.T) { e.test(t, s) })
	}
}

// The doctor finds that the reconciler has every permission that it needs, and no other.
func doctor(t *testing.T, s *harness.System) {
	code, out := reconciler(t, s, "doctor", "--nats-url="+s.NATS.As("reconciler"))
	if code != 0 || !hasAll(out, []string{"OK      nats permissions", "none is refused", "OK      nats excess permissions", "all are refused", " 0 FAIL"}) {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

// made creates the consumer of the subscriber, as the operator: for the events of the test's namespace that match.
func made(p *harness.Space, subscriber, filter string, change ...func(*jetstream.ConsumerConfig)) jetstream.Consumer {
	p.Helper()
	config := jetstream.ConsumerConfig{Durable: subscriber, AckPolicy: jetstream.AckExplicitPolicy,
		FilterSubject: "jobstream.events." + harness.ClusterName + "." + p.Namespace + "." + filter}
	for _, f := range change {
		f(&config)
	}
	c, err := gone(p, subscriber).CreateConsumer(p.Context(), eventsOf, config)
	if err != nil {
		p.Fatal(err)
	}
	return c
}

// gone deletes the consumer, if it exists, and returns the operator's JetStream.
func gone(p *harness.Space, consumer string) jetstream.JetStream {
	p.Helper()
	nc, err := nats.Connect(p.NATS.URL, nats.Timeout(timeout))
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(nc.Close)
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(timeout))
	if err == nil {
		err = js.DeleteConsumer(p.Context(), eventsOf, consumer)
	}
	if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		p.Fatal(err)
	}
	return js
}

// settled waits until the consumer has nothing pending and nothing unacknowledged.
func settled(p *harness.Space, c jetstream.Consumer) {
	p.Helper()
	harness.Until(p, timeout, "all events to be acknowledged", func(ctx context.Context) error {
		info, err := c.Info(ctx)
		if err != nil || info.NumPending+uint64(info.NumAckPending) == 0 {
			return err
		}
		return fmt.Errorf("%d are pending, %d are unacknowledged", info.NumPending, info.NumAckPending)
	})
}

// example runs an example as a process with the subscriber's credentials, and with no variables of the test's environment but
// those that programs need to start. It is stopped at the end.
func example(p *harness.Space, subscriber, path string, args, env []string) *harness.Process {
	p.Helper()
	path, err := exec.LookPath(path)
	if err != nil {
		p.Fatal(err)
	}
	e := &harness.Process{Name: subscriber, Path: path, Args: args, LogFile: filepath.Join(p.TempDir(), subscriber+".log"), Env: slices.Concat([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + p.TempDir(), "STREAM=" + eventsOf, "NATS_URL=" + p.NATS.As(subscriber), "NATS_API_PREFIX=" + harness.APIPrefix}, env)}
	p.Cleanup(func() {
		if err := e.Kill(); err != nil {
			p.Error(err)
		}
		if p.Failed() {
			text, _ := os.ReadFile(e.LogFile)
			p.Logf("%s has printed:\n%s", subscriber, harness.Tail(string(text), 40))
		}
	})
	return e
}

func begin(p *harness.Space, e *harness.Process) {
	p.Helper()
	if err := e.Start(); err != nil {
		p.Fatal(err)
	}
}

// kill is kill -9.
func kill(p *harness.Space, e *harness.Process) {
	p.Helper()
	if !e.Running() { // it may, if the bus did not answer in time; after a panic it may not
		if strings.Contains(e.Printed(), "panic:") {
			p.Fatalf("%s has ended by itself:\n%s", e.Name, harness.Tail(e.Printed(), 10))
		}
		p.Logf("%s has ended by itself:\n%s", e.Name, harness.Tail(e.Printed(), 3))
		return
	}
	if err := e.Kill(); err != nil {
		p.Fatal(err)
	}
}

// prints waits until the process has printed all of it, in any of its lives.
func prints(p *harness.Space, e *harness.Process, all ...string) {
	p.Helper()
	harness.Until(p, timeout, e.Name+" to print all", func(context.Context) error {
		text, err := os.ReadFile(e.LogFile)
		for _, want := range all {
			if err == nil && !strings.Contains(string(text), want) {
				err = fmt.Errorf("it has not printed %q", want)
				if !e.Running() {
					err = harness.Stop(err)
				}
			}
		}
		return err
	})
}

// built builds a program of a module of the repository.
func built(t *testing.T, module, pkg string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "program")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", out, pkg)
	build.Dir = filepath.Join(harness.Root, module)
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, text)
	}
	return out
}

func quick(name string) *batchv1.Job { return harness.Shell(name, "true", harness.Size(1, 1, 0)) }

// The Go subscriber, which TestSubscribersMissNothing tests, also runs if it may not create its consumer.
func subscriber(t *testing.T, s *harness.System) {
	p := s.Space(t)
	c := made(p, "example", "job.finish.>")
	e := example(p, "example", built(t, ".", "./examples/subscriber"), []string{"-url=" + s.NATS.As("example"), "-stream=" + eventsOf, "-api-prefix=" + harness.APIPrefix}, nil)
	begin(p, e)
	p.Apply(quick("received"))
	prints(p, e, `"subject":"received"`, `"result":"Succeeded"`)
	settled(p, c)
}

// The JavaScript subscriber is away while Jobs end, and is killed when it has reported one of them: it reports every end.
func javascript(t *testing.T, s *harness.System) {
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("npm is missing: install Node.js with npm (apt-get install nodejs npm)")
	}
	p := s.Space(t)
	dir := t.TempDir()
	for _, file := range []string{"package.json", "subscriber.mjs"} {
		text, err := os.ReadFile(filepath.Join(harness.Root, "examples", "javascript", file))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	install := exec.CommandContext(t.Context(), "npm", "install", "--no-audit", "--no-fund", "--no-package-lock")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm install: %v\n%s", err, out)
	}
	c := made(p, "javascript", "job.finish.>", func(c *jetstream.ConsumerConfig) { c.AckWait = 2 * time.Second })
	e := example(p, "javascript", "node", []string{filepath.Join(dir, "subscriber.mjs")}, nil)
	begin(p, e)
	p.Apply(quick("first"))
	prints(p, e, p.Namespace+"/first Succeeded (CompletionsReached) after ")
	var want []string
	for round := range 5 {
		kill(p, e)
		names := make([]string, 4)
		for i := range names {
			names[i] = fmt.Sprintf("good-%d-%d", round, i)
			p.Apply(quick(names[i]))
			want = append(want, p.Namespace+"/"+names[i]+" Succeeded")
		}
		for _, name := range names {
			p.AwaitEnd(name, batchv1.JobComplete, timeout)
		}
		begin(p, e)
		harness.Until(p, timeout, "one of them to be reported", func(context.Context) error { // so that the others are unacknowledged when it is killed
			if !strings.Contains(e.Printed(), fmt.Sprintf("/good-%d-", round)) {
				return errors.New("none is")
			}
			return nil
		})
	}
	kill(p, e)
	p.Apply(harness.Shell("bad", "exit 3", harness.Size(1, 1, 0)))
	p.AwaitEnd("bad", batchv1.JobFailed, timeout)
	begin(p, e)
	binary(p, events.JobFinished{Job: events.Reference{Namespace: p.Namespace, Name: "binary", UID: "1"}, Result: events.JobSucceeded, Reason: "CompletionsReached", End: time.Now()})
	prints(p, e, append(want, p.Namespace+"/bad Failed (BackoffLimitExceeded)", p.Namespace+"/binary Succeeded (CompletionsReached)")...)
	settled(p, c)
	if err := e.Stop(); err != nil {
		t.Error(err)
	}
	if code, err := e.Exit(timeout); err != nil || code != 0 {
		t.Errorf("asked to stop, it ends with %d, %v", code, err)
	}
}

// binary publishes the event in binary mode, as a reconciler with that setting would.
func binary(p *harness.Space, public events.Public) {
	p.Helper()
	e, err := events.CloudEvent(harness.ClusterName, public)
	if err != nil {
		p.Fatal(err)
	}
	header, data, err := cloudevent.Encode(e, cloudevent.Binary)
	if err != nil {
		p.Fatal(err)
	}
	nc, err := nats.Connect(p.NATS.URL, nats.Timeout(timeout))
	if err != nil {
		p.Fatal(err)
	}
	defer nc.Close()
	if _, err := nc.RequestMsg(&nats.Msg{Subject: events.PublicSubject(harness.ClusterName, public), Header: header, Data: data}, timeout); err != nil {
		p.Fatal(err)
	}
}
