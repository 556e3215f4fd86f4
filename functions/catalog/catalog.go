// Package catalog lists every function, explicitly: the one place to add another.
package catalog

import (
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/functions/job"
)

// All returns the functions that a reconciler runs, within the limits that its flags set.
func All(limits job.Limits) []fn.Registered {
	return []fn.Registered{
		fn.Register(job.New(limits)),
	}
}
