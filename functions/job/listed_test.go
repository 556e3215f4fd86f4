package job_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/job"
	"github.com/jobstream/jobstream/functions/pod"
)

// known returns a state that has just taken an inventory of a Job with these failed Pods kept.
func known(t *testing.T, f fnOfJobs, j events.Job, now time.Time, pods ...events.Pod) job.State {
	t.Helper()
	s, effects := f.Decide(job.State{}, []events.Event{events.TimerFired{}}, now)
	ask := effects[0].(effect.TakeInventory)
	s, _ = f.Decide(s, []events.Event{events.JobListed{ID: ask.ID, Job: &j, JobsVersion: 2, Version: 10, Pods: pods}}, now)
	return s
}

type fnOfJobs interface {
	Decide(s job.State, batch []events.Event, now time.Time) (job.State, []effect.Effect)
}

// TestALimitTakesHoldOnALargeSnapshot: a user limits the failed Pods of a Job that has 20,000 of them. Only a list shows these,
// and its snapshot is too large for one message. Its parts come in any order, twice, and mixed with those of another list.
func TestALimitTakesHoldOnALargeSnapshot(t *testing.T) {
	const all, stay = 20_000, 100
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	j := events.Job{Name: "pi", UID: "job", Version: 1, Parallelism: 1, Completions: new(int32(1)), BackoffLimit: 1 << 30,
		Status: batchv1.JobStatus{StartTime: &metav1.Time{Time: now}, Failed: all}}
	var pods []events.Pod
	for i := range all {
		pods = append(pods, events.Pod{Name: pod.Name("pi", "job", i, events.NoIndex), UID: types.UID(fmt.Sprintf("uid-%05d", (i*7919)%all)),
			Version: uint64(10 + i), Serial: i, Index: events.NoIndex, Phase: events.Failed, Finished: now.Add(time.Duration(i) * time.Second)})
	}
	f := job.New(job.DefaultLimits())
	s := known(t, f, j, now)
	j.Version, j.Options.FailedPodsLimit = 2, new(stay)
	list := events.JobListed{ID: "relist-1", Job: &j, JobsVersion: 3, Version: 10 + all, Pods: pods}
	later := list
	later.ID, later.Version, later.Pods = "relist-2", list.Version+1, pods[1:] // the oldest has gone meanwhile
	received := slices.Concat(list.Split(events.SnapshotPart), later.Split(events.Share{Pods: 1700}), list.Split(events.SnapshotPart))
	if _, split := received[0].(events.JobPartListed); !split {
		t.Fatal("the snapshot fits into one message")
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(received), func(i, k int) { received[i], received[k] = received[k], received[i] })
	s, effects := f.Decide(s, received, now)
	if len(s.Kept) != all-1 {
		t.Errorf("%d failed Pods are known", len(s.Kept))
	}
	if len(s.ListVersions) != 1 || s.ListVersions[0].Version != later.Version {
		t.Errorf("both lists are complete, the list version is %v", s.ListVersions)
	}
	deletes := 0
	for _, e := range effects {
		if d, ok := e.(effect.DeletePod); ok {
			if deletes++; d.Name != pods[deletes].Name {
				t.Fatalf("deletes %s, %s is older", d.Name, pods[deletes].Name)
			}
		}
	}
	if deletes != job.DefaultLimits().MaxPodChanges {
		t.Errorf("%d are deleted", deletes)
	}
}

// TestAPartProvesNothingBeyondItsRange: neither that other Pods are gone, nor that observations of them are out of date.
func TestAPartProvesNothingBeyondItsRange(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	j := events.Job{Name: "pi", UID: "job", Version: 1, Parallelism: 4, Completions: new(int32(4)), BackoffLimit: 6,
		Status: batchv1.JobStatus{StartTime: &metav1.Time{Time: now}}, NextSerial: 4}
	pod := func(serial int, uid types.UID, version uint64) events.Pod {
		return events.Pod{Name: pod.Name("pi", "job", serial, events.NoIndex), UID: uid, Version: version, Serial: serial, Index: events.NoIndex, Phase: events.Running, Held: true}
	}
	f := job.New(job.DefaultLimits())
	part := func(from, to types.UID, version uint64, pods ...events.Pod) events.Event {
		return events.JobPartListed{JobListed: events.JobListed{ID: "relist", Job: &j, JobsVersion: 3, Version: version, Pods: pods}, From: from, To: to}
	}
	begin := func() job.State { return known(t, f, j, now, pod(0, "a", 5), pod(1, "c", 6), pod(2, "e", 7)) }
	for name, c := range map[string]struct {
		received []events.Event
		gone     []types.UID
		sees     bool // the Pod "d", of version 15
	}{
		"one in the range, and not on the list, has gone": {received: []events.Event{part("b", "d", 20)}, gone: []types.UID{"c"}, sees: true},
		"the first has no beginning":                      {received: []events.Event{part("", "c", 20)}, gone: []types.UID{"a"}, sees: true},
		"the last has no end":                             {received: []events.Event{part("c", "", 20, pod(1, "c", 6))}, gone: []types.UID{"e"}},
		"an older one shows nothing of what is newer":     {received: []events.Event{part("", "d", 4)}, sees: true},
		"two of three":                                    {received: []events.Event{part("e", "", 20), part("", "b", 20, pod(0, "a", 5))}, gone: []types.UID{"e"}, sees: true},
		"all of them":                                     {received: []events.Event{part("c", "", 20), part("", "c", 20)}, gone: []types.UID{"a", "c", "e"}},
		"repeated, and of two lists": {received: []events.Event{part("c", "", 20, pod(2, "e", 7)), part("", "b", 12), part("c", "", 20, pod(2, "e", 7))},
			gone: []types.UID{"a", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin()
			for _, e := range c.received {
				s = f.Observe(s, e)
			}
			var gone []types.UID
			for _, r := range s.Pods {
				if r.Gone {
					gone = append(gone, r.Pod.UID)
				}
			}
			if slices.Sort(gone); !slices.Equal(gone, c.gone) {
				t.Errorf("gone are %v, want %v", gone, c.gone)
			}
			s = f.Observe(s, events.PodObserved{Pod: pod(3, "d", 15)})
			if _, sees := s.Pods[3]; sees != c.sees {
				t.Errorf("a late observation of d is accepted: %v, want %v", sees, c.sees)
			}
		})
	}
}
