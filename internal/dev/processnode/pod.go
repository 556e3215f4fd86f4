package processnode

import (
	"context"
	"log/slog"
	"sync"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// pod runs one Pod. One goroutine, run, owns everything but the inbox: other goroutines post into it and wake run.
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

// inbox collects what has happened since the goroutine last looked.
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

// post updates the inbox and wakes the goroutine.
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

// run runs the Pod from its first container to its last report. It returns when the Pod has ended and the API server has its
// status, when the object and its processes are gone, or when ctx ends.
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

// take keeps the newer of two observations of the object.
func (p *pod) take(object *v1.Pod) {
	if version(object) >= version(p.object) {
		p.object = object
	}
}

// stopNow returns the node's reason to end the Pod, if there is one. The first reason stays; a later one can only shorten the
// time.
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

// deadline returns when activeDeadlineSeconds end the Pod.
func (p *pod) deadline() time.Time {
	s := p.object.Spec.ActiveDeadlineSeconds
	if s == nil || p.stop.given() {
		return time.Time{}
	}
	return p.started.Add(time.Duration(*s) * time.Second)
}

// advance does all that can be done now and returns what to wait for.
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
