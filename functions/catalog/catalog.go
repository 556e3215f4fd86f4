// Package catalog lists every function, explicitly: the one place to add another.
package catalog

import (
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/functions/job"
	"github.com/jobstream/jobstream/functions/scheduledjob"
)

// All returns the functions that a reconciler runs, within the limits that its flags set, by the time zones that it knows.
func All(limits job.Limits, zones scheduledjob.Zones) []fn.Registered {
	return []fn.Registered{
		fn.Register(job.New(limits)),
		fn.Register(scheduledjob.New(zones)),
	}
}
