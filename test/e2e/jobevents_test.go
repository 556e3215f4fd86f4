package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// A durable subscriber receives each start and each end of each Job once by source and id, though the reconciler is killed while
// they run and the bus is wiped when they have ended. Nothing that it receives is untrue.
func TestSubscriberReceivesEachStartAndEnd(t *testing.T) {
	t.Parallel()
	s := own(t, harness.Config{Reconcilers: 2, Flags: []string{"--event-labels=team"}})
	p := s.Space(t)
	truth, subscriber := watchTruth(p), p.Subscribe()

	p.Apply(labelled(harness.Shell("good", "true", harness.Size(3, 2, 0), harness.Indexed)))
	p.Apply(harness.Shell("bad", "exit 3", harness.Size(1, 1, 0)))
	p.Apply(harness.Shell("brief", "true", harness.Size(1, 1, 0), func(s *batchv1.JobSpec) { s.TTLSecondsAfterFinished = ptr.To[int32](0) }))
	p.Apply(harness.Shell("paused", "sleep 3", harness.Size(4, 1, 0), func(s *batchv1.JobSpec) { s.Suspend = ptr.To(true) }))
	p.Await("paused", timeout, "to be suspended", func(j *batchv1.Job) bool { return harness.Is(j, batchv1.JobSuspended) })
	p.Apply(harness.Shell("deleted", "sleep 600", harness.Size(1, 1, 0)))
	running := func(j *batchv1.Job) bool { return j.Status.StartTime != nil && j.Status.Active > 0 }
	for _, suspend := range []bool{false, true, false} {
		if !suspend {
			harness.Pass(t, time.Second) // a resume within the second of the previous start would be the same start: equal startTime
		}
		pause(t, p, "paused", suspend)
		p.Await("paused", timeout, fmt.Sprintf("suspended: %v", suspend), func(j *batchv1.Job) bool {
			return harness.Is(j, batchv1.JobSuspended) == suspend && (suspend || running(j))
		})
	}
	p.Await("deleted", timeout, "to run", running)
	p.Delete("deleted")

	const many = 20
	for i := range many {
		p.Apply(harness.Shell(fmt.Sprintf("many-%d", i), "sleep 0.5", harness.Size(2, 2, 0)))
		if i%7 == 3 {
			r := s.Reconcilers[i%2]
			if err := r.Kill(); err != nil {
				t.Fatal(err)
			}
			startAll(t, s)
		}
	}
	for i := range many {
		p.AwaitEnd(fmt.Sprintf("many-%d", i), batchv1.JobComplete, timeout)
	}
	p.AwaitEnd("good", batchv1.JobComplete, timeout)
	p.AwaitEnd("bad", batchv1.JobFailed, timeout)
	p.AwaitEnd("paused", batchv1.JobComplete, timeout)
	hearsAll(t, truth, subscriber)
	received := subscriber.Received()
	stored := len(received)
	if distinct := len(byKey(received)); distinct != stored {
		t.Errorf("%d messages of %d events: the stream has stored some twice", stored, distinct)
	}
	checkWords(t, received)

	replaceBus(t, s, 0)
	p.Apply(harness.Shell("afterwards", "true", harness.Size(1, 1, 0)))
	p.AwaitEnd("afterwards", batchv1.JobComplete, timeout)
	again := 0
	harness.Until(t, timeout, "what happened within the hour to be announced again", func(context.Context) error {
		again = 0
		for _, r := range subscriber.Received()[stored:] {
			if _, end := r.Event.(events.JobFinished); end {
				again++
			}
		}
		if again < many+4 { // many, good, bad, paused, afterwards; the record of brief is lost
			return fmt.Errorf("%d ends are", again)
		}
		return nil
	})
	hearsAll(t, truth, subscriber)
	t.Logf("%d messages, then %d more, of %d events; the cluster had %d starts and ends", stored, len(subscriber.Received())-stored, len(byKey(subscriber.Received())), len(truth.all()))
}

func labelled(j *batchv1.Job) *batchv1.Job {
	j.Labels = map[string]string{"team": "finance", "other": "untold"}
	return j
}

func pause(t *testing.T, p *harness.Space, job string, suspend bool) {
	t.Helper()
	patch := fmt.Sprintf(`{"spec":{"suspend":%v}}`, suspend)
	if _, err := p.Client.BatchV1().Jobs(p.Namespace).Patch(t.Context(), job, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// hearsAll waits until the subscriber has received what the cluster had, nothing else, and each end after its start.
func hearsAll(t *testing.T, truth *jobTruth, subscriber *harness.Subscriber) {
	t.Helper()
	harness.Until(t, timeout, "the subscriber to have received every start and end", func(context.Context) error {
		received := byKey(subscriber.Received())
		var missing []string
		for id, what := range truth.all() {
			if _, ok := received[id]; !ok {
				missing = append(missing, what)
			}
		}
		if len(missing) > 0 {
			slices.Sort(missing)
			return fmt.Errorf("of %d, these are missing: %q", len(truth.all()), missing)
		}
		return nil
	})
	harness.Until(t, timeout, "all that was received to have been true", func(context.Context) error { // the watch may be behind
		known := truth.all()
		for id, e := range byKey(subscriber.Received()) {
			if _, ok := known[id]; !ok {
				return fmt.Errorf("%s: %v never was", id, e)
			}
		}
		return nil
	})
	started := map[string]bool{}
	for _, r := range subscriber.Received() {
		switch e := r.Event.(type) {
		case events.JobStarted:
			started[string(e.Job.UID)+e.Start.String()] = true
		case events.JobFinished:
			if !started[string(e.Job.UID)+e.Start.String()] {
				t.Errorf("%s: its end comes before its start", e.Job.Name)
			}
		}
	}
}

func byKey(received []harness.Received) map[string]events.Public {
	out := map[string]events.Public{}
	for _, r := range received {
		out[r.Key[1]] = r.Event
	}
	return out
}

// checkWords compares the events with what the Jobs were made to do.
func checkWords(t *testing.T, received []harness.Received) {
	t.Helper()
	starts, ends := map[string]int{}, map[string]string{}
	for _, r := range received {
		switch e := r.Event.(type) {
		case events.JobStarted:
			starts[e.Job.Name]++
			if e.Job.Name == "good" && (e.Labels["team"] != "finance" || len(e.Labels) != 1 || e.Parallelism != 2 || e.CompletionMode != batchv1.IndexedCompletion) {
				t.Errorf("good starts as %+v", e)
			}
		case events.JobFinished:
			ends[e.Job.Name] = fmt.Sprintf("%s %s %d/%d %s", e.Result, e.Reason, e.Succeeded, e.Failed, e.CompletedIndexes)
			if !strings.Contains(r.Subject, ".job.finish."+strings.ToLower(string(e.Result))+".") || e.DurationSeconds != int64(e.End.Sub(e.Start).Seconds()) {
				t.Errorf("%s: %+v", r.Subject, e)
			}
		}
	}
	if starts["paused"] != 2 || starts["good"] != 1 || starts["brief"] != 1 || starts["deleted"] != 1 {
		t.Errorf("starts: %v", starts)
	}
	for job, want := range map[string]string{"good": "Succeeded CompletionsReached 3/0 0-2", "bad": "Failed BackoffLimitExceeded 0/1 ",
		"brief": "Succeeded CompletionsReached 1/0 ", "paused": "Succeeded CompletionsReached 4/0 ", "deleted": ""} {
		if ends[job] != want {
			t.Errorf("%s ends as %q, want %q", job, ends[job], want)
		}
	}
}

// jobTruth is every start and end that the API server had: of each Job, and by the id that docs/events.md defines.
type jobTruth struct {
	mu   sync.Mutex
	told map[string]string
}

// watchTruth watches the Jobs of the namespace from now on.
func watchTruth(p *harness.Space) *jobTruth {
	p.Helper()
	jobs := p.Client.BatchV1().Jobs(p.Namespace)
	list, err := jobs.List(p.Context(), metav1.ListOptions{})
	if err != nil {
		p.Fatal(err)
	}
	ctx, cancel := context.WithCancel(p.Context())
	w, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{WatchFuncWithContext: jobs.Watch})
	if err != nil {
		cancel()
		p.Fatal(err)
	}
	t := &jobTruth{told: map[string]string{}}
	done := make(chan struct{})
	p.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for e := range w.ResultChan() {
			if j, ok := e.Object.(*batchv1.Job); ok && e.Type != watch.Error {
				t.see(j)
			}
		}
	}()
	return t
}

func (t *jobTruth) see(j *batchv1.Job) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at := j.Status.StartTime; at != nil {
		t.told[fmt.Sprintf("%s/start/%s", j.UID, at.UTC().Format(time.RFC3339))] = j.Name + " starts"
	}
	for _, c := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed} {
		if harness.Is(j, c) {
			at := harness.Condition(j, c).LastTransitionTime
			t.told[fmt.Sprintf("%s/finish/%s", j.UID, at.UTC().Format(time.RFC3339))] = j.Name + " ends"
		}
	}
}

func (t *jobTruth) all() map[string]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.told)
}
