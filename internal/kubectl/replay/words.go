package replay

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/events"
)

// words describes facts by what has changed since the last fact about the same object, in the words of the transcripts in
// functions/job/testdata and functions/scheduledjob/testdata.
type words struct {
	job      *events.Job
	schedule *events.ScheduledJob
	pods     map[types.UID]events.Pod
	runs     map[types.UID]events.Run
	answered bool // the fact has answered an effect
}

func newWords() *words {
	return &words{pods: map[types.UID]events.Pod{}, runs: map[types.UID]events.Run{}}
}

// of describes the fact; answered reports whether it has answered an effect before. Then it shows what the reconciler has done, of which
// the effect tells, and perhaps what others have done meanwhile. "" means that there is nothing to describe.
func (w *words) of(e events.Event, answered bool) string {
	w.answered = answered
	said := w.describe(e)
	if said == "" && !answered {
		switch e.(type) {
		case events.JobObserved, events.ScheduledJobObserved:
			return "touch" // another client has written the object
		}
	}
	return said
}

func (w *words) describe(e events.Event) string {
	switch e := e.(type) {
	case events.JobObserved:
		return w.ofJob(e.Job)
	case events.JobGone, events.ScheduledJobGone:
		return "delete " + kindOf(e)
	case events.PodObserved:
		return w.ofPod(e.Pod)
	case events.PodGone:
		delete(w.pods, e.Pod.UID)
		if w.answered {
			return ""
		}
		return pod(e.Pod) + " is-gone"
	case events.ScheduledJobObserved:
		return w.ofSchedule(e.ScheduledJob)
	case events.RunObserved:
		return w.ofRun(e.Run)
	case events.RunGone:
		delete(w.runs, e.Run.UID)
		return "remove " + e.Run.Name
	case events.ScheduleDue:
		return "due " + e.Nominal.UTC().Format(time.RFC3339)
	case events.JobListed:
		return fmt.Sprintf("relist pods=%d", len(e.Pods))
	case events.JobPartListed:
		return fmt.Sprintf("relist pods=%d of a part", len(e.Pods))
	case events.ScheduleListed:
		return fmt.Sprintf("relist jobs=%d", len(e.Runs))
	}
	return string(e.Type())
}

func kindOf(e events.Event) string {
	if _, is := e.(events.JobGone); is {
		return "job"
	}
	return "scheduledjob"
}

func (w *words) ofJob(j events.Job) string {
	old := w.job
	if old != nil && old.Version >= j.Version {
		return ""
	}
	w.job = &j
	if old == nil {
		return join("job", settings(j, events.Job{Parallelism: -1, BackoffLimit: -1}))
	}
	changed := settings(j, *old)
	if len(changed) == 0 && j.Generation == old.Generation {
		return ""
	}
	return join("edit", changed)
}

// settings lists the fields of the spec that differ.
func settings(j, old events.Job) (all []string) {
	add := func(name string, differs bool, value any) {
		if differs {
			all = append(all, fmt.Sprintf("%s=%v", name, value))
		}
	}
	number := func(name string, is, was *int32) {
		if is != nil || was != nil {
			add(name, ptr.Deref(is, -1) != ptr.Deref(was, -1), text(is))
		}
	}
	flag := func(yes, no string, is, was bool) {
		switch {
		case is && !was:
			all = append(all, yes)
		case was && !is && no != "":
			all = append(all, no)
		}
	}
	number("completions", j.Completions, old.Completions)
	add("parallelism", j.Parallelism != old.Parallelism, j.Parallelism)
	flag("indexed", "", j.Indexed, old.Indexed)
	if j.BackoffLimitPerIndex == nil {
		add("backoffLimit", j.BackoffLimit != old.BackoffLimit, j.BackoffLimit)
	}
	number("per-index", j.BackoffLimitPerIndex, old.BackoffLimitPerIndex)
	number("maxFailedIndexes", j.MaxFailedIndexes, old.MaxFailedIndexes)
	number("ttl", j.TTLSecondsAfterFinished, old.TTLSecondsAfterFinished)
	if j.ActiveDeadlineSeconds != nil || old.ActiveDeadlineSeconds != nil {
		add("deadline", ptr.Deref(j.ActiveDeadlineSeconds, -1) != ptr.Deref(old.ActiveDeadlineSeconds, -1), text(j.ActiveDeadlineSeconds))
	}
	flag("on-failure", "", j.RestartsInPlace, old.RestartsInPlace)
	flag("replace-failed-only", "", j.ReplaceFailedOnly, old.ReplaceFailedOnly)
	flag("pod-failure-policy", "", j.PodFailurePolicy != nil, old.PodFailurePolicy != nil)
	flag("success-policy", "", j.SuccessPolicy != nil, old.SuccessPolicy != nil)
	flag("own-selector", "", j.Selector != nil, old.Selector != nil)
	flag("foreign", "", j.Foreign, old.Foreign)
	flag("suspended", "resumed", j.Suspended, old.Suspended)
	flag("deleting", "", j.Deleting, old.Deleting)
	add("parameters", j.Options.Parameters != old.Options.Parameters, j.Options.Parameters)
	return all
}

func text[T int32 | int64](n *T) string {
	if n == nil {
		return "nil"
	}
	return fmt.Sprint(*n)
}

func (w *words) ofPod(p events.Pod) string {
	old, known := w.pods[p.UID]
	if known && old.Version >= p.Version {
		return ""
	}
	w.pods[p.UID] = p
	var changes []string
	if !known {
		if p.Serial == events.NoSerial {
			changes = append(changes, "appears")
		}
		old = events.Pod{Phase: events.Pending, Held: p.Held, Serial: p.Serial, Orphan: p.Orphan, Labels: p.Labels}
	}
	add := func(word string, changed bool) {
		if changed {
			changes = append(changes, word)
		}
	}
	add("runs", p.Phase == events.Running && old.Phase != events.Running)
	add("is-ready", p.Ready && !old.Ready && old.Phase == events.Running)
	add("restarts", p.Restarts > old.Restarts)
	add("cannot-start: "+p.Waiting, p.Waiting != "" && p.Waiting != old.Waiting)
	add("succeeds", p.Phase == events.Succeeded && old.Phase != events.Succeeded)
	add(failed(p), p.Phase == events.Failed && old.Phase != events.Failed)
	if !w.answered {
		add("is-deleted", p.Deleting && !old.Deleting)
		add("loses-finalizer", !p.Held && old.Held)
		add("gets-finalizer", p.Held && !old.Held)
		add("is-given-back", !p.Orphan && old.Orphan)
		add(fmt.Sprintf("gets-serial-%d", p.Serial), p.Serial != events.NoSerial && p.Serial != old.Serial)
	}
	add("is-orphaned", p.Orphan && !old.Orphan)
	add("loses-serial", p.Serial == events.NoSerial && old.Serial != events.NoSerial)
	add("is-relabelled", !reflect.DeepEqual(p.Labels, old.Labels))
	if len(changes) == 0 {
		return ""
	}
	return join(pod(p), changes)
}

func failed(p events.Pod) string {
	if len(p.Exits) > 0 {
		return fmt.Sprintf("fails-with-%d", p.Exits[0].Code)
	}
	return "fails"
}

func pod(p events.Pod) string {
	if p.Serial == events.NoSerial {
		return "stranger " + p.Name
	}
	return fmt.Sprintf("pod %d", p.Serial)
}

func (w *words) ofSchedule(j events.ScheduledJob) string {
	old := w.schedule
	if old != nil && old.Version >= j.Version {
		return ""
	}
	w.schedule = &j
	verb := "edit"
	if old == nil {
		verb, old = "create", &events.ScheduledJob{SuccessfulJobs: -1, FailedJobs: -1}
	}
	var all []string
	for _, f := range []struct {
		name    string
		is, was any
	}{
		{"schedule", j.Schedule, old.Schedule}, {"schedules", strings.Join(j.Schedules, "; "), strings.Join(old.Schedules, "; ")}, {"exclude", strings.Join(j.Exclude, "; "), strings.Join(old.Exclude, "; ")},
		{"not-before", j.NotBefore, old.NotBefore}, {"not-after", j.NotAfter, old.NotAfter}, {"queue-limit", j.QueueLimit, old.QueueLimit},
		{"pause-after", j.PauseAfterFailures, old.PauseAfterFailures}, {"run-at", j.RunAt, old.RunAt}, {"start-after", j.StartAfter, old.StartAfter}, {"zone", j.TimeZone, old.TimeZone},
		{"policy", string(j.ConcurrencyPolicy), string(old.ConcurrencyPolicy)}, {"catch-up", string(j.CatchUp), string(old.CatchUp)},
		{"on-change", string(j.OnScheduleChange), string(old.OnScheduleChange)}, {"deadline", ptr.Deref(j.StartingDeadlineSeconds, -1), ptr.Deref(old.StartingDeadlineSeconds, -1)},
		{"jitter", j.JitterSeconds, old.JitterSeconds}, {"successful", j.SuccessfulJobs, old.SuccessfulJobs}, {"failed", j.FailedJobs, old.FailedJobs},
		{"ttl", ptr.Deref(j.TTLSecondsAfterFinished, -1), ptr.Deref(old.TTLSecondsAfterFinished, -1)}, {"suspended", j.Suspended, old.Suspended}, {"deleting", j.Deleting, old.Deleting},
	} {
		if f.is != f.was {
			all = append(all, fmt.Sprintf("%s=%s", f.name, value(f.is)))
		}
	}
	if len(all) == 0 && verb == "edit" && j.Generation == old.Generation {
		return ""
	}
	return join(verb, all)
}

func value(v any) string {
	if t, is := v.(time.Time); is {
		return t.UTC().Format(time.RFC3339)
	}
	if s := fmt.Sprint(v); !strings.ContainsAny(s, " ,()") {
		return s
	}
	return fmt.Sprintf("%q", v)
}

func (w *words) ofRun(r events.Run) string {
	old, known := w.runs[r.UID]
	if known && old.Version >= r.Version {
		return ""
	}
	w.runs[r.UID] = r
	verb := map[events.RunResult]string{events.RunComplete: "finish", events.RunFailed: "fail"}[r.Result]
	switch {
	case verb != "" && old.Result == "":
		return verb + " " + r.Name
	case r.Deleting && !old.Deleting:
		return "delete " + r.Name
	case !known && r.Manual:
		return "by-hand " + r.Name
	case !known:
		return "job " + r.Name
	}
	return ""
}

func join(verb string, rest []string) string { return strings.Join(slices.Insert(rest, 0, verb), " ") }
