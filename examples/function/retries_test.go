package function

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"pgregory.net/rapid"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/functions/fn/fntest"
	_ "github.com/jobstream/jobstream/internal/dev/replay"
)

// seen is an observation of the Job.
func seen(version uint64, failed int32, label string) events.JobObserved {
	j := events.Job{Name: "pi", Version: version, Status: batchv1.JobStatus{Failed: failed}}
	if label != "" {
		j.Labels = map[string]string{Label: label}
	}
	return events.JobObserved{Job: j}
}

func TestDecisions(t *testing.T) {
	snapshot := seen(4, 2, "").Job
	tests := []struct {
		name  string
		facts []events.Event
		want  string
	}{
		{"nothing is known", nil, "[]"},
		{"no Pod has failed", []events.Event{seen(1, 0, "")}, "[]"},
		{"two Pods have failed", []events.Event{seen(1, 0, ""), seen(2, 2, "")}, `[SetLabel pi@2 "2"]`},
		{"a snapshot shows two failures", []events.Event{events.JobListed{Job: &snapshot}}, `[SetLabel pi@4 "2"]`},
		{"the label is there", []events.Event{seen(2, 2, ""), seen(3, 2, "2")}, "[]"},
		{"an older observation comes late", []events.Event{seen(3, 2, "2"), seen(2, 1, "")}, "[]"},
		{"a user has put another number there", []events.Event{seen(4, 2, "7")}, `[SetLabel pi@4 "2"]`},
		{"a user has set it on a Job without failures", []events.Event{seen(4, 0, "7")}, `[SetLabel pi@4 ""]`},
		{"the Job is gone, and an observation comes late", []events.Event{events.JobGone{Name: "pi"}, seen(2, 2, "")}, "[]"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, effects := New().Decide(State{}, test.facts, time.Time{}); fmt.Sprint(effects) != test.want {
				t.Errorf("got %v, want %s", effects, test.want)
			}
		})
	}
}

// TestLaws: a Job's life, told in random pieces with repetitions, keeps the laws of every function.
func TestLaws(t *testing.T) {
	for _, law := range fntest.Laws {
		t.Run(law.Name, func(t *testing.T) { rapid.Check(t, func(t *rapid.T) { live(t, law) }) })
	}
}

func live(t *rapid.T, law fntest.Law) {
	f := fntest.Watch(fn.Register(New()), law, func(err error) { t.Fatal(err) })
	life, failed := []events.Event{}, int32(0) // one observation for each version, as an API server has it
	for version := range uint64(8) {
		failed += rapid.Int32Range(0, 1).Draw(t, "more failures")
		life = append(life, seen(version+1, failed, rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "label")))
	}
	life = append(life, events.JobGone{Name: "pi"})
	var state []byte
	for range 6 {
		batch := rapid.SliceOfN(rapid.SampledFrom(life), 1, 4).Draw(t, "facts")
		d, err := f.Decide(state, batch, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		state = d.State
	}
}
