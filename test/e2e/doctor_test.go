package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// reconciler runs a subcommand of the reconciler as an operator would beside the shared system, and returns its exit code and
// its output.
func reconciler(t *testing.T, s *harness.System, args ...string) (code int, out string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), programs(t).Reconciler, append([]string{args[0],
		"--kubeconfig=" + s.ControlPlane.Kubeconfig(), "--nats-url=" + s.NATS.URL, "--cluster-name=" + harness.ClusterName}, args[1:]...)...)
	text, err := c.CombinedOutput()
	if c.ProcessState == nil {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), string(text)
}

// Beside a working system, the doctor finds no failure; without its bus, it finds that.
func TestDoctorSeesWhatThereIs(t *testing.T) {
	s := shared(t)
	harness.Until(t, timeout, "the doctor to find no failure", func(context.Context) error { // on a busy machine a clock may answer late
		code, out := reconciler(t, s, "doctor")
		if code != 0 || !hasAll(out, []string{"nats-server 2.", "v1.36.", "all are allowed", "within", "jobstream.dev/v1alpha1 is served, with every field", " 0 FAIL"}) {
			return fmt.Errorf("exit code %d:\n%s", code, out)
		}
		return nil
	})
	code, out := reconciler(t, s, "doctor", "--nats-url=nats://"+unusedAddress(t), "--nats-connect-timeout=1s")
	if code != 1 || !hasAll(out, []string{"FAIL    nats ", "cannot be reached", "all are allowed", " 1 FAIL"}) {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

// A message about a running Job cannot be decoded. The operator finds it and puts it back, in vain, since it still cannot be
// decoded. The Job, whose memory was forgotten twice, completes with exact counts.
func TestRequeueOfWhatCannotBeRead(t *testing.T) {
	s := shared(t)
	p, ledger := s.Space(t), harness.NewLedger(t)
	wire := s.Tap(t)
	const completions = 10
	j := p.Apply(harness.Shell("upset", ledger.Script("0.5", ""), harness.Size(completions, 2, 0)))
	p.Await("upset", time.Minute, "to run", func(j *batchv1.Job) bool { return j.Status.Active+j.Status.Succeeded > 0 })
	wire.Publish(t, fmt.Sprintf("facts.%s.job.%s.%s.Unreadable", events.Token(harness.ClusterName), events.Token(p.Namespace), events.Token(string(j.UID))), []byte("no JSON"))
	type message struct {
		ID                   uint64
		Key, Reason, Requeue string
	}
	await := func(which func(message) bool) (found message) {
		t.Helper()
		harness.Until(t, time.Minute, "a message in the quarantine", func(context.Context) error {
			code, out := reconciler(t, s, "quarantine", "-o=json")
			var all []message
			if err := json.Unmarshal([]byte(out), &all); err != nil || code != 0 {
				return fmt.Errorf("exit code %d: %w: %s", code, err, out)
			}
			for _, m := range all {
				if strings.Contains(m.Key, string(j.UID)) && which(m) {
					found = m
					return nil
				}
			}
			return fmt.Errorf("none of %d", len(all))
		})
		return found
	}
	first := await(func(message) bool { return true })
	if !strings.Contains(first.Reason, "not a structured CloudEvent") || !strings.HasSuffix(first.Requeue, fmt.Sprint(first.ID)) {
		t.Errorf("%+v", first)
	}
	if code, out := reconciler(t, s, "requeue", fmt.Sprint(first.ID)); code != 0 || !strings.Contains(out, "put back") {
		t.Errorf("exit code %d: %s", code, out)
	}
	await(func(m message) bool { return m.ID > first.ID })
	end := p.AwaitEnd("upset", batchv1.JobComplete, time.Minute)
	if sum := ledger.Read(t); sum.Succeeded != completions || end.Status.Succeeded != completions || end.Status.Failed != 0 {
		t.Errorf("%d Pods have succeeded: %s", sum.Succeeded, harness.Brief(end.Status))
	}
}
