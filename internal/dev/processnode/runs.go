package processnode

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

const (
	// configRetry is the wait before a container whose configuration was missing is tried again.
	configRetry = 2 * time.Second
	// killWait bounds the wait for killed processes when the node stops: SIGKILL takes effect at once unless a process
	// hangs in the kernel, which is not worth waiting for.
	killWait = 10 * time.Second
)

func (p *pod) signal(i int, sig syscall.Signal, level signalled) {
	p.containers[i].signalled = level
	p.handles[i].signal(sig)
}

// start runs a container, or notes why it cannot be run.
func (p *pod) start(ctx context.Context, i int) {
	c := &p.containers[i]
	id := fmt.Sprintf("process://%s/%s/%d", p.uid, c.name, c.runs)
	r := run{pod: p.object, container: c.spec, role: c.role, number: c.runs, id: id}
	h, err := p.launcher.launch(ctx, r, func(e exit) {
		p.post(func(in *inbox) { in.exits = append(in.exits, exitOfRun{i, e}) })
	})
	now := time.Now()
	switch {
	case err == nil:
		c.stage, c.started, c.id, c.signalled = running, now, id, notSignalled
		c.runs++
		p.handles[i] = h
		p.report.mark(now)
	case ctx.Err() != nil:
	case errors.As(err, &broken{}):
		p.log.Info("a container cannot be started", "pod", p.name, "container", c.name, "err", err)
		c.runs++
		p.ended(exitOfRun{i, exit{code: 128, reason: "StartError", message: err.Error(), started: now, finished: now, id: id}})
	default:
		p.log.Debug("a container must wait", "pod", p.name, "container", c.name, "err", err)
		c.due = now.Add(configRetry)
		if c.message != err.Error() {
			c.reason, c.message = "CreateContainerConfigError", err.Error()
			p.report.mark(now)
		}
	}
}

// ended notes the end of a run and when the next one is due, if there is to be one.
func (p *pod) ended(e exitOfRun) {
	c := &p.containers[e.container]
	c.stage, c.prior, c.exit = exited, c.exit, &e.exit
	c.again = c.role == sidecarRole || restarts(c.spec, p.object.Spec.RestartPolicy, e.exit.code)
	if !e.exit.started.IsZero() && e.exit.finished.Sub(e.exit.started) > 2*p.backoff.Max {
		c.failures = 0
	}
	delay := p.backoff.delay(c.failures)
	c.failures++
	c.due = e.exit.finished.Add(delay)
	c.reason = "CrashLoopBackOff"
	c.message = fmt.Sprintf("back-off %v restarting failed container=%s pod=%s_%s(%s)", delay, c.name, p.name.Name, p.name.Namespace, p.uid)
	p.report.mark(time.Now())
}

// abandon ends running processes when the node stops. It reports nothing: the next run of the node does.
func (p *pod) abandon() {
	for i := range p.containers {
		if p.containers[i].stage == running {
			p.handles[i].signal(syscall.SIGKILL)
		}
	}
	giveUp := time.NewTimer(killWait)
	defer giveUp.Stop()
	for {
		left := 0
		p.receive(time.Now())
		for i := range p.containers {
			if p.containers[i].stage == running {
				left++
			}
		}
		if left == 0 {
			return
		}
		select {
		case <-p.wake:
		case <-giveUp.C:
			return
		}
	}
}
