// Package cluster is client-go and nothing else: it watches Jobs, Pods and ScheduledJobs, and does to them what effects ask
// for.
//
//	Watcher   LIST, then watch      Kubernetes API  ---->  facts      relist.go, watch.go; of Pods: observations.go, strangers.go;
//	                                                                  of ScheduledJobs: schedules.go
//	Actor     one effect at a time  effects  ---->  Kubernetes API    actor.go; of Pods: create.go, pods.go, adopt.go;
//	                                facts    <----  its answers       of Jobs: status.go, expire.go; parameters.go, inventory.go;
//	                                                                  of ScheduledJobs: runs.go, schedulestatus.go
//
// ScheduledJobs are not Kubernetes' own: scheduledjobs.go is their client, which reads also what no type can hold, and crd.go
// installs their definition. A cluster without it is one where only Jobs are wanted.
//
// Who is who: identity.go. It decides nothing. What an effect needs to know stands in the effect, what the API server answers becomes a fact, and
// a precondition that failed is no error: the answer then holds a newer observation. Errors have one kind, engine.Retry;
// refusal.go tells it from a refusal, which is a fact too.
//
// No object is kept beyond the moment, except the Jobs and ScheduledJobs from which something is being created
// (jobcache.go), a few ConfigMaps of theirs, and the selectors of Jobs that may adopt any Pod of their namespace
// (claimants.go): memory does not grow with the cluster.
package cluster
