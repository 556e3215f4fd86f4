// Package catalog is the explicit list of all functions, and the one place to add another.
//
// What the adapters need for each function, such as where its inventory is taken, is a switch or a map over Name. The linter
// (exhaustive) reports each of them that lacks a function; docs/contributing.md has the whole checklist.
package catalog

import (
	"maps"
	"slices"

	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/functions/job"
	"github.com/jobstream/jobstream/functions/scheduledjob"
)

// Name is the name of a function of the catalog, as in events.Key.Function.
type Name string

// The functions that a reconciler runs.
const (
	Job          Name = job.Name
	ScheduledJob Name = scheduledjob.Name
)

var functions = map[Name]func(job.Limits, scheduledjob.Zones) fn.Registered{
	Job:          func(l job.Limits, _ scheduledjob.Zones) fn.Registered { return fn.Register(job.New(l)) },
	ScheduledJob: func(_ job.Limits, z scheduledjob.Zones) fn.Registered { return fn.Register(scheduledjob.New(z)) },
}

// Names returns the names of all functions, in alphabetical order.
func Names() []Name { return slices.Sorted(maps.Keys(functions)) }

// All returns the functions that a reconciler runs, in the order of Names, with the given limits and time zones.
func All(limits job.Limits, zones scheduledjob.Zones) (all []fn.Registered) {
	for _, name := range Names() {
		all = append(all, functions[name](limits, zones))
	}
	return all
}
