// Package cluster has what the trigger and the reconciler share of the Kubernetes API. It uses client-go only: it knows neither
// the bus nor the engine, and decides nothing.
//
//	            API server
//	             |      ^
//	LIST, watch  |      |  effects
//	             v      |
//	  cluster/watch    cluster/act      the trigger turns objects into facts; the reconciler turns effects into requests
//	             \      /
//	             cluster                lists, identities, clients
//
// What both need:
//
//	client.go            NewClient of a kubeconfig or a service account; Check asks the API server for its version
//	scheduledjobs.go     a client of ScheduledJobs, which can also read objects that do not fit the Go types
//	identity.go          Identity: an object's namespace and UID, and the key of its function
//	list.go              Lister: complete, consistent lists. A trigger relists from them, a reconciler takes inventory: both must
//	                     see the same Pods, so one place selects them
//	adopting_jobs.go     which Jobs may adopt a Pod without the managed label
//	answers.go           what an error of a list or a watch means, and how long a message may be
//
// What the operator's commands need:
//
//	crd.go               InstallScheduledJobs, for a cluster without the definition
//	inspect.go           Inspection, for "doctor"; inspect_access.go asks about permissions
//	remains.go           Leaving, for "drain": what would be left unfinished if all programs stopped
//
// Package clustertest has an API server and one namespace for each test, for the tests of all three packages.
package cluster
