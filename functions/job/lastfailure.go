package job

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

// How a Pod failed outlives the Pod and the State in an annotation of the Job, which is written with the status:
//
//	failed Pod is observed --> State.LastFailure --status write--> annotation --> JobFinish, condition BackingOff
//	index has failed ----------> the Pod, held ----status write--> annotation --> JobFinish

// lastFailure returns how the Pod failed that failed last. Once the end of the Job is decided, it does not change any more: Pods that
// are deleted because of it fail, too, and are not what the user looks for.
func (s State) lastFailure() *events.PodFailure {
	_, met := s.Job.Condition(batchv1.JobSuccessCriteriaMet)
	if _, failing := s.Job.Condition(batchv1.JobFailureTarget); met || failing {
		return s.Job.LastFailure
	}
	return s.Job.LastFailure.Later(s.LastFailure)
}

// noteFailure notes how the Pod of a row failed, if it did. An observation that comes late tells that, too: by then the newest one may be
// of another Pod that a worker has created under the same name.
func (s *State) noteFailure(p events.Pod, r Row) {
	if p.Phase == events.Failed && !r.Surplus {
		s.LastFailure = s.LastFailure.Later(new(events.FailureOf(p)))
	}
}

// failedIndexExits returns how the indexes ended that the wanted status has as failed, the lowest of them. What the observed Job has
// stays as it is; the Pods because of which further indexes fail are all held until a status lists these.
func (s State) failedIndexExits(c count) []events.IndexExit {
	out := slices.DeleteFunc(slices.Clone(s.Job.FailedIndexExits), func(e events.IndexExit) bool { return !c.indexes.lost.Has(e.Index) })
	for _, p := range c.indexes.fatal {
		out = append(out, events.ExitOf(p))
	}
	slices.SortFunc(out, func(a, b events.IndexExit) int { return cmp.Compare(a.Index, b.Index) })
	return out[:min(len(out), events.MaxIndexExits)]
}

// showBackoff sets the condition of a Job that waits after failures before it creates the next Pod. It goes with a status write that
// is made anyway: a condition that is True may have ended since.
func showBackoff(st *batchv1.JobStatus, s State, c count, v outcome, now time.Time) {
	ends, what := backoffEnds(s, c, now), "the next Pod is created at "
	if s.Job.BackoffLimitPerIndex != nil {
		ends, what = indexesRest(s, c, now), "the first of the indexes that wait is tried again at "
	}
	if ends.IsZero() || v.kind != "" || s.Job.Suspended {
		setCondition(st, v1alpha1.BackingOffCondition, corev1.ConditionFalse, "Tried", "", now)
		return
	}
	message := what + ends.UTC().Format(time.RFC3339)
	if f := s.lastFailure(); f != nil {
		message += fmt.Sprintf("; %v", *f)
	}
	if n := record(s.Job, c, *st).Failures; n > 1 {
		message = fmt.Sprintf("%d failures in a row: %s", n, message)
	}
	setCondition(st, v1alpha1.BackingOffCondition, corev1.ConditionTrue, "PodFailed", message, now)
}
