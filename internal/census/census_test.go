package census

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

// waits is a Pod that is Pending for the reason.
func waits(uid types.UID, reason string) events.Pod {
	return events.Pod{UID: uid, Phase: events.Pending, Waiting: reason}
}

func in(uid types.UID, phase events.PodPhase) events.Pod { return events.Pod{UID: uid, Phase: phase} }

// list is a complete list of these.
func list(c *Census, jobs []*events.Job, pods ...events.Pod) {
	c.Listed(slices.Values(jobs), func(yield func(types.UID, events.Pod) bool) {
		for _, p := range pods {
			if !yield("job", p) {
				return
			}
		}
	})
}

// saw is one observation of each Pod by a watch.
func saw(c *Census, pods ...events.Pod) {
	for _, p := range pods {
		c.SawPod("shop", "job", p)
	}
}

func TestPendingPodsByReason(t *testing.T) {
	ending := waits("a", "Unschedulable")
	ending.Deleting = true
	for _, tt := range []struct {
		name  string
		steps func(*Census)
		want  map[string]int
	}{
		{"none", func(*Census) {}, nil},
		{"one that the scheduler has not looked at", func(c *Census) { saw(c, waits("a", "")) }, map[string]int{"none": 1}},
		{"several", func(c *Census) {
			saw(c, waits("a", "Unschedulable"), waits("b", "ErrImagePull"), waits("c", "ErrImagePull"))
		},
			map[string]int{"Unschedulable": 1, "ErrImagePull": 2}},
		{"a reason that Kubernetes does not have", func(c *Census) { saw(c, waits("a", "MyReason"), waits("b", "other"), waits("c", "none")) },
			map[string]int{"other": 2, "none": 1}},
		{"the same observation twice", func(c *Census) { saw(c, waits("a", "ErrImagePull"), waits("a", "ErrImagePull")) }, map[string]int{"ErrImagePull": 1}},
		{"another reason", func(c *Census) { saw(c, waits("a", "ErrImagePull"), waits("a", "ImagePullBackOff")) }, map[string]int{"ImagePullBackOff": 1}},
		{"one that starts", func(c *Census) { saw(c, waits("a", ""), in("a", events.Running)) }, nil},
		{"one that fails", func(c *Census) { saw(c, waits("a", ""), in("a", events.Failed)) }, nil},
		{"one that is being deleted", func(c *Census) { saw(c, waits("a", "Unschedulable"), ending) }, nil},
		{"one that is gone", func(c *Census) { saw(c, waits("a", "")); c.MissedPod("a") }, nil},
		{"one that is gone was never there", func(c *Census) { c.MissedPod("a") }, nil},
		{"a list replaces what was there", func(c *Census) {
			saw(c, waits("a", ""), waits("b", ""))
			list(c, nil, waits("b", "Unschedulable"), waits("c", ""), in("d", events.Running))
		}, map[string]int{"Unschedulable": 1, "none": 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := New(Config{})
			tt.steps(c)
			got := map[string]int{}
			for i, n := range c.Pending() {
				if n != 0 {
					got[Reasons[i]] = n
				}
			}
			if !maps.Equal(got, tt.want) {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

// resting is a Job with the condition BackingOff.
func resting(uid types.UID, status corev1.ConditionStatus, more ...batchv1.JobCondition) *events.Job {
	return &events.Job{UID: uid, Namespace: "shop", Status: batchv1.JobStatus{
		Conditions: append(more, batchv1.JobCondition{Type: v1alpha1.BackingOffCondition, Status: status})}}
}

func TestJobsThatBackOff(t *testing.T) {
	failed := batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}
	for _, tt := range []struct {
		name  string
		steps func(*Census)
		want  int
	}{
		{"none", func(*Census) {}, 0},
		{"a Job that never failed", func(c *Census) { c.SawJob(events.Job{UID: "a"}, true) }, 0},
		{"two", func(c *Census) {
			c.SawJob(*resting("a", corev1.ConditionTrue), false)
			c.SawJob(*resting("b", corev1.ConditionTrue), false)
		}, 2},
		{"the same observation twice", func(c *Census) {
			c.SawJob(*resting("a", corev1.ConditionTrue), false)
			c.SawJob(*resting("a", corev1.ConditionTrue), false)
		}, 1},
		{"one that tries again", func(c *Census) {
			c.SawJob(*resting("a", corev1.ConditionTrue), false)
			c.SawJob(*resting("a", corev1.ConditionFalse), false)
		}, 0},
		{"one that has failed meanwhile", func(c *Census) {
			c.SawJob(*resting("a", corev1.ConditionTrue), false)
			c.SawJob(*resting("a", corev1.ConditionTrue, failed), false)
		}, 0},
		{"one that is being deleted", func(c *Census) {
			c.SawJob(*resting("a", corev1.ConditionTrue), false)
			ending := resting("a", corev1.ConditionTrue)
			ending.Deleting = true
			c.SawJob(*ending, false)
		}, 0},
		{"one that is gone", func(c *Census) {
			c.SawJob(*resting("a", corev1.ConditionTrue), false)
			c.MissedJob("a")
		}, 0},
		{"a list replaces what was there", func(c *Census) {
			c.SawJob(*resting("a", corev1.ConditionTrue), false)
			c.SawJob(*resting("b", corev1.ConditionTrue), false)
			list(c, []*events.Job{resting("b", corev1.ConditionTrue), resting("c", corev1.ConditionFalse)})
		}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := New(Config{})
			tt.steps(c)
			if got := c.BackingOff(); got != tt.want {
				t.Errorf("%d, want %d", got, tt.want)
			}
		})
	}
}

// The reasons are words of Kubernetes, each listed once; the first and the last are this package's own.
func TestReasons(t *testing.T) {
	for i, reason := range Reasons {
		own := i == 0 && reason == NoReason || i == len(Reasons)-1 && reason == OtherReason
		if !own && (strings.ToLower(reason[:1]) == reason[:1] || slices.Index(Reasons, reason) != i) {
			t.Errorf("%d: %s", i, reason)
		}
	}
}

// BenchmarkMemory prints the memory that a Pending Pod, a Job that backs off, a run without a Pod and a ScheduledJob take.
func BenchmarkMemory(b *testing.B) {
	for _, bb := range []struct {
		name string
		many int
		saw  func(c *Census, uid types.UID)
	}{
		{"Pod", 100_000, func(c *Census, uid types.UID) { saw(c, waits(uid, "Unschedulable")) }},
		{"Job", 100_000, func(c *Census, uid types.UID) { c.SawJob(*resting(uid, corev1.ConditionTrue), false) }},
		{"run", MaxAwaited, func(c *Census, uid types.UID) { c.SawJob(*run(func(j *events.Job) { j.UID = uid }), true) }},
		{"ScheduledJob", 10_000, func(c *Census, uid types.UID) {
			c.SawSchedule(*scheduled("nightly-earnings-report-"+string(uid), 0, func(j *events.ScheduledJob) { j.UID = uid }))
		}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			for b.Loop() {
				c, before := New(Config{Schedules: bb.many}), held()
				for i := range bb.many {
					bb.saw(c, types.UID(fmt.Sprintf("5ef034e0-1890-11e6-8935-%012d", i)))
				}
				b.ReportMetric(float64(held()-before)/float64(bb.many), "B/"+bb.name)
				runtime.KeepAlive(c)
			}
		})
	}
}

func held() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
