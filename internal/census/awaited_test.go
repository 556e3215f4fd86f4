package census

import (
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/events"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// run is the Job of a nominal time, noon.
func run(change ...func(*events.Job)) *events.Job {
	j := &events.Job{Namespace: "shop", UID: "job", Owner: &events.RunOwner{Nominal: noon}}
	for _, f := range change {
		f(j)
	}
	return j
}

func status(st batchv1.JobStatus) func(*events.Job) { return func(j *events.Job) { j.Status = st } }

// runs are Pods that have started, or have not, although they are not Pending.
var (
	running  = in("pod", events.Running)
	crashed  = events.Pod{UID: "pod", Phase: events.Failed, End: &events.PodEnd{Container: &events.ContainerEnd{Name: "main", ExitCode: 1}}}
	rejected = events.Pod{UID: "pod", Phase: events.Failed, End: &events.PodEnd{Reason: "OutOfcpu"}}
)

func TestTheFirstPodOfARunIsSeenToStartOnce(t *testing.T) {
	ready := status(batchv1.JobStatus{Ready: ptr.To[int32](1)})
	ended := status(batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}})
	for _, tt := range []struct {
		name  string
		steps func(*Census)
		want  int
	}{
		{"a Pod runs", func(c *Census) { c.SawJob(*run(), true); saw(c, waits("pod", ""), running) }, 1},
		{"it is seen again, and ends", func(c *Census) { c.SawJob(*run(), true); saw(c, running, running, in("pod", events.Succeeded)) }, 1},
		{"two Pods run", func(c *Census) { c.SawJob(*run(), true); saw(c, running, in("other", events.Running)) }, 1},
		{"it has ended before it was seen to run", func(c *Census) { c.SawJob(*run(), true); saw(c, in("pod", events.Succeeded)) }, 1},
		{"it has crashed before it was seen to run", func(c *Census) { c.SawJob(*run(), true); saw(c, crashed) }, 1},
		{"the kubelet rejects it", func(c *Census) { c.SawJob(*run(), true); saw(c, rejected) }, 0},
		{"the kubelet rejects it, and the next runs", func(c *Census) { c.SawJob(*run(), true); saw(c, rejected, in("other", events.Running)) }, 1},
		{"the status shows it first", func(c *Census) { c.SawJob(*run(), true); c.SawJob(*run(ready), false) }, 1},
		{"the status shows it first, then the Pod", func(c *Census) { c.SawJob(*run(), true); c.SawJob(*run(ready), false); saw(c, running) }, 1},
		{"the status shows one that has ended", func(c *Census) {
			c.SawJob(*run(), true)
			c.SawJob(*run(status(batchv1.JobStatus{Succeeded: 1})), false)
		}, 1},
		{"the status shows one that has failed, perhaps before it started", func(c *Census) {
			c.SawJob(*run(), true)
			c.SawJob(*run(status(batchv1.JobStatus{Failed: 1, UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{Failed: []types.UID{"pod"}}})), false)
		}, 0},
		{"the status shows a success first", func(c *Census) {
			c.SawJob(*run(), true)
			c.SawJob(*run(status(batchv1.JobStatus{UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{Succeeded: []types.UID{"pod"}}})), false)
		}, 1},
		{"a later status does not show it yet", func(c *Census) { c.SawJob(*run(), true); saw(c, running); c.SawJob(*run(), false); saw(c, running) }, 1},
		{"a Job that no schedule has created", func(c *Census) {
			c.SawJob(*run(func(j *events.Job) { j.Owner = nil }), true)
			saw(c, running)
		}, 0},
		{"a Job that a user has started", func(c *Census) {
			c.SawJob(*run(func(j *events.Job) { j.Owner.Manual = true }), true)
			saw(c, running)
		}, 0},
		{"a Job of another controller", func(c *Census) {
			c.SawJob(*run(func(j *events.Job) { j.Foreign = true }), true)
			saw(c, running)
		}, 0},
		{"a Job that is not new", func(c *Census) { c.SawJob(*run(), false); saw(c, running) }, 0},
		{"a Job that is gone", func(c *Census) { c.SawJob(*run(), true); c.MissedJob("job"); saw(c, running) }, 0},
		{"a Job that ends without a Pod", func(c *Census) { c.SawJob(*run(), true); c.SawJob(*run(ended), false); saw(c, running) }, 0},
		{"listed, and then its Pod runs", func(c *Census) { list(c, []*events.Job{run()}, waits("pod", "")); saw(c, running) }, 1},
		{"listed with a Pod that runs", func(c *Census) { list(c, []*events.Job{run()}, running); saw(c, running) }, 0},
		{"listed with a failure", func(c *Census) {
			list(c, []*events.Job{run(status(batchv1.JobStatus{Failed: 1}))})
			saw(c, running)
		}, 0},
		{"listed with a failure that is not counted yet", func(c *Census) {
			list(c, []*events.Job{run(status(batchv1.JobStatus{UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{Failed: []types.UID{"pod"}}}))})
			saw(c, running)
		}, 0},
		{"listed with an empty list of Pods to count", func(c *Census) {
			list(c, []*events.Job{run(status(batchv1.JobStatus{UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{}}))})
			saw(c, running)
		}, 1},
		{"counted, and listed again", func(c *Census) {
			c.SawJob(*run(), true)
			saw(c, running)
			list(c, []*events.Job{run()}, running)
			saw(c, in("pod", events.Succeeded))
		}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			c := New(Config{Now: func() time.Time { return noon.Add(1500 * time.Millisecond) }, Started: func(namespace string, nominal, at time.Time) {
				got = append(got, fmt.Sprint(namespace, " ", at.Sub(nominal)))
			}})
			tt.steps(c)
			if want := slices.Repeat([]string{"shop 1.5s"}, tt.want); !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// A user who creates very many Jobs that never start takes no more memory than MaxAwaited of them; there is room again when they go.
func TestAwaitedRunsAreBounded(t *testing.T) {
	c, started := New(Config{}), 0
	c.config.Started = func(string, time.Time, time.Time) { started++ }
	for i := range MaxAwaited + 100 {
		c.SawJob(*run(func(j *events.Job) { j.UID = types.UID(fmt.Sprint("many-", i)) }), true)
	}
	if len(c.awaited) != MaxAwaited {
		t.Errorf("%d are awaited", len(c.awaited))
	}
	c.SawJob(*run(), true)
	saw(c, running)
	c.MissedJob("many-0")
	c.SawJob(*run(), true)
	saw(c, running)
	if started != 1 {
		t.Errorf("%d were measured, want the one for which there was room", started)
	}
}
