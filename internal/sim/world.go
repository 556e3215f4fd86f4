package sim

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/functions/job"
)

// Rates are how often things go wrong, per 10,000 steps. The zero value is a world where nothing does.
type Rates struct {
	Repeat   int // a fact is published twice
	Crash    int // a worker dies and forgets
	Sleep    int // a worker stops for a while, and wakes with its old plans
	Meddle   int // a user does something
	Lose     int // the state bucket is lost
	Wipe     int // the whole bus is lost: facts, timers, state
	Gap      int // the trigger sees nothing for a while, then relists
	Fail     int // an API call fails, before or after it has done the work
	Relist   int // the trigger relists without need, as it does every ten minutes
	Quota    int // the API server begins or ceases to refuse Pods
	RestTime int // the clock jumps by up to a minute
}

// Rough is a world worse than any real one.
var Rough = Rates{Repeat: 1500, Crash: 100, Sleep: 120, Meddle: 60, Lose: 12, Wipe: 8, Gap: 15, Relist: 30, Fail: 300, Quota: 20, RestTime: 30}

// World is one simulated cluster with its bus and workers.
type World struct {
	rand    *rand.Rand
	plan    plan
	rates   Rates
	limits  job.Limits
	fn      fn.Registered
	api     *API
	bus     *bus
	workers []*worker
	truth   *truth
	now     time.Time
	uid     types.UID
	gap     bool // the trigger is blind
	quota   bool // Pods are refused
	out     io.Writer
	lists   int
	calm    bool // nothing goes wrong any more
	calmAt  time.Time
	frozen  bool      // the nodes do nothing
	decided time.Time // when the effect that is being done was decided

	strangers int // Pods that users have made

	// Steps counts what happened, by name, for the run's summary.
	Steps map[string]int
	// Rows are the ids of the rows of the behaviour table that this world has exercised.
	Rows map[string]bool
}

// New makes the world of a seed for a function that was made with the default limits. out, if not nil, gets a readable
// trace.
func New(seed uint64, f fn.Registered, rates Rates, out io.Writer) *World {
	w := newWorld(seed, rates, out)
	w.limits, w.fn = job.DefaultLimits(), f
	w.begin()
	return w
}

// NewLimited is New for a function that is made with limits which the seed decides, too.
func NewLimited(seed uint64, make func(job.Limits) fn.Registered, rates Rates, out io.Writer) *World {
	w := newWorld(seed, rates, out)
	w.limits = chooseLimits(w.rand, w.plan)
	w.fn = make(w.limits)
	w.begin()
	return w
}

func newWorld(seed uint64, rates Rates, out io.Writer) *World {
	w := &World{rand: rand.New(rand.NewPCG(seed, seed^0x9e3779b97f4a7c15)), rates: rates, bus: newBus(), out: out,
		now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Steps: map[string]int{}, Rows: map[string]bool{}}
	w.plan = choose(w.rand)
	w.api = NewAPI(func() time.Time { return w.now })
	w.api.Emit = w.observe
	w.api.Refuse = w.refuse
	w.truth = newTruth(w)
	w.api.Check = w.truth
	w.api.Announced = w.truth.announced
	for i := range 2 {
		w.workers = append(w.workers, &worker{id: i})
	}
	return w
}

// begin creates the Job.
func (w *World) begin() {
	if w.has(parameters) && w.rand.IntN(2) == 0 {
		w.editValues()
	}
	w.api.Lingering = w.has(lingering)
	j := w.plan.job
	if w.plan.heirlooms > 0 {
		j.Status.StartTime = &metav1.Time{Time: w.now}
	}
	w.uid = w.api.CreateJob(j).UID
	w.trace("user     creates the Job: %s", describe(w.plan))
	w.trace("world    limits %+v", w.limits)
	most := int(j.Parallelism)
	if j.Completions != nil {
		most = min(most, int(*j.Completions))
	}
	for i := range min(w.plan.heirlooms, most) {
		p := events.Pod{Name: fmt.Sprintf("heirloom-%d", i), Owner: j.Name, Serial: events.NoSerial, Index: events.NoIndex, Phase: events.Pending, Held: true}
		if j.Indexed {
			p.Index = i
		}
		if j.Selector != nil {
			p.Labels = j.Selector.MatchLabels
		}
		p = w.api.AddPod(w.uid, p)
		w.truth.made(p, w.uid)
		w.trace("world    an older version has made %s", p.Name)
	}
}

// Watch tells f of every status write that the API server stores: the Job before it and after.
func (w *World) Watch(f func(before, after events.Job)) { w.api.Wrote = f }

func (w *World) trace(format string, args ...any) {
	if w.out != nil {
		fmt.Fprintf(w.out, "%s %s\n", w.now.Format("15:04:05.000"), fmt.Sprintf(format, args...))
	}
}

func (w *World) odds(per10k int) bool { return per10k > 0 && w.rand.IntN(10_000) < per10k }

// observe is the trigger's watch.
func (w *World) observe(key events.Key, e events.Event) {
	w.truth.happened(e)
	if w.gap {
		return
	}
	w.bus.publish(key, e)
	if w.odds(w.rates.Repeat) {
		w.bus.publish(key, e)
	}
}

// relist is what the trigger does after a gap: one roster for every Job that may need one.
func (w *World) relist() {
	w.gap = false
	w.lists++
	seen := map[types.UID]bool{}
	for uid, j := range w.api.jobs { // one that has finished may have to be deleted yet, or failed Pods of it, or announced
		seen[uid] = !j.Finished() || j.TTLSecondsAfterFinished != nil || j.Wishes.FailedPodsLimit != nil || w.now.Sub(j.FinishedAt()) < events.ReannounceWindow
	}
	for _, p := range w.api.pods {
		if uid := w.api.hears(p); p.Held && uid != "" {
			seen[uid] = true
		}
	}
	seen[w.uid] = seen[w.uid] || w.api.jobs[w.uid] == nil
	for _, uid := range slices.Sorted(maps.Keys(seen)) {
		if seen[uid] {
			w.bus.publish(Key(uid), w.api.List(fmt.Sprintf("relist-%d", w.lists), uid))
		}
	}
}

func (w *World) refuse(effect.CreatePod) (reason, message string) {
	if w.quota {
		return "Forbidden", "exceeded quota: compute"
	}
	return "", ""
}

// Step lets one random thing happen. It reports whether anything could.
func (w *World) Step() bool {
	w.now = w.now.Add(time.Duration(1+w.rand.IntN(40)) * time.Millisecond)
	if w.fault() {
		return true
	}
	w.bus.ring(w.now)
	if w.rand.IntN(3) == 0 && w.live() {
		return true
	}
	first := w.rand.IntN(len(w.workers))
	for i := range w.workers {
		if w.work(w.workers[(first+i)%len(w.workers)]) {
			return true
		}
	}
	return w.live() || w.skip() || w.plan.slow && !w.calm && w.unfinished() != nil
}

// skip lets time pass to the next thing that waits for it.
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
	for _, k := range w.workers {
		sooner(k.asleep)
	}
	if next.IsZero() {
		return false
	}
	if next.After(w.now) {
		w.now = next
	}
	return true
}
