package why

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

// Reasons of verdicts, as functions/scheduledjob gives them.
const (
	overlap    = "Overlap"
	suspension = "Suspended"
	deadline   = "Deadline"
	superseded = "Superseded"
	nameTaken  = "NameTaken"
)

// unstarted returns the latest verdicts on nominal times that got no Job: those after the last that did. Jobs that a user has started
// do not count.
func (x *scheduleCauses) unstarted() []v1alpha1.TickVerdict {
	recent := slices.DeleteFunc(slices.Clone(x.Object.Status.Recent), func(v v1alpha1.TickVerdict) bool {
		return v.Verdict == string(events.Started) && v.Reason != ""
	})
	for i := len(recent) - 1; i >= 0; i-- {
		if recent[i].Verdict == string(events.Started) {
			return recent[i+1:]
		}
	}
	return recent
}

// skipped reports whether the latest nominal time was skipped because of an active Job.
func (x *scheduleCauses) skipped() bool {
	v := x.unstarted()
	return len(v) > 0 && v[len(v)-1].Reason == overlap
}

// verdicts reports why the latest nominal times got no Job, the last reason first.
func (x *scheduleCauses) verdicts() {
	all := x.unstarted()
	seen := map[string]bool{}
	for i := len(all) - 1; i >= 0; i-- {
		v := all[i]
		key := v.Verdict + v.Reason
		if seen[key] || v.Reason == suspension && x.has("suspended") || v.Reason == overlap && x.has("overlap") {
			continue
		}
		seen[key] = true
		n := int64(0)
		for _, other := range all {
			if other.Verdict+other.Reason == key {
				n += max(1, other.Count)
			}
		}
		x.verdict(v, n)
	}
}

// verdict reports the latest verdict of a kind, of which there are n since the last Job.
func (x *scheduleCauses) verdict(v v1alpha1.TickVerdict, n int64) {
	at := v.Time.Time
	if v.Until != nil {
		at = v.Until.Time
	}
	times := "the time " + x.clock(at)
	if n > 1 {
		times = fmt.Sprintf("%d times, the last of them %s,", n, x.clock(at))
	}
	found := fmt.Sprintf("%s got no Job: %s (%s)%s", times, clean(v.Verdict), clean(v.Reason), colon(clean(v.Message)))
	makeUp := fmt.Sprintf("make up for it with: kubectl jobstream backfill %s -n %s --from=%s --to=%s", x.name, x.namespace, x.clock(v.Time.Time), x.clock(at))
	switch {
	case v.Verdict == string(events.Skipped) && v.Reason == overlap:
		x.warn("overlap", "no Job is active now, so the next time runs; let Jobs overlap with concurrencyPolicy Allow, or "+makeUp, "%s", found)
	case v.Verdict == string(events.Skipped):
		x.warn("skipped", makeUp, "%s", found)
	case v.Reason == deadline:
		x.fail("starting deadline", "raise startingDeadlineSeconds, or remove it: jobstream did not run, or could not create the Job, before it was over; "+makeUp, "%s%s", found, x.deadlineText())
	case v.Reason == superseded:
		x.fail("missed", `set catchUp to All if every time needs a Job, even a late one; `+makeUp, "%s", found)
	case v.Reason == nameTaken:
		x.fail("name taken", "delete the Job that has the name, if it is not needed; "+makeUp, "%s", found)
	default:
		x.refusedVerdict(v, found, makeUp)
	}
}

// refusedVerdict reports a nominal time whose Job the API server refused, unless the condition Blocked shows the same.
func (x *scheduleCauses) refusedVerdict(v v1alpha1.TickVerdict, found, makeUp string) {
	if meta.IsStatusConditionTrue(x.Object.Status.Conditions, v1alpha1.BlockedCondition) {
		return
	}
	x.refuse(v.Reason, v.Message, "at "+x.clock(v.Time.Time), "change jobTemplate with: kubectl edit "+x.object())
	last := &x.all[len(x.all)-1]
	last.Found, last.Advice = found, strings.TrimPrefix(last.Advice+"; ", "; ")+makeUp
}

func (x *scheduleCauses) deadlineText() string {
	if d := x.Object.Spec.StartingDeadlineSeconds; d != nil {
		return fmt.Sprintf(" (startingDeadlineSeconds is %d)", *d)
	}
	if x.Object.Spec.CatchUp == v1alpha1.CatchUpNone {
		return " (catchUp is None, which allows one minute)"
	}
	return ""
}

// lastRun reports how the Job ended that ended last.
func (x *scheduleCauses) lastRun() {
	l := x.Object.Status.LastRun
	if l == nil {
		return
	}
	which := "the Job " + clean(l.JobName)
	if l.ScheduledTime != nil {
		which += " of " + x.clock(l.ScheduledTime.Time)
	}
	when := fmt.Sprintf("at %s, %s ago", l.CompletionTime.UTC().Format(time.RFC3339), x.ago(l.CompletionTime.Time))
	switch l.Result {
	case string(events.RunComplete):
		x.good("last run", "%s completed %s", which, when)
	case string(events.RunFailed):
		if x.Last == nil {
			x.fail("last run", "keep more failed Jobs with failedJobsHistoryLimit, so that their output can be read", "%s failed %s: %s; it does not exist any more", which, when, clean(l.Reason))
			return
		}
		f := Job{Object: x.Last, Now: x.now}.Explain().Findings[0]
		x.fail("last run", f.Advice, "%s %s", which, strings.TrimPrefix(f.Found, "it "))
	default:
		x.warn("last run", "", "%s did not end: %s (%s), %s", which, clean(l.Result), clean(l.Reason), when)
	}
}
