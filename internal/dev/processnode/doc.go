// Package processnode is a node for development: it registers a Node with a Kubernetes API server, binds Pods to it and
// runs their containers as processes of this machine. Demo, development cluster and end-to-end tests so run real
// commands, with real exit codes and real signals, where there is no container engine.
//
//	watch ---> Node ---> pod (one goroutine each) ---> launcher ---> process
//	             |         |  decide: what next?           |          (or hollow: a timer)
//	             |         |  status: what to report       '--> env, volumes, sandbox, logs
//	             '- bind   '---> PUT status, DELETE at the end
//
// Read in this order: state.go (the state of a container), decide.go (the next steps: a pure function), status.go
// (the Pod's status: a pure function), pod.go (the loop that joins the two), process.go (how a container
// becomes a process). hollow.go replaces the process by a timer, for thousands of Pods.
//
// # What it promises
//
// A container is started at most once per start that its restart policy asks for: a Pod is known by its UID, and a Pod
// that a former life of the node may have started is reported as failed instead of being run. When Run returns, no
// process of a container and no file is left.
//
// # What it is not
//
// Commands are the host's: image names are ignored, so a container needs a command. There is no isolation
// to rely on: containers share the host's files, users and network, and see only their volumes as containers do. Probes,
// lifecycle hooks, resource limits and exec are ignored. The scheduler considers only free slots and nodeSelector.
package processnode
