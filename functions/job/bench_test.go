package job

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/functions/pod"
)

// BenchmarkDecide measures a turn without I/O, including decoding and encoding of the state, for one fact and for as many as a
// partition delivers at once, about a Job with so many unsettled Pods. 20,000 is the most that a state has (unsettledMax).
//
//	go test ./functions/job -run '^$' -bench Decide -benchmem -count 6 | benchstat -col /facts -
func BenchmarkDecide(b *testing.B) {
	for _, pods := range []int{10, 100, 1000, 10_000, unsettledMax} {
		for _, facts := range []int{1, 256} {
			b.Run(fmt.Sprintf("pods=%d/facts=%d", pods, facts), func(b *testing.B) { decide(b, 100_000, pods, facts) })
		}
	}
}

// BenchmarkDecideLate measures the same with 100 unsettled Pods, which are the last ones of a Job: all others have succeeded.
func BenchmarkDecideLate(b *testing.B) {
	for _, of := range []int{100, 1000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("completions=%d", of), func(b *testing.B) { decide(b, of, 100, 1) })
	}
}

// decide measures turns about the last so many of the Pods of an Indexed Job.
func decide(b *testing.B, completions, pods, facts int) {
	f := fn.Register(New(DefaultLimits()))
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	state, running := largeJob(b, f, completions, pods, now)
	batch := make([]events.Event, facts)
	turn, version := 0, uint64(completions)
	b.ReportAllocs()
	for b.Loop() {
		for i := range batch {
			p := running[(turn*facts+i)%pods]
			version++
			p.Version = version
			batch[i] = events.PodObserved{Pod: p}
		}
		if _, err := f.Decide(state, batch, now); err != nil {
			b.Fatal(err)
		}
		turn++
	}
	b.ReportMetric(float64(turn)/b.Elapsed().Seconds(), "decisions/s")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(turn*facts), "ns/fact")
	b.ReportMetric(float64(len(state)), "state-bytes")
}

// largeJob returns the state of a Job whose last so many Pods run and whose others have succeeded, and those Pods.
func largeJob(b *testing.B, f fn.Registered, completions, pods int, now time.Time) (state []byte, running []events.Pod) {
	n, settled := int32(completions), completions-pods
	j := events.Job{Namespace: "default", Name: "big", UID: "5ef034e0-1890-11e6-8935-42010af0003e", Version: 1, Parallelism: int32(pods),
		Completions: &n, Indexed: true, BackoffLimit: 6, Created: now}
	if settled > 0 {
		j.Status.Succeeded, j.Status.CompletedIndexes = int32(settled), fmt.Sprintf("0-%d", settled-1)
	}
	d, err := f.Decide(nil, []events.Event{events.JobObserved{Job: j}}, now)
	if err != nil {
		b.Fatal(err)
	}
	list := events.JobListed{ID: d.Effects[0].(effect.TakeInventory).ID, Job: &j, JobsVersion: 1, Version: 1}
	for i := range pods {
		index := settled + i
		list.Pods = append(list.Pods, events.Pod{Name: pod.Name("big", j.UID, index, index), UID: types.UID(fmt.Sprintf("0b7e5d0a-5c1c-4d0e-8f6f-%012x", i)),
			Version: uint64(2 + i), Owner: "big", Serial: index, Index: index, Phase: events.Running, Held: true, Scheduled: true, Created: now})
	}
	if d, err = f.Decide(d.State, []events.Event{list}, now); err != nil {
		b.Fatal(err)
	}
	return d.State, list.Pods
}
