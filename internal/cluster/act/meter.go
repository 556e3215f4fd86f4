package act

import (
	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/events"
)

// Meter receives completed effects, for metrics. Several goroutines may call it at the same time; it must return at once, and
// must not change its arguments.
type Meter interface {
	// StatusWritten follows a successful PUT of a status: before is the Job at the version that the effect named, after is the
	// API server's answer; handled is the effect's. A successful write that is repeated has no effect, and causes no call.
	StatusWritten(before, after *batchv1.Job, handled map[batchv1.PodFailurePolicyAction]int)
	// PodCreation follows each POST of a Pod for the Job; err is the API server's answer or nil. A name that is taken is an error
	// here, too, since no Pod was created.
	PodCreation(j *batchv1.Job, err error)
	// FinalizerRemoved follows each removal of the finalizer from a Pod. A repeated removal calls it again.
	FinalizerRemoved()
	// VerdictUnannounced follows each verdict that a ScheduledJob's status has dropped without its having been announced.
	VerdictUnannounced(events.TickDecided)
}

// noMeter is a Meter that counts nothing.
type noMeter struct{}

func (noMeter) StatusWritten(_, _ *batchv1.Job, _ map[batchv1.PodFailurePolicyAction]int) {}
func (noMeter) PodCreation(*batchv1.Job, error)                                           {}
func (noMeter) FinalizerRemoved()                                                         {}
func (noMeter) VerdictUnannounced(events.TickDecided)                                     {}
