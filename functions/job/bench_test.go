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

// BenchmarkDecide measures a turn without I/O for one fact about one of many Pods of a Job, including decoding and encoding of
// the state.
//
//	go test ./functions/job -run '^$' -bench Decide
func BenchmarkDecide(b *testing.B) {
	for _, pods := range []int{1, 100, 1000, 20_000} {
		b.Run(fmt.Sprintf("pods=%d", pods), func(b *testing.B) {
			f := fn.Register(New(DefaultLimits()))
			now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			n := int32(100_000)
			j := events.Job{Namespace: "default", Name: "big", UID: "5ef034e0-1890-11e6-8935-42010af0003e", Version: 1, Parallelism: int32(pods),
				Completions: &n, Indexed: true, BackoffLimit: 6, Created: now}
			d, err := f.Decide(nil, []events.Event{events.JobObserved{Job: j}}, now)
			if err != nil {
				b.Fatal(err)
			}
			list := events.JobListed{ID: d.Effects[0].(effect.TakeInventory).ID, Job: &j, JobsVersion: 1, Version: 1}
			for i := range pods {
				list.Pods = append(list.Pods, events.Pod{Name: pod.Name("big", j.UID, i, i), UID: types.UID(fmt.Sprintf("0b7e5d0a-5c1c-4d0e-8f6f-%012x", i)),
					Version: uint64(2 + i), Owner: "big", Serial: i, Index: i, Phase: events.Running, Held: true, Scheduled: true, Created: now})
			}
			if d, err = f.Decide(d.State, []events.Event{list}, now); err != nil {
				b.Fatal(err)
			}
			last := list.Pods[pods-1]
			for b.Loop() {
				last.Version++
				if _, err := f.Decide(d.State, []events.Event{events.PodObserved{Pod: last}}, now); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(d.State)), "state-bytes")
		})
	}
}
