package act

import (
	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/events"
)

// Meter hears of what was done, for metrics. It may be called from several goroutines, must return at once, and must
// change nothing that it is given.
type Meter interface {
	// StatusWritten follows a PUT of a status that succeeded: before is the Job at the version that the effect named, after is
	// how the API server answered; handled is the effect's. A write that succeeds and is repeated has no effect, nor a call.
	StatusWritten(before, after *batchv1.Job, handled map[batchv1.PodFailurePolicyAction]int)
	// PodCreation follows each POST of a Pod for the Job; err is the API server's answer or nil. A name that is taken is an
	// error here too, since no Pod was made.
	PodCreation(j *batchv1.Job, err error)
	// FinalizerRemoved follows each removal of our finalizer from a Pod. A removal that is repeated calls again.
	FinalizerRemoved()
	// VerdictUnannounced follows each verdict that a status of a ScheduledJob has forgotten, and that was never announced.
	VerdictUnannounced(events.TickDecided)
}

// noMeter is nobody who counts.
type noMeter struct{}

func (noMeter) StatusWritten(_, _ *batchv1.Job, _ map[batchv1.PodFailurePolicyAction]int) {}
func (noMeter) PodCreation(*batchv1.Job, error)                                           {}
func (noMeter) FinalizerRemoved()                                                         {}
func (noMeter) VerdictUnannounced(events.TickDecided)                                     {}
