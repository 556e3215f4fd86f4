// Package act is the reconciler's half: an Actor does effects on Jobs, Pods and ScheduledJobs, and answers with facts.
//
//	          effect                                request
//	engine -----------> Actor.Act: read what it -----------------> API server
//	   ^                needs, check whose it is                        |
//	   |                                                                |
//	   '------- facts <------- the object as it is now,     <-----------'
//	            Retry <------- or EffectRefused, or "not now"
//
// It decides nothing: an effect contains all that it needs. A failed precondition is no error; the answer then has a newer
// observation. An effect may come twice, and the second time its preconditions fail.
//
//	actor.go       the list of effects and the method for each; requests, which namespaces share
//	owned.go       who owns a Job or Pod, since an effect may name a foreign one
//	refusal.go     a Retry, or a refusal, which is a fact; complain.go reports to users what blocks a Job
//	create.go, pods.go, adopt.go        Pods: created, adopted, released, deleted; their finalizer
//	status.go, expire.go, parameters.go Jobs: their status, their end, the ConfigMap that gives values to their indexes
//	object.go                           what each function of the catalog works on: its kind, and its inventory
//	runs.go, schedulestatus.go          ScheduledJobs: the Jobs that they create, and their status
//	inventory.go   lists for empty states, shared by all Jobs that ask at the same time
//	recorder.go, announce.go            Kubernetes Events for users
//	meter.go       what metrics count
//
// The Actor keeps no object longer than a request, except the Jobs and ScheduledJobs from which something is being created
// (jobcache.go), and a few of their ConfigMaps: memory does not grow with the cluster.
package act
