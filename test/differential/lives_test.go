package differential_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/test/differential/upstream"
	"github.com/jobstream/jobstream/test/oracle"
	"github.com/jobstream/jobstream/test/oracle/draw"
	"github.com/jobstream/jobstream/test/oracle/stage"
)

// step is the time between two occurrences: every delay ends within one step, and none at its end.
const step = 5 * time.Second

// TestLives runs one new Job under both controllers: the same happens to both at the same times, and after each occurrence the
// results must be equal. So every compared state is reachable.
func TestLives(t *testing.T) {
	builtin, err := upstream.NewBuiltin(draw.Epoch)
	if err != nil {
		t.Fatal(err)
	}
	ends := map[batchv1.JobConditionType]int{}
	rapid.Check(t, func(t *rapid.T) {
		l := begin(t, builtin)
		l.compare()
		for range rapid.IntRange(1, 15).Draw(t, "happenings") {
			l.happen()
			l.compare()
		}
		for _, c := range l.theirs.Job.Status.Conditions {
			if c.Status == corev1.ConditionTrue {
				ends[c.Type]++
			}
		}
	})
	t.Logf("lives by their outcome: %v", ends)
}

// life is one Job in two worlds.
type life struct {
	t      *rapid.T
	ours   *stage.Stage
	theirs *upstream.Builtin
	now    time.Time
	story  []string
}

func begin(t *rapid.T, builtin *upstream.Builtin) *life {
	j := draw.Job(t)
	if s := &j.Spec; s.BackoffLimitPerIndex != nil { // so that an index that waits does not keep another's place
		s.Parallelism = s.Completions
	}
	if j.Spec.ActiveDeadlineSeconds != nil {
		*j.Spec.ActiveDeadlineSeconds += 10 // see intended
	}
	l := &life{t: t, theirs: builtin, now: draw.Now}
	builtin.Begin(j, nil)
	builtin.Refuses = oracle.StatusUpdate
	l.ours = stage.New(l.now, events.ProjectJob(j, claim), nil)
	l.ours.Wake()
	return l
}

// compare lets both work until nothing changes, and compares.
func (l *life) compare() {
	l.t.Helper()
	if err := l.ours.Turns(); err != nil {
		l.t.Fatalf("ours: %v", err)
	}
	if err := l.ours.Advance(2 * time.Second); err != nil { // mere progress is written after a second
		l.t.Fatalf("ours: %v", err)
	}
	if err := l.theirs.Settle(l.now); l.theirs.Refused != nil {
		l.t.Skip("the built-in controller is stuck: its status is refused")
	} else if err != nil {
		l.t.Fatalf("after %v, the built-in controller returns: %v", l.story, err)
	}
	if a, b := ourPicture(l.ours), theirPicture(l.theirs); !slices.Equal(a, b) {
		l.t.Fatalf("a Job like this\n%v\nafter %v\n\nours\n%v\n\nthe built-in controller's\n%v\n\nours has done %v",
			given(l.theirs.Job, nil), picture(l.story), a, b, l.ours.Effects)
	}
}

// happen lets time pass, and then does something that a user or a node may do, in both worlds. Nothing happens at a time at
// which something else is due: the order of the two would decide.
func (l *life) happen() {
	l.now = l.now.Add(step)
	before := len(l.ours.Effects)
	if err := l.ours.Advance(l.now.Sub(l.ours.Now)); err != nil {
		l.t.Fatalf("ours: %v", err)
	}
	if len(l.ours.Effects) > before {
		return
	}
	if is(l.theirs.Job, batchv1.JobComplete) || is(l.theirs.Job, batchv1.JobFailed) {
		return // no controller manages what is left
	}
	if draw.Dice(l.t, 5, "a user does something") == 4 {
		l.edit()
	}
	for range rapid.IntRange(0, 3).Draw(l.t, "Pods that change") {
		l.pod()
	}
}

// edit makes a change that a user may make. Which of two equal Pods of an Indexed Job is deleted is random in the built-in
// controller, so parallelism only grows there.
func (l *life) edit() {
	real := l.theirs.Job
	next := draw.Edited(l.t, real)
	elastic := *next.Spec.CompletionMode == batchv1.IndexedCompletion
	if elastic && (*next.Spec.Parallelism < *real.Spec.Parallelism || next.Spec.BackoffLimitPerIndex != nil) {
		next.Spec.Parallelism, next.Spec.Completions = real.Spec.Parallelism, real.Spec.Completions
	}
	next.Spec.ActiveDeadlineSeconds = real.Spec.ActiveDeadlineSeconds
	real.Spec = next.Spec
	seen := events.ProjectJob(real, claim)
	l.ours.Edit(func(j *events.Job) {
		j.Suspended, j.Parallelism, j.Completions = seen.Suspended, seen.Parallelism, seen.Completions
	})
	l.story = append(l.story, l.now.Format(time.TimeOnly)+" the user requests "+given(real, nil)[0])
}

// pod changes a Pod of each world: Pods with equal pictures are taken for the same.
func (l *life) pod() {
	theirs := map[string]string{}
	for name, p := range l.theirs.Pods {
		if e := events.ProjectPod(p); !e.Terminal() {
			theirs[podLine(events.ProjectJob(l.theirs.Job, claim), e, true)] = name
		}
	}
	ours := map[string]string{}
	for _, p := range l.ours.Pods() {
		if line := podLine(*l.ours.Job(), p, true); theirs[line] != "" {
			ours[line] = p.Name
		}
	}
	lines := make([]string, 0, len(ours))
	for line := range ours {
		lines = append(lines, line)
	}
	if slices.Sort(lines); len(lines) == 0 {
		return
	}
	line := rapid.SampledFrom(lines).Draw(l.t, "pod")
	what := rapid.SampledFrom([]string{"runs", "runs", "succeeds", "fails", "fails", "is evicted", "is deleted"}).Draw(l.t, "it")
	l.story = append(l.story, fmt.Sprintf("%s %s: %s", l.now.Format(time.TimeOnly), line, what))
	p := l.theirs.Pods[theirs[line]].DeepCopy()
	change(p, what, rapid.Int32Range(1, 4).Draw(l.t, "exit code"), metav1.NewTime(l.now.Truncate(time.Second)))
	l.theirs.Change(theirs[line], func(x *corev1.Pod) { *x = *p })
	seen := complete([]*corev1.Pod{p})[0]
	l.ours.API.UpdatePod(ours[line], func(x *events.Pod) {
		x.Phase, x.Scheduled, x.Ready, x.ReadySince, x.Deleting = seen.Phase, seen.Scheduled, seen.Ready, seen.ReadySince, seen.Deleting
		x.Finished, x.Exits, x.Conditions = seen.Finished, seen.Exits, seen.Conditions
	})
}

// change does to a Pod that has not ended what a kubelet does, or a user who deletes it.
func change(p *corev1.Pod, what string, code int32, now metav1.Time) {
	p.Spec.NodeName = "node"
	ready := func(is corev1.ConditionStatus) {
		p.Status.Conditions = slices.DeleteFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: is, LastTransitionTime: now})
	}
	switch {
	case what == "runs":
		if p.Status.Phase == corev1.PodPending {
			p.Status.Phase = corev1.PodRunning
			ready(corev1.ConditionTrue)
		}
	case what == "succeeds":
		p.Status.Phase = corev1.PodSucceeded
		ready(corev1.ConditionFalse)
		exit(p, 0, now)
	case what == "fails":
		p.Status.Phase = corev1.PodFailed
		ready(corev1.ConditionFalse)
		exit(p, code, now)
	case p.DeletionTimestamp == nil:
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.NewTime(now.Add(30*time.Second))), new(int64(30))
		if what == "is evicted" {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue})
		}
	}
}

// exit ends all of the Pod's containers, the main one with the code.
func exit(p *corev1.Pod, code int32, now metav1.Time) {
	ended := func(c corev1.Container, code int32) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: c.Name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: now}}}
	}
	for _, c := range p.Spec.Containers {
		p.Status.ContainerStatuses, code = append(p.Status.ContainerStatuses, ended(c, code)), 0
	}
	for _, c := range p.Spec.InitContainers {
		p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, ended(c, 0))
	}
}
