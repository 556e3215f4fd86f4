package job_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/job"
)

// fleet has a Job with so many Pods, which exist and wait for the reason.
func fleet(t *testing.T, pods int32, reason string) *world {
	t.Helper()
	w := newWorld(t, job.DefaultLimits(), func(j *events.Job) { j.Parallelism, j.Completions = pods, &pods })
	w.wake()
	w.wait(time.Second)
	w.all(func(p *events.Pod) { p.Scheduled, p.Waiting = true, reason })
	w.wait(2 * time.Second)
	return w
}

// all changes every Pod.
func (w *world) all(change func(*events.Pod)) {
	w.t.Helper()
	for _, p := range w.pods() {
		w.api.UpdatePod(p.Name, change)
	}
	w.settle()
}

// oldest returns the name of the Pod that was created first.
func (w *world) oldest() string {
	return slices.MinFunc(w.pods(), func(a, b events.Pod) int { return a.Serial - b.Serial }).Name
}

// podsWaiting returns the condition.
func (w *world) podsWaiting() (c batchv1.JobCondition) {
	for _, c := range w.job().Status.Conditions {
		if c.Type == v1alpha1.PodsWaitingCondition {
			return c
		}
	}
	return c
}

// TestPodsThatStartInTimeCostNothing: no status write and no condition is added for Pods that start within 30 s.
func TestPodsThatStartInTimeCostNothing(t *testing.T) {
	w := fleet(t, 3, "ContainerCreating")
	w.wait(20 * time.Second)
	w.all(func(p *events.Pod) { p.Phase, p.Waiting, p.Ready, p.ReadySince = events.Running, "", true, w.now })
	before := count[effect.WriteJobStatus](w)
	w.wait(time.Hour)
	if n := count[effect.WriteJobStatus](w) - before; n > 0 {
		t.Errorf("%d status writes after they run", n)
	}
	if j := w.job(); j.HasCondition(v1alpha1.PodsWaitingCondition) {
		t.Errorf("the status has %+v", w.podsWaiting())
	}
}

// TestAPodThatIsNoLongerTheJobsDoesNotWaitForIt: a user has changed its labels, and it cannot be released yet.
func TestAPodThatIsNoLongerTheJobsDoesNotWaitForIt(t *testing.T) {
	w := fleet(t, 3, "ErrImagePull")
	w.refusing("Forbidden", func(e effect.Effect) bool { _, ok := e.(effect.ReleasePod); return ok })
	w.change(w.oldest(), func(p *events.Pod) { p.Labels = map[string]string{"debug": "me"} })
	w.wait(time.Minute)
	for _, p := range w.pods() { // those that are created in place of it
		w.change(p.Name, func(p *events.Pod) { p.Scheduled, p.Waiting = true, "ErrImagePull" })
	}
	w.wait(2 * time.Minute)
	if c := w.podsWaiting(); !strings.HasPrefix(c.Message, "3 of 3 Pods wait: 3 ImagePullBackOff") || count[effect.ReleasePod](w) == 0 {
		t.Errorf("%+v", c)
	}
}

// TestAFleetThatWaitsIsWrittenOnceAMinute: however often Pods of a large fleet show another reason, the status is written once a minute
// at most, and not at all while nothing changes.
func TestAFleetThatWaitsIsWrittenOnceAMinute(t *testing.T) {
	w := fleet(t, 200, "ErrImagePull")
	w.wait(time.Minute)
	if c := w.podsWaiting(); c.Reason != "ImagePullBackOff" || c.Message != fmt.Sprintf("200 of 200 Pods wait: 200 ImagePullBackOff (%s)", w.oldest()) {
		t.Errorf("%+v", c)
	}
	before := count[effect.WriteJobStatus](w)
	for range 30 { // the kubelet tries again
		w.all(func(p *events.Pod) { p.Waiting = "ErrImagePull" })
		w.wait(time.Second)
		w.all(func(p *events.Pod) { p.Waiting = "ImagePullBackOff" })
		w.wait(10 * time.Second)
	}
	if n := count[effect.WriteJobStatus](w) - before; n > 0 {
		t.Errorf("%d status writes, and nothing has changed", n)
	}
	for i, p := range w.pods() { // one after the other shows another reason: 5.5 minutes
		w.change(p.Name, func(p *events.Pod) { p.Waiting = "CreateContainerConfigError" })
		w.wait(1650 * time.Millisecond)
		if i == 150 && w.podsWaiting().Reason != "CreateContainerConfigError" {
			t.Errorf("three quarters have another reason: %+v", w.podsWaiting())
		}
	}
	if n := count[effect.WriteJobStatus](w) - before; n < 5 || n > 7 {
		t.Errorf("%d status writes in 5.5 minutes", n)
	}
	w.wait(time.Minute)
	if c := w.podsWaiting(); c.Message != fmt.Sprintf("200 of 200 Pods wait: 200 CreateContainerConfigError (%s)", w.oldest()) {
		t.Errorf("at the end: %+v", c)
	}
}
