package processnode

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
)

// role is when a container runs.
type role int

const (
	initRole    role = iota // one after the other, before everything that follows
	sidecarRole             // an init container with restartPolicy Always: runs until the mains have ended
	mainRole                // side by side, after the init containers
)

// stage is a container's stage of life. An exited container that restarts goes back to running.
type stage int

const (
	waiting stage = iota // has not been started, or could not be
	running
	exited
)

// exit is how one run of a container ended.
type exit struct {
	code              int32
	signal            int32
	reason            string
	message           string
	started, finished time.Time
	id                string
}

// container is the node's state of one container. It is plain data: decide and status read it, pod.go writes it.
type container struct {
	name string
	role role
	spec *v1.Container

	stage   stage
	reason  string // why it waits
	message string
	id      string // of the run that runs
	started time.Time
	runs    int32 // starts so far

	exit  *exit // how the last run ended
	prior *exit // how the run before that ended
	again bool  // the restart policy wants another run after exit

	due       time.Time // when it may be started: back-off, or the next attempt at a configuration that is missing
	failures  int       // attempts or runs in a row that earn a delay
	signalled signalled
}

// signalled is the strongest signal that the node has sent to the container.
type signalled int

const (
	notSignalled signalled = iota
	termed
	killed
)

// succeeded reports whether the container has ended successfully and for good.
func (c *container) succeeded() bool { return c.stage == exited && !c.again && c.exit.code == 0 }

// failed reports whether the container has failed for good.
func (c *container) failed() bool { return c.stage == exited && !c.again && c.exit.code != 0 }

// everStarted reports whether there has been a run, even one that could not find its program.
func (c *container) everStarted() bool { return c.stage == running || c.exit != nil }

// containersOf lists a Pod's containers in the order in which they start: init containers, then mains.
func containersOf(spec *v1.PodSpec) []container {
	out := make([]container, 0, len(spec.InitContainers)+len(spec.Containers))
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		r := initRole
		if c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways {
			r = sidecarRole
		}
		out = append(out, container{name: c.Name, role: r, spec: c})
	}
	for i := range spec.Containers {
		out = append(out, container{name: spec.Containers[i].Name, role: mainRole, spec: &spec.Containers[i]})
	}
	for i := range out {
		out[i].reason = "PodInitializing"
		if len(spec.InitContainers) == 0 {
			out[i].reason = "ContainerCreating"
		}
	}
	return out
}

// restarts reports whether the container is restarted after this exit code: by its own rules first, then its own policy, then the
// Pod's.
func restarts(c *v1.Container, pod v1.RestartPolicy, code int32) bool {
	if c.RestartPolicy == nil {
		return pod == v1.RestartPolicyAlways || pod == "" || pod == v1.RestartPolicyOnFailure && code != 0
	}
	for _, rule := range c.RestartPolicyRules {
		if rule.Action != v1.ContainerRestartRuleActionRestart || rule.ExitCodes == nil {
			continue
		}
		in := slices.Contains(rule.ExitCodes.Values, code)
		if in == (rule.ExitCodes.Operator == v1.ContainerRestartRuleOnExitCodesOpIn) {
			return true
		}
	}
	return *c.RestartPolicy == v1.ContainerRestartPolicyAlways ||
		*c.RestartPolicy == v1.ContainerRestartPolicyOnFailure && code != 0
}

// Backoff is how long a container that keeps ending waits before its next run. The zero value is the kubelet's: the
// first restart at once, then 10 s, doubled up to 5 min, forgotten after a run of twice the maximum.
type Backoff struct {
	Base time.Duration
	Max  time.Duration
}

func (b Backoff) withDefaults() Backoff {
	if b.Base <= 0 {
		b.Base = 10 * time.Second
	}
	if b.Max <= 0 {
		b.Max = max(5*time.Minute, b.Base)
	}
	return b
}

// delay before the restart that follows the given number of earlier restarts in a row.
func (b Backoff) delay(restarts int) time.Duration {
	if restarts <= 0 {
		return 0
	}
	d := b.Base
	for i := 1; i < restarts && d < b.Max; i++ {
		d *= 2
	}
	return min(d, b.Max)
}
