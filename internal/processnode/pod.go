package processnode

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const (
	// configRetry is the wait before a container whose configuration was missing is tried again.
	configRetry = 2 * time.Second
	// killWait bounds the wait for killed processes when the node stops: SIGKILL takes effect at once unless a process
	// hangs in the kernel, and for that nobody should wait.
	killWait = 10 * time.Second
)

// pod runs one Pod. One goroutine, run, owns everything but the inbox: others leave notes there and wake it.
type pod struct {
	uid      types.UID
	name     types.NamespacedName
	client   kubernetes.Interface
	launcher launcher
	slots    *slots // to run
	writes   *slots // to the API server
	backoff  Backoff
	delay    time.Duration // Config.StatusDelay
	ip       string
	log      *slog.Logger

	mu    sync.Mutex
	inbox inbox
	wake  chan struct{} // holds one

	object     *v1.Pod
	gone       bool
	admitted   bool // holds a slot
	containers []container
	handles    []handle
	stop       stopOrder
	started    time.Time
	report     report
}

// inbox is what has happened since the pod's goroutine has last looked.
type inbox struct {
	object *v1.Pod
	gone   bool
	exits  []exitOfRun
	wrote  []written
}

type exitOfRun struct {
	container int
	exit      exit
}

// post leaves a note and wakes the goroutine.
func (p *pod) post(note func(*inbox)) {
	p.mu.Lock()
	note(&p.inbox)
	p.mu.Unlock()
	p.nudge()
}

func (p *pod) nudge() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// run takes the Pod from its first container to its last report. It returns when the Pod is at its end and the API
// server knows, when the object is gone and its processes too, or when ctx ends.
func (p *pod) run(ctx context.Context) {
	defer p.slots.give(p.uid)
	defer p.writes.give(p.uid)
	for {
		p.receive(time.Now())
		s := p.advance(ctx)
		if s.done {
			p.slots.give(p.uid)
		}
		next := p.reportIfDue(ctx, s.done)
		switch {
		case ctx.Err() != nil:
			p.abandon()
			return
		case s.done && p.gone:
			return
		case s.done && p.reported():
			p.launcher.rest(p.uid)
			p.removeIfDeleted(ctx, p.object)
			return
		}
		p.sleep(ctx, earliest(s.wake, next, p.deadline()))
	}
}

func (p *pod) sleep(ctx context.Context, until time.Time) {
	var alarm <-chan time.Time
	if !until.IsZero() {
		t := time.NewTimer(time.Until(until))
		defer t.Stop()
		alarm = t.C
	}
	select {
	case <-ctx.Done():
	case <-p.wake:
	case <-alarm:
	}
}

// receive takes the notes and turns them into state.
func (p *pod) receive(now time.Time) {
	p.mu.Lock()
	in := p.inbox
	p.inbox = inbox{}
	p.mu.Unlock()
	for _, w := range in.wrote {
		p.settle(w, now)
	}
	if in.object != nil {
		p.take(in.object)
	}
	p.gone = p.gone || in.gone
	for _, e := range in.exits {
		p.ended(e)
	}
	if stop := p.stopNow(now); stop != p.stop {
		p.stop = stop
		p.report.mark(now)
	}
}

// take keeps the newer of two sights of the object.
func (p *pod) take(object *v1.Pod) {
	if version(object) >= version(p.object) {
		p.object = object
	}
}

// stopNow is the node's reason to end the Pod, if there is one. The first reason stays; a later one can only hasten it.
func (p *pod) stopNow(now time.Time) stopOrder {
	stop := p.stop
	hasten := func(grace time.Duration) {
		if !stop.given() {
			stop.at, stop.grace = now, grace
		}
		stop.grace = min(stop.grace, grace)
	}
	if d := p.deadline(); !stop.given() && !d.IsZero() && !now.Before(d) {
		stop = stopOrder{
			at: now, grace: grace(&p.object.Spec), reason: "DeadlineExceeded",
			message: "Pod was active on the node longer than the specified deadline",
		}
	}
	if p.object.DeletionTimestamp != nil && p.object.DeletionGracePeriodSeconds != nil {
		hasten(time.Duration(*p.object.DeletionGracePeriodSeconds) * time.Second)
	}
	if p.gone {
		hasten(0)
	}
	return stop
}

// deadline is when activeDeadlineSeconds end the Pod.
func (p *pod) deadline() time.Time {
	s := p.object.Spec.ActiveDeadlineSeconds
	if s == nil || p.stop.given() {
		return time.Time{}
	}
	return p.started.Add(time.Duration(*s) * time.Second)
}

// advance does what there is to do now and returns what is left: nothing but waiting.
func (p *pod) advance(ctx context.Context) steps {
	for {
		now := time.Now()
		s := decide(p.containers, p.stop, grace(&p.object.Spec), now)
		if !s.any() || ctx.Err() != nil {
			return s
		}
		if len(s.start) > 0 && !p.admitted {
			if p.admitted = p.slots.take(p.uid, askedByPod, p.nudge); !p.admitted {
				return steps{}
			}
		}
		for _, i := range s.start {
			p.start(ctx, i)
		}
		for _, i := range s.term {
			p.signal(i, syscall.SIGTERM, termed)
		}
		for _, i := range s.kill {
			p.signal(i, syscall.SIGKILL, killed)
		}
	}
}

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

// abandon ends what runs, for the node stops. Nothing is reported: the next life of the node will do that.
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

// clear drops what only a running Pod needs.
func (p *pod) clear() { p.object, p.containers, p.handles = nil, nil, nil }

// grace is the Pod's termination grace period.
func grace(spec *v1.PodSpec) time.Duration {
	if spec.TerminationGracePeriodSeconds == nil {
		return 30 * time.Second // the API server's default
	}
	return time.Duration(*spec.TerminationGracePeriodSeconds) * time.Second
}

// earliest of the times that are set.
func earliest(times ...time.Time) time.Time {
	var out time.Time
	for _, t := range times {
		if !t.IsZero() && (out.IsZero() || t.Before(out)) {
			out = t
		}
	}
	return out
}
