package differential_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/test/differential/upstream"
	"github.com/jobstream/jobstream/test/oracle/stage"
)

// picture is what a controller has made of its world, in words that do not depend on names and times: one line for each Pod that
// existed and still does, for each new Pod, and for each field of the status.
type picture []string

func (p picture) String() string { return strings.Join(p, "\n") }

// ourPicture is that of the stage of jobstream's function.
func ourPicture(s *stage.Stage) picture {
	var out picture
	for _, p := range s.Pods() {
		out = append(out, podLine(*s.Job(), p, !strings.HasPrefix(string(p.UID), "drawn-")))
	}
	slices.Sort(out)
	return append(out, statusLines(s.Job().Status)...)
}

// theirPicture is that of the built-in controller's world.
func theirPicture(b *upstream.Builtin) picture {
	var out picture
	for _, p := range b.Pods {
		out = append(out, podLine(events.ProjectJob(b.Job, claim), events.ProjectPod(p), upstream.Made(p)))
	}
	slices.Sort(out)
	return append(out, statusLines(b.Job.Status)...)
}

// podLine does not tell whether a terminating Pod that does not count is held: jobstream holds it until it has ended.
func podLine(j events.Job, p events.Pod, made bool) string {
	worthless := j.Indexed && p.Index >= int(*j.Completions)
	name := string(p.UID)
	if made {
		name = "a new Pod"
	}
	out := fmt.Sprintf("%s: %s", name, p.Phase)
	if p.Index != events.NoIndex {
		out += fmt.Sprintf(" of index %d", p.Index)
	}
	if p.IndexFailures+p.IndexIgnoredFailures > 0 {
		out += fmt.Sprintf(" after %d failures and %d ignored ones", p.IndexFailures, p.IndexIgnoredFailures)
	}
	if p.Held && (!p.Deleting || p.Terminal() || !worthless) {
		out += ", held"
	}
	if p.Deleting {
		out += ", deleted"
	}
	if p.Deleting && slices.Contains(p.Conditions, events.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}) {
		out += " by an eviction"
	}
	if p.Ready {
		out += ", ready"
	}
	return out
}

// statusLines omits what depends on the timing: times, and the order of conditions.
func statusLines(st batchv1.JobStatus) (out []string) {
	say := func(name string, v any) { out = append(out, fmt.Sprintf("status.%s: %v", name, v)) }
	say("active", st.Active)
	say("ready", deref(st.Ready))
	say("terminating", deref(st.Terminating))
	say("succeeded", st.Succeeded)
	say("failed", st.Failed)
	say("completedIndexes", strconv.Quote(st.CompletedIndexes))
	if st.FailedIndexes != nil {
		say("failedIndexes", strconv.Quote(*st.FailedIndexes))
	}
	if !ofNoStart(st) {
		say("started", st.StartTime != nil)
	}
	say("completed", st.CompletionTime != nil)
	if u := st.UncountedTerminatedPods; u != nil {
		slices.Sort(u.Succeeded)
		slices.Sort(u.Failed)
		say("uncounted", fmt.Sprint(u.Succeeded, u.Failed))
	} else {
		say("uncounted", "[] []")
	}
	var conditions []string
	for _, c := range st.Conditions {
		if c.Type == v1alpha1.BackingOffCondition || c.Type == v1alpha1.PodsWaitingCondition {
			continue // of jobstream's own: docs/conformance.md
		}
		if c.Reason == batchv1.JobReasonPodFailurePolicy {
			c.Message = "of any of the Pods that match" // the built-in controller gets them in random order
		}
		conditions = append(conditions, fmt.Sprintf("status: %s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	slices.Sort(conditions)
	return append(out, conditions...)
}

// ofNoStart reports whether the Job's end was declared while it was suspended. The built-in controller then sets startTime at
// its next write, whatever the reason.
func ofNoStart(st batchv1.JobStatus) bool {
	j := &batchv1.Job{Status: st}
	return is(j, batchv1.JobSuspended) && (is(j, batchv1.JobSuccessCriteriaMet) || is(j, batchv1.JobFailureTarget))
}

// given is what both controllers were shown.
func given(j *batchv1.Job, pods []*corev1.Pod) picture {
	spec := j.DeepCopy().Spec
	spec.Template, spec.ManagedBy = corev1.PodTemplateSpec{}, nil
	text, err := json.Marshal(spec)
	if err != nil {
		return picture{err.Error()}
	}
	out := picture{fmt.Sprintf("restartPolicy %s, %s", j.Spec.Template.Spec.RestartPolicy, text)}
	for _, p := range pods {
		out = append(out, podLine(events.ProjectJob(j, claim), events.ProjectPod(p), false))
	}
	return append(out, statusLines(*j.Status.DeepCopy())...)
}
