package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

// after names the Job that this one waits for.
func after(name, of string) *batchv1.Job {
	j := quick(name)
	j.Labels, j.Spec.Suspend = map[string]string{"example.com/after": of}, ptr.To(true)
	return j
}

// A chain of Jobs runs to its end though the program that links them is killed all the time. What follows a failed Job does not
// start, and a repetition of all events starts nothing.
func chain(t *testing.T, s *harness.System) {
	text, err := os.ReadFile(filepath.Join(harness.Root, "examples", "chain", "main.go"))
	if lines := strings.Count(string(text), "\n"); err != nil || lines >= 60 {
		t.Errorf("the program has %d lines, %v", lines, err)
	}
	p := s.Space(t)
	made(p, "chain", "job.>", func(c *jetstream.ConsumerConfig) { c.AckWait = 2 * time.Second }) // starts, too: they must not count
	e := example(p, "chain", built(t, ".", "./examples/chain"), nil, []string{"KUBECONFIG=" + s.ControlPlane.Kubeconfig()})
	begin(p, e)
	const links = 12
	for i := 1; i < links; i++ {
		p.Apply(after(fmt.Sprintf("link-%d", i), fmt.Sprintf("link-%d", i-1)))
	}
	p.Apply(after("twin", "link-0"))
	p.Apply(after("never", "bad"))
	p.Apply(after("too-early", "slow"))
	p.Apply(harness.Shell("slow", "sleep 600", harness.Size(1, 1, 0)))
	p.Apply(harness.Shell("bad", "exit 3", harness.Size(1, 1, 0)))
	p.Apply(quick("link-0"))
	for i := range links {
		if !e.Running() { // it ends where NATS does not answer in time, and is started again by its Deployment
			begin(p, e)
		}
		p.AwaitEnd(fmt.Sprintf("link-%d", i), batchv1.JobComplete, timeout)
		kill(p, e) // while it starts the next
		begin(p, e)
	}
	p.AwaitEnd("twin", batchv1.JobComplete, timeout)
	p.AwaitEnd("bad", batchv1.JobFailed, timeout)
	p.Await("slow", timeout, "to run", func(j *batchv1.Job) bool { return j.Status.StartTime != nil })

	paused := quick("paused") // was started by the program before, and then suspended by a user
	paused.Spec.Suspend = ptr.To(true)
	p.Apply(paused)
	kill(p, e)
	starts := func() int {
		log, err := os.ReadFile(e.LogFile)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(log), "starting twin")
	}
	before := starts()             // more than one if a kill came between the start and its line
	c := made(p, "chain", "job.>") // all events are delivered again
	begin(p, e)
	settled(p, c)
	for _, name := range []string{"never", "too-early", "paused"} {
		if j := p.Job(name); !ptr.Deref(j.Spec.Suspend, false) || j.Status.StartTime != nil {
			t.Errorf("%s has been started", name)
		}
	}
	if now := starts(); before == 0 || now != before {
		t.Errorf("twin was started %d times, then %d", before, now)
	}
}
