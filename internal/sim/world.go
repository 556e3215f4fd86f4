package sim

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/functions/job"
	"github.com/jobstream/jobstream/functions/scheduledjob"
	"github.com/jobstream/jobstream/internal/zone"
)

// Rates are how often each fault occurs, per 10,000 steps. The zero value is a world without faults.
type Rates struct {
	Repeat   int // a fact is published twice
	Crash    int // a turn ends between two steps, with unknown progress
	Sleep    int // a turn pauses for a while, and continues with its old plans
	Member   int // a reconciler joins, leaves, dies, is stopped, misses heartbeats, or has its clock set
	Meddle   int // a user does something
	Lose     int // the state bucket is lost
	Wipe     int // the whole bus is lost: facts, timers, state, heartbeats
	Gap      int // the trigger sees nothing for a while, then relists
	Fail     int // an API call fails, before or after it has done the work
	Relist   int // the trigger relists without need, as it does every ten minutes
	Quota    int // the API server starts or stops refusing Pods
	RestTime int // time jumps by up to a minute
	Unknown  int // a reconciler cannot decode a fact, since a newer trigger has published it
}

// Rough is a world worse than any real one.
var Rough = Rates{Repeat: 1500, Crash: 100, Sleep: 120, Member: 90, Meddle: 60, Lose: 12, Wipe: 8, Gap: 15, Relist: 30, Fail: 300, Quota: 20, RestTime: 30, Unknown: 400}

// World is one simulated cluster with its bus, its reconcilers, and one or several Jobs.
type World struct {
	rand     *rand.Rand
	rates    Rates
	limits   job.Limits
	versions []map[string]fn.Registered // the functions that a reconciler of each version has, the oldest first
	bus      *bus
	fleet    *fleet
	tenants  []*tenant
	// scheduler is nil in worlds without a ScheduledJob. The tenants that it creates are in tenants, too.
	scheduler *scheduler
	wrote     func(before, after events.Job)
	now       time.Time
	gap       bool // the trigger sees nothing
	sparing   bool // the trigger publishes no redundant observation
	lateLimit bool // a limit was set late: only a list shows the Pods that it is about
	quota     bool // Pods are refused
	out       io.Writer
	lists     int
	saves     int
	share     int  // how many Pods fit into one message, 0 for any number
	calm      bool // no more faults
	calmAt    time.Time
	frozen    bool      // the nodes do nothing
	decided   time.Time // when the effect in progress was decided, by the clock of the worker that decided it

	// Steps counts what happened, by name, for the summary of the run.
	Steps map[string]int
	// Rows are the ids of the rows of the behaviour table that this world has exercised.
	Rows map[string]bool
}

// New creates the world of a seed for a function made with the default limits. out, if not nil, receives a readable trace.
func New(seed uint64, f fn.Registered, rates Rates, out io.Writer) *World {
	w := newWorld(seed, rates, out)
	w.limits = job.DefaultLimits()
	w.know(f)
	w.begin()
	return w
}

// NewLimited is New for a function made with limits that the seed draws, too. Some worlds have two versions of it at once.
func NewLimited(seed uint64, make func(job.Limits) fn.Function[job.State], rates Rates, out io.Writer) *World {
	w := newWorld(seed, rates, out)
	w.limits = chooseLimits(w.rand, w.has(limited))
	w.limits.AnnouncePods = seed%2 == 0 // from the seed, without a draw: existing worlds stay the same
	f := make(w.limits)
	fs := []fn.Registered{fn.Register(f)}
	s, scheduled := scheduledjob.New(zone.Load), w.rand.IntN(4) == 0
	if scheduled {
		fs = append(fs, fn.Register(s))
	}
	w.know(fs...)
	if w.rand.IntN(3) == 0 {
		f.Version++
		s.Version++
		w.know(append([]fn.Registered{fn.Register(f)}, fn.Register(s))[:len(fs)]...)
	}
	w.begin()
	return w
}

// know adds a version.
func (w *World) know(fs ...fn.Registered) {
	version := map[string]fn.Registered{}
	for _, f := range fs {
		version[f.Name] = f
	}
	w.versions = append(w.versions, version)
}

// namespaces are those of the world's Jobs, one each.
var namespaces = []string{"default", "blue", "red"}

func newWorld(seed uint64, rates Rates, out io.Writer) *World {
	w := &World{rand: rand.New(rand.NewPCG(seed, seed^0x9e3779b97f4a7c15)), rates: rates, bus: newBus(), out: out,
		now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Steps: map[string]int{}, Rows: map[string]bool{}}
	w.bus.crossed = w.crossed
	w.bus.tight = func(events.Key) int { return 0 }
	if seed%4 == 2 { // without a draw
		w.share = 1 + int(seed/4%3)
	}
	w.sparing = seed/8%2 == 0 // the others show that each function also bears what a trigger need not publish
	w.bus.wired = seed%8 == 3 // in some worlds only, since encoding takes time
	if seed%8 == 5 {          // without a draw: existing worlds stay the same
		w.bus.tight = w.tight
	}
	jobs := 1
	if w.rand.IntN(2) == 0 {
		w.fleet = &fleet{World: w}
		jobs += w.rand.IntN(len(namespaces))
	}
	for _, namespace := range namespaces[:jobs] {
		w.tenants = append(w.tenants, newTenant(w, namespace, choose(w.rand)))
	}
	return w
}

// crossed checks that no version overwrites the state of a newer one; it may forget that of an older one.
func (w *World) crossed(key events.Key, was, is int) {
	w.happens("upgraded", "bus      the state of %s goes from version %d to %d", key, was, is)
	if t := w.of(key); is < was {
		t.fail("version %d writes over the state of version %d of %s", is, was, key)
	} else {
		t.forgot()
	}
}

// tight makes the bus refuse large states now and then.
func (w *World) tight(events.Key) int {
	if w.saves++; w.calm || w.saves%100 < 70 {
		return 0
	}
	return 1000 + w.saves/100%5*200
}

// begin starts the reconcilers and creates the Jobs.
func (w *World) begin() {
	w.trace("world    limits %+v", w.limits)
	if w.fleet == nil {
		w.fleet = crowd(w)
	} else {
		w.fleet.begin()
	}
	for _, t := range w.tenants {
		t.begin()
	}
	if _, known := w.versions[0][scheduledjob.Name]; known {
		w.scheduler = newScheduler(w)
	}
}

// namespace is what a key's namespace has to do, whether it has a Job or a ScheduledJob.
type namespace interface {
	call(ctx context.Context, k *worker, e effect.Effect, torn bool) ([]events.Event, error)
	trace(format string, args ...any)
	fail(format string, args ...any)
	forgot()
	late(e effect.Effect)
}

// anyTenant draws one; nil if there is none yet.
func (w *World) anyTenant() *tenant {
	if len(w.tenants) == 0 {
		return nil
	}
	return w.tenants[w.rand.IntN(len(w.tenants))]
}

// of returns the namespace of the key.
func (w *World) of(key events.Key) namespace {
	if key.Namespace == shop {
		return w.scheduler
	}
	for _, t := range w.tenants {
		if t.api.Namespace == key.Namespace {
			return t
		}
	}
	panic("there is no namespace " + key.Namespace)
}

func (w *World) has(f feature) bool {
	for _, t := range w.tenants {
		if t.plan.features[f] {
			return true
		}
	}
	return false
}

// Watch calls f with every status write that the API server stores: the Job before it and after.
func (w *World) Watch(f func(before, after events.Job)) {
	for _, t := range w.tenants {
		t.api.Wrote = f
	}
	w.wrote = f
}

func (w *World) trace(format string, args ...any) {
	if w.out != nil {
		fmt.Fprintf(w.out, "%s %s\n", w.now.Format("15:04:05.000"), fmt.Sprintf(format, args...))
	}
}

func (w *World) odds(per10k int) bool { return per10k > 0 && w.rand.IntN(10_000) < per10k }

// relist is what the trigger does after a gap.
func (w *World) relist() {
	w.gap = false
	w.lists++
	for _, t := range w.tenants {
		t.relist()
	}
	if w.scheduler != nil {
		w.scheduler.relist()
	}
}

func (w *World) refuse(effect.CreatePod) (reason, message string) {
	if w.quota {
		return "Forbidden", "exceeded quota: compute"
	}
	return "", ""
}

// Step makes one random thing happen. It reports whether anything could.
func (w *World) Step() bool {
	w.now = w.now.Add(time.Duration(1+w.rand.IntN(80/len(w.fleet.hands()))) * time.Millisecond)
	if w.fault() {
		return true
	}
	w.fleet.pass()
	w.bus.fire(w.now)
	if w.scheduler != nil {
		w.scheduler.notify()
	}
	if w.rand.IntN(3) == 0 && w.live() {
		return true
	}
	hands := w.fleet.hands()
	first := w.rand.IntN(len(hands))
	for i := range hands {
		if w.work(hands[(first+i)%len(hands)]) {
			return true
		}
	}
	return w.live() || w.skip() || w.busy()
}

// live moves the cluster: Pods, the garbage collector, and what else needs no reconciler.
func (w *World) live() bool {
	if w.frozen || len(w.tenants) == 0 {
		return false
	}
	first := w.rand.IntN(len(w.tenants))
	for i := range w.tenants {
		if w.tenants[(first+i)%len(w.tenants)].live() {
			return true
		}
	}
	return false
}

// busy reports whether slow Pods still run.
func (w *World) busy() bool {
	for _, t := range w.tenants {
		if t.plan.slow && !w.calm && t.unfinished() != nil {
			return true
		}
	}
	return false
}

// skip advances time to the next thing that waits for it.
func (w *World) skip() bool {
	next := w.bus.next()
	sooner := func(t time.Time) {
		if t.After(w.now) && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	for _, m := range w.bus.facts {
		sooner(m.until)
	}
	w.fleet.waits(sooner)
	if next.IsZero() {
		return false
	}
	if next.After(w.now) {
		w.now = next
	}
	return true
}
