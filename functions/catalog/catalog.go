// Package catalog lists every function, explicitly: the one place to add another.
package catalog

import (
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/functions/job"
)

// All returns the functions that a reconciler runs.
func All() []fn.Registered {
	return []fn.Registered{
		fn.Register(job.Function),
	}
}
