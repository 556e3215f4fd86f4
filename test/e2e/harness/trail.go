package harness

import (
	"context"
	"fmt"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/ptr"
)

// Trail is every status that a Job has had, and what was wrong about them.
type Trail struct {
	mu     sync.Mutex
	last   batchv1.JobStatus
	states int
	most   int // the most UIDs listed at once
	wrong  []string
	stop   func()
	done   chan struct{}
}

// Follow watches the Job from its creation on and checks each status: counts do not decrease, a UID is listed or counted and
// never both, and an announced end is not revoked.
func (p *Space) Follow(j *batchv1.Job) *Trail {
	p.Helper()
	ctx, cancel := context.WithCancel(p.Context())
	open := func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		o.FieldSelector = "metadata.name=" + j.Name
		return p.Client.BatchV1().Jobs(p.Namespace).Watch(ctx, o)
	}
	w, err := watchtools.NewRetryWatcherWithContext(ctx, j.ResourceVersion, &cache.ListWatch{WatchFuncWithContext: open})
	if err != nil {
		cancel()
		p.Fatal(err)
	}
	t := &Trail{stop: cancel, done: make(chan struct{})}
	p.Cleanup(cancel)
	go func() {
		defer close(t.done)
		for e := range w.ResultChan() {
			if seen, ok := e.Object.(*batchv1.Job); ok && seen.UID == j.UID && e.Type == watch.Modified {
				t.see(seen.Status)
			}
		}
	}()
	return t
}

// Wrong stops watching and returns what was wrong.
func (t *Trail) Wrong() []string {
	t.stop()
	<-t.done
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.wrong
}

// MostListed returns the largest number of Pods that one status has listed as uncounted.
func (t *Trail) MostListed() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.most
}

func (t *Trail) see(now batchv1.JobStatus) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.states++
	before := t.last
	t.last = now
	u := ptr.Deref(now.UncountedTerminatedPods, batchv1.UncountedTerminatedPods{})
	t.most = max(t.most, len(u.Succeeded)+len(u.Failed))
	complain := func(format string, args ...any) {
		t.wrong = append(t.wrong, fmt.Sprintf(format, args...)+": "+Brief(before)+" -> "+Brief(now))
	}
	was, is := counted(before), counted(now)
	for i, what := range []string{"succeeded", "failed"} {
		if is[i] < was[i] {
			complain("%s fell", what)
		}
	}
	if now.Succeeded < before.Succeeded || now.Failed < before.Failed {
		complain("a counter fell")
	}
	for _, c := range before.Conditions {
		j := &batchv1.Job{Status: now}
		ends := c.Type == batchv1.JobSuccessCriteriaMet || c.Type == batchv1.JobFailureTarget || c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed
		if ends && !Is(j, c.Type) {
			complain("%s was taken back", c.Type)
		}
	}
}

// counted returns the succeeded and failed Pods of a status, including those that it lists and has not added yet.
func counted(s batchv1.JobStatus) [2]int {
	u := ptr.Deref(s.UncountedTerminatedPods, batchv1.UncountedTerminatedPods{})
	return [2]int{int(s.Succeeded) + len(u.Succeeded), int(s.Failed) + len(u.Failed)}
}
