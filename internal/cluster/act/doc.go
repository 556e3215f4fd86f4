// Package act is the reconciler's hand: an Actor does to Jobs, Pods and ScheduledJobs what effects ask for, and answers with facts.
//
//	          effect                                request
//	engine -----------> Actor.Act: read what it -----------------> API server
//	   ^                needs, check whose it is                        |
//	   |                                                                |
//	   '------- facts <------- what the object is like now, <-----------'
//	            Retry <------- or EffectRefused, or "not now"
//
// It decides nothing: what an effect needs to know stands in the effect. A precondition that failed is no error; the answer then
// holds a newer observation. An effect may come twice, and the second time its preconditions fail.
//
//	actor.go       the list of effects and who does each; requests, which namespaces share
//	owned.go       whose a Job or Pod is, since an effect may name one that is not ours
//	refusal.go     a Retry, or a refusal, which is a fact; complain.go reports what blocks a Job to people
//	create.go, pods.go, adopt.go        Pods: made, released, held, adopted, deleted
//	status.go, expire.go, parameters.go Jobs: their status, their end, the ConfigMap that gives values to their indexes
//	object.go                           what each function of the catalog works on: its kind, and its inventory
//	runs.go, schedulestatus.go          ScheduledJobs: the Jobs that they make, and their status
//	inventory.go   lists for empty states, shared by all Jobs that ask at the same time
//	recorder.go, announce.go            Kubernetes Events for people
//	meter.go       what metrics hear of
//
// No object is kept beyond the moment, except the Jobs and ScheduledJobs from which something is being created (jobcache.go), and a
// few ConfigMaps of theirs: memory does not grow with the cluster.
package act
