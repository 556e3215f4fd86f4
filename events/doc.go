// Package events is the language of facts: what may happen to a Job and its Pods, as a closed set of Go types, and how
// each travels as a CloudEvent.
//
//	Key    whose memory a fact concerns          job default/5ef034e0-…
//	Event  what happened, a past participle      PodObserved{…}
//	Fact   the two together, on a subject        facts.<cluster>.<lane>.job.default.5ef034e0-….PodObserved
//
// Facts carry projections (projection.go), never objects: no Pod template, environment or secret can reach the bus
// because there is no field for it. Each sight carries the (uid, resourceVersion) it was taken at, so that an older one
// never overwrites a newer one, and an id made of the same, so that any number of triggers publish it as one message.
package events
