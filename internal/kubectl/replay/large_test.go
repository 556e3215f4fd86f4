package replay_test

import (
	"flag"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/kubectl/replay"
)

var veryLarge = flag.Bool("large", false, "also fold 100,000 facts")

// large is a Job with many Pods of which a trigger has seen six changes each.
func large(t testing.TB, pods int, foreign bool) replay.Record {
	t.Helper()
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := replay.Record{APIVersion: replay.Version, Cluster: "default", Function: "job", Namespace: "shop", Name: "large", UID: "uid"}
	version := uint64(1)
	add := func(at time.Time, e events.Event) {
		payload, err := events.Encode(events.Fact{Cluster: "default", Key: r.Key(), Event: e})
		if err != nil {
			t.Fatal(err)
		}
		r.Facts = append(r.Facts, replay.NewFact(uint64(len(r.Facts)+1), at, payload))
		version++
	}
	completions := int32(pods)
	j := events.Job{Namespace: "shop", Name: "large", UID: "uid", Version: version, Generation: 1, Created: began, Parallelism: completions, Completions: &completions, BackoffLimit: 6,
		Foreign: foreign, Status: batchv1.JobStatus{}}
	add(began, events.JobObserved{Job: j})
	j.Status.StartTime, j.Version = &metav1.Time{Time: began}, version
	add(began.Add(time.Second), events.JobObserved{Job: j})
	for change := range 6 {
		for i := range pods {
			at := began.Add(time.Duration(change)*time.Minute + time.Duration(i)*time.Millisecond)
			p := events.Pod{Name: fmt.Sprintf("large-%d", i), UID: types.UID(fmt.Sprintf("pod-%d", i)), Version: version, Owner: "large", Serial: i, Index: events.NoIndex,
				Phase: []events.PodPhase{events.Pending, events.Pending, events.Running, events.Running, events.Succeeded, events.Succeeded}[change], Held: change < 5, Scheduled: change > 0,
				Created: began, Restarts: int32(change / 3)}
			if change > 3 {
				p.Finished = at
			}
			add(at, events.PodObserved{Pod: p})
		}
	}
	r.Collected = began.Add(time.Hour)
	return r
}

// TestLargeJobs: the more Pods a Job has, the more of its facts are folded at a time, so that the work stays within bounds; all are folded.
// With -large, and a Job with 100,000 facts, -v prints how long that takes.
func TestLargeJobs(t *testing.T) {
	sizes := map[int]int{50: 1, 1000: 7}
	if *veryLarge {
		sizes[16667] = 501
	}
	for pods, perTurn := range sizes {
		r := large(t, pods, pods > 50 && !*veryLarge) // the state of a Job that is not jobstream's is small
		began := time.Now()
		folded, err := replay.Fold(r)
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for _, turn := range folded.Turns {
			seen += len(turn.Facts)
			if turn.Failed != "" {
				t.Error(turn.Failed)
			}
		}
		if folded.PerTurn != perTurn || seen != len(r.Facts) {
			t.Errorf("%d Pods: %d facts at a time, want %d; %d of %d facts", pods, folded.PerTurn, perTurn, seen, len(r.Facts))
		}
		t.Logf("%d facts about %d Pods: %d at a time, in %v", len(r.Facts), pods, folded.PerTurn, time.Since(began).Round(time.Millisecond))
	}
}
