package act

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
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
	// JobCreated follows a successful POST of the Job of a nominal time, with the time of the API server's answer. A Job that was
	// there already, most often from a POST whose answer was lost, causes no call.
	JobCreated(namespace string, nominal, at time.Time)
	// ScheduleStatusWritten follows a successful PUT of a ScheduledJob's status: before is the ScheduledJob at the version that the
	// effect named, after is the API server's answer, and dropped are the verdicts that have left the status, or never were in it,
	// without having been announced. A successful write that is repeated has no effect, and causes no call.
	ScheduleStatusWritten(before, after *v1alpha1.ScheduledJob, dropped []events.TickDecided)
}

// noMeter is a Meter that counts nothing.
type noMeter struct{}

func (noMeter) StatusWritten(_, _ *batchv1.Job, _ map[batchv1.PodFailurePolicyAction]int) {}
func (noMeter) PodCreation(*batchv1.Job, error)                                           {}
func (noMeter) FinalizerRemoved()                                                         {}
func (noMeter) JobCreated(string, time.Time, time.Time)                                   {}
func (noMeter) ScheduleStatusWritten(_, _ *v1alpha1.ScheduledJob, _ []events.TickDecided) {}
