package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/jobstream/jobstream/bus"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/app/apptest"
	"github.com/jobstream/jobstream/internal/engine"
	"github.com/jobstream/jobstream/internal/finding"
)

// call runs a command as a program would, and returns its exit code and what it wrote.
func call(t *testing.T, c *cobra.Command, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, complaints bytes.Buffer
	code = execute(t.Context(), c, args, &out, &complaints)
	return code, out.String(), complaints.String()
}

// While a reconciler is at work beside a doctor, nothing is wrong but that this cluster has no ScheduledJobs, and that this NATS
// has no authentication.
func TestDoctorOfASystemAtWork(t *testing.T) {
	api := apptest.Start(t)
	c := ReconcilerDefaults()
	c.Options = options(t, api)
	stop, ended := run(t, func(ctx context.Context) error { return RunReconciler(ctx, c) })
	awaitReady(t, c.Probes, ended)
	args := []string{"--kubeconfig=" + api.Kubeconfig, "--nats-url=" + c.Bus.URL}
	var all []finding.Finding
	for deadline := time.Now().Add(soon); ; { // its partitions are consumed a moment after it is ready
		code, out, complaint := call(t, DoctorCommand(OfReconciler()), append(args, "-o", "json")...)
		if code != ExitFine || complaint != "" {
			t.Fatalf("exit code %d: %s\n%s", code, complaint, out)
		}
		all = nil
		if err := json.Unmarshal([]byte(out), &all); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if finding.Count(all, finding.Warn) == 2 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(out)
		}
	}
	for _, check := range []string{"nats", "nats jetstream", "nats max_payload", "nats cluster", "nats account", "nats fsync", "nats permissions", "nats credentials", "nats tls", "nats monitoring",
		"stream jobstream_default_facts", "facts for job", "fired timers for job", "facts for scheduledjob", "quarantine", "stream KV_jobstream_default_state_job",
		"clock of nats server jobstream-embedded", "api server", "clock of the api server", "scheduledjobs", "api permissions", "built-in controller", "time zones"} {
		n := slices.IndexFunc(all, func(f finding.Finding) bool { return f.Check == check })
		if n < 0 {
			t.Errorf("nothing was found about %q", check)
		} else if f := all[n]; (f.Level == finding.Warn) != (check == "scheduledjobs" || check == "nats credentials") {
			t.Errorf("%+v", f)
		}
	}

	code, out, _ := call(t, DoctorCommand(OfReconciler()), args...)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != ExitFine || len(lines) != len(all)+3 || !strings.HasSuffix(lines[len(lines)-1], " OK, 2 WARN, 0 FAIL") { // a header, an empty line, the sum
		t.Errorf("exit code %d, %d findings:\n%s", code, len(all), out)
	}
	if warned := lines[slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "WARN    scheduledjobs") })]; !strings.Contains(warned, "-> kubectl apply -k deploy/crd") {
		t.Errorf("a warning without its advice on the same line: %s", warned)
	}
	stop()
	awaitEnd(t, ended)
}

// Where nothing answers, the doctor says so about each, gives nothing away, and fails.
func TestDoctorOfNothing(t *testing.T) {
	args := []string{"--kubeconfig=" + apptest.Kubeconfig(t, "http://127.0.0.1:1"), "--nats-connect-timeout=1s", "--nats-url=nats://me:s3cret@127.0.0.1:1"}
	code, out, complaint := call(t, DoctorCommand(OfReconciler()), args...)
	if code != ExitFatal || strings.Count(out, "\nFAIL") != 2 || !strings.Contains(complaint, "2 of 3 checks failed") {
		t.Errorf("exit code %d: %s\n%s", code, complaint, out)
	}
	if strings.Contains(out+complaint, "s3cret") {
		t.Errorf("it holds a password:\n%s", out)
	}
}

// A clock that is an hour ahead is found on both sides.
func TestDoctorWithAWrongClock(t *testing.T) {
	api := apptest.Start(t)
	o := options(t, api)
	code, out, _ := call(t, DoctorCommand(OfReconciler()), "--kubeconfig="+api.Kubeconfig, "--nats-url="+o.Bus.URL, "--clock-offset=1h")
	if code != ExitFatal || strings.Count(out, "1h0m0")+strings.Count(out, "59m59") != 2 {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

func TestCommandsCalledWrongly(t *testing.T) {
	for _, tt := range []struct {
		c    *cobra.Command
		args []string
		says string
	}{
		{DoctorCommand(OfReconciler()), []string{"-o", "yaml"}, `"yaml"`},
		{DoctorCommand(OfReconciler()), []string{"x"}, `"x"`},
		{DoctorCommand(OfReconciler()), []string{"--nats-url="}, "--nats-url is empty"},
		{DrainCommand(), []string{"x"}, `"x"`},
		{DrainCommand(), []string{"--yes"}, "--suspend-schedules"},
		{DrainCommand(), []string{"--wait=soon"}, "--wait=30m"},
		{DrainCommand(), []string{"--wait=-1s"}, "above 0"},
		{QuarantineCommand(), []string{"x"}, `"x"`},
		{RequeueCommand(), nil, "--all"},
		{RequeueCommand(), []string{"--all", "1"}, "--all"},
	} {
		if code, out, complaint := call(t, tt.c, tt.args...); code != ExitUsage || out != "" || !strings.Contains(complaint, tt.says) {
			t.Errorf("%s %q: exit code %d: %s", tt.c.Name(), tt.args, code, complaint)
		}
	}
}

// What an operator does about poison: see it, put it back, see it gone. What a stranger wrote cannot steer the terminal.
func TestQuarantineAndRequeue(t *testing.T) {
	o := options(t, apptest.Start(t))
	where := "--nats-url=" + o.Bus.URL
	if code, out, _ := call(t, QuarantineCommand(), where); code != ExitFine || out != "the quarantine is empty\n" {
		t.Errorf("before there is one: exit code %d: %s", code, out)
	}
	b, err := bus.Connect(t.Context(), o.Bus)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	key := events.Key{Function: "job", Namespace: "default", UID: "3d5e3eb4-0001-4001-8001-000000000001"}
	var mended atomic.Bool
	received := make(chan struct{}, 10) // those that came after it was mended
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	go func() {
		_ = b.Consume(ctx, "job", []int{key.Partition()}, func(d engine.Delivery) {
			if !mended.Load() {
				d.Quarantine(errors.New("it panicked"))
				return
			}
			d.Ack()
			received <- struct{}{}
		})
	}()
	if err := b.Publish(t.Context(), events.Fact{Cluster: o.Bus.Cluster, Key: key, Event: events.JobGone{Version: 1}}); err != nil {
		t.Fatal(err)
	}
	list := func() (all []quarantined) {
		code, out, complaint := call(t, QuarantineCommand(), where, "-o=json")
		if err := json.Unmarshal([]byte(out), &all); code != ExitFine || err != nil {
			t.Fatalf("exit code %d: %v %s", code, err, complaint)
		}
		return all
	}
	await := func(want int) (all []quarantined) {
		for deadline := time.Now().Add(soon); len(all) != want; all = list() {
			if time.Now().After(deadline) {
				t.Fatalf("%d messages, want %d", len(all), want)
			}
		}
		return all
	}
	q := await(1)[0]
	id := strconv.FormatUint(q.ID, 10)
	if q.Key != key.Tokens() || q.Size == 0 || q.Requeue != "jobstream-reconciler requeue --cluster-name default "+id || q.Time.IsZero() || !strings.Contains(q.Reason, "it panicked") {
		t.Errorf("%+v", q)
	}
	_, out, _ := call(t, QuarantineCommand(), where)
	for _, want := range []string{id, q.Key, "it panicked", q.Requeue} {
		if !strings.Contains(out, want) {
			t.Errorf("the list does not say %q:\n%s", want, out)
		}
	}

	mended.Store(true)
	if code, out, _ := call(t, RequeueCommand(), where, "x", id, id); code != ExitFatal || !strings.Contains(out, id+": put back\n"+id+": not in the quarantine") || !strings.Contains(out, `"x" is no ID`) {
		t.Fatalf("exit code %d: %s", code, out)
	}
	select {
	case <-received:
	case <-time.After(soon):
		t.Fatal("what was put back is not received")
	}
	await(0)
	if code, out, _ := call(t, RequeueCommand(), where, id); code != ExitFine || out != id+": not in the quarantine (any more)\n" {
		t.Errorf("exit code %d: %s", code, out)
	}

	cut(t, o)
	if code, out, _ := call(t, QuarantineCommand(), where); code != ExitFine || !strings.Contains(out, "of 9000000") || !strings.Contains(out, "cannot be: the rest of it is lost") || strings.Contains(out, "\x1b") || !strings.Contains(out, "I am red") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if code, out, complaint := call(t, RequeueCommand(), where, "--all", "-o=json"); code != ExitFatal || !strings.Contains(out, "only 1 of its 9000000 bytes are left") || !strings.Contains(complaint, "1 of 1") {
		t.Errorf("exit code %d: %s%s", code, out, complaint)
	}
	await(1)
}

// cut sets aside what is left of a message that was too large.
func cut(t *testing.T, o Options) {
	t.Helper()
	nc, err := nats.Connect(o.Bus.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	m := nats.NewMsg("quarantine." + o.Bus.Cluster + ".job.default.x")
	m.Data = []byte("x")
	m.Header.Set("Jobstream-Subject", "facts."+o.Bus.Cluster+".1.job.default.x.JobGone")
	m.Header.Set("Jobstream-Truncated", "9000000")
	m.Header.Set("Jobstream-Reason", "\x1b[31mI am red")
	if _, err := nc.RequestMsg(m, soon); err != nil { // the answer is the stream's
		t.Fatal(err)
	}
}
