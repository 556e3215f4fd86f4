package e2e

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/internal/dev/size"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

const (
	// statusWritesMax bounds status writes, since one costs the API server as much as a Pod: these, and one a second on a slow machine.
	statusWritesMax = 80
	// timeout is for a run on two cores that are also busy with other things.
	timeout = 2 * time.Minute
)

// batch is a Job whose Pods write into a ledger, five in a hundred of them failing, and its observers.
type batch struct {
	*harness.Space
	ledger      *harness.Ledger
	completions int
	indexed     bool
	job         *batchv1.Job
	trail       *harness.Trail
	began       time.Time
	took        time.Duration // until it had ended
}

// startBatch applies the Job.
func startBatch(t *testing.T, s *harness.System, completions, parallelism int, indexed bool) *batch {
	t.Helper()
	b := &batch{Space: s.Space(t), ledger: harness.NewLedger(t), completions: completions, indexed: indexed}
	j := harness.Shell("batch", b.ledger.Script("0.2", harness.OneInTwenty), harness.Size(int32(completions), int32(parallelism), int32(completions)))
	if indexed {
		harness.Indexed(&j.Spec)
	}
	b.began = time.Now()
	b.job = b.Apply(j)
	b.trail = b.Follow(b.job)
	return b
}

// awaitDone waits until so many Pods have succeeded.
func (b *batch) awaitDone(n int) {
	b.Helper()
	b.Await(b.job.Name, timeout, fmt.Sprintf("to have %d succeeded Pods", n), func(j *batchv1.Job) bool { return int(j.Status.Succeeded) >= n })
}

// runs reports whether the Job has not ended yet.
func (b *batch) runs() bool {
	b.Helper()
	return int(b.Job(b.job.Name).Status.Succeeded) < b.completions
}

// finish waits for the end and checks everything that must be true then. It returns the number of status writes.
func (b *batch) finish(t *testing.T) (statusWrites int) {
	t.Helper()
	j := b.AwaitEnd(b.job.Name, batchv1.JobComplete, timeout)
	b.took = time.Since(b.began)
	sum := b.ledger.Read(t)
	b.checkStatus(t, j, sum)
	pods := b.Pods("")
	if held := harness.Held(pods); len(held) > 0 {
		t.Errorf("%d Pods keep the finalizer: %v", len(held), held[:min(len(held), 10)])
	}
	for _, p := range pods {
		if p.Labels[batchv1.ControllerUidLabel] != string(j.UID) {
			t.Errorf("Pod %s belongs to %s", p.Name, p.Labels[batchv1.ControllerUidLabel])
		}
		if _, ran := sum.Codes[p.UID]; !ran {
			t.Errorf("Pod %s has not written into the ledger, its phase is %s", p.Name, p.Status.Phase)
		}
	}
	for _, wrong := range b.trail.Wrong() {
		t.Error(wrong)
	}
	requests, err := b.Requests(b.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	statusWrites = harness.Count(requests, harness.StatusWrite)
	t.Logf("%d completions in %.1f s, %.0f Pods/s: %d succeeded, %d failed, %d Pods in all, %d status writes",
		b.completions, b.took.Seconds(), float64(len(sum.Codes))/b.took.Seconds(), sum.Succeeded, sum.Failed,
		len(pods), statusWrites)
	return statusWrites
}

// checkStatus compares the final status with the ledger.
func (b *batch) checkStatus(t *testing.T, j *batchv1.Job, sum harness.Tally) {
	t.Helper()
	s := j.Status
	if int(s.Succeeded) != sum.Succeeded || int(s.Failed) != sum.Failed {
		t.Errorf("the status has %d succeeded and %d failed, the ledger %d and %d: %s", s.Succeeded, s.Failed, sum.Succeeded, sum.Failed, b.difference(sum))
	}
	if int(s.Succeeded) != b.completions {
		t.Errorf("%d of %d completions", s.Succeeded, b.completions)
	}
	if sum.Failed == 0 {
		report := t.Error
		if b.completions == size.CrashCompletions/2 { // few enough that it happens once in a while
			report = t.Log
		}
		report("no Pod has failed: this run proves little")
	}
	if s.Active != 0 || ptr.Deref(s.Ready, -1) != 0 || ptr.Deref(s.Terminating, -1) != 0 {
		t.Errorf("a finished Job has Pods: %s", harness.Brief(s))
	}
	if u := ptr.Deref(s.UncountedTerminatedPods, batchv1.UncountedTerminatedPods{}); len(u.Succeeded)+len(u.Failed) > 0 {
		t.Errorf("a finished Job has uncounted Pods: %s", harness.Brief(s))
	}
	if want := fmt.Sprintf("0-%d", b.completions-1); b.indexed && (s.CompletedIndexes != want || sum.Indexes != b.completions) {
		t.Errorf("completed indexes are %s, want %s; the ledger has %d", s.CompletedIndexes, want, sum.Indexes)
	}
}

// difference names the Pods of the ledger that the API server does not have, and vice versa.
func (b *batch) difference(sum harness.Tally) string {
	there := map[types.UID]bool{}
	text := ""
	for _, p := range b.Pods(b.job.Name) {
		there[p.UID] = true
		if code, ok := sum.Codes[p.UID]; !ok || (code == 0) != (p.Status.Phase == "Succeeded") {
			text += fmt.Sprintf(" Pod %s is %s, the ledger has %d (%v);", p.Name, p.Status.Phase, code, ok)
		}
	}
	for uid, code := range sum.Codes {
		if !there[uid] {
			text += fmt.Sprintf(" Pod %s exited with %d and is gone;", uid, code)
		}
	}
	return text
}

func TestThousandCompletionsAreCountedExactly(t *testing.T) {
	eachMode(t, func(t *testing.T, indexed bool) {
		b := startBatch(t, shared(t), 1000, 100, indexed)
		n := b.finish(t)
		if most := statusWritesMax + int(b.took.Seconds()); n > most {
			t.Errorf("%d status writes, at most %d are allowed", n, most)
		}
	})
}
