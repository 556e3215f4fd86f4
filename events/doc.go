// Package events is the language of facts: what may happen to a Job, its Pods and a ScheduledJob, as a closed set of Go
// types, and how each travels as a CloudEvent. The events for subscribers are in public.go.
//
//	Key    the state that a fact concerns         job default/5ef034e0-…
//	Event  what happened, a past participle      PodObserved{…}
//	Fact   the two together, on a subject        facts.<cluster>.<partition>.job.default.5ef034e0-….PodObserved
//
// Facts carry projections (project_*.go), never objects: no Pod template, environment or secret can reach the bus
// because there is no field for it. Each observation carries the (uid, resourceVersion) it was taken at, so that an older one
// never overwrites a newer one, and an id made of the same, so that any number of triggers publish it as one message.
package events
