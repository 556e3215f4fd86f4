package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/internal/engine"
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

// plan is what one seed makes of the Job.
type plan struct {
	job         events.Job
	failPercent int
}

// World is one simulated cluster with its bus and workers.
type World struct {
	rand    *rand.Rand
	plan    plan
	rates   Rates
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
	frozen  bool // the nodes do nothing

	// Steps counts what happened, by name, for the run's summary.
	Steps map[string]int
}

// New makes the world of a seed. out, if not nil, gets a readable trace.
func New(seed uint64, f fn.Registered, rates Rates, out io.Writer) *World {
	w := &World{rand: rand.New(rand.NewPCG(seed, seed^0x9e3779b97f4a7c15)), rates: rates, fn: f, bus: newBus(), out: out,
		now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Steps: map[string]int{}}
	w.plan = w.choose()
	w.api = NewAPI(func() time.Time { return w.now })
	w.api.Emit = w.observe
	w.api.Refuse = w.refuse
	w.truth = newTruth(w)
	w.api.Check = w.truth
	for i := range 2 {
		w.workers = append(w.workers, &worker{id: i})
	}
	w.uid = w.api.CreateJob(w.plan.job).UID
	w.trace("user     creates the Job: %s", describe(w.plan))
	return w
}

// choose draws the Job of this world.
func (w *World) choose() plan {
	r := w.rand
	j := events.Job{Name: "pi", Parallelism: int32(1 + r.IntN(5)), BackoffLimit: int32(r.IntN(12)),
		Indexed: r.IntN(2) == 0, RestartsInPlace: r.IntN(5) == 0, ReplaceFailedOnly: r.IntN(4) == 0}
	if n := int32(r.IntN(9)); j.Indexed || n > 1 {
		j.Completions = &n
	}
	return plan{job: j, failPercent: []int{0, 5, 25, 60, 100}[r.IntN(5)]}
}

func describe(p plan) string {
	completions := "until one succeeds"
	if p.job.Completions != nil {
		completions = fmt.Sprintf("completions %d", *p.job.Completions)
	}
	return fmt.Sprintf("%s, parallelism %d, backoffLimit %d, indexed %v, restarts in place %v, replaces failed only %v; %d %% of its Pods fail",
		completions, p.job.Parallelism, p.job.BackoffLimit, p.job.Indexed, p.job.RestartsInPlace, p.job.ReplaceFailedOnly, p.failPercent)
}

func (w *World) trace(format string, args ...any) {
	if w.out != nil {
		fmt.Fprintf(w.out, "%s %s\n", w.now.Format("15:04:05.000"), fmt.Sprintf(format, args...))
	}
}

func (w *World) odds(per10k int) bool { return per10k > 0 && w.rand.IntN(10_000) < per10k }

// observe is the trigger's watch.
func (w *World) observe(key events.Key, e events.Event) {
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
	for uid, j := range w.api.jobs {
		seen[uid] = !j.Finished()
	}
	for _, p := range w.api.pods {
		if p.Held {
			seen[p.owner] = true
		}
	}
	seen[w.uid] = seen[w.uid] || w.api.jobs[w.uid] == nil
	for uid, needed := range seen {
		if needed {
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

// worker is one reconciler's turn in progress.
type worker struct {
	id      int
	asleep  time.Time
	held    []*message
	turn    *engine.Turn
	stage   stage
	effects []effect.Effect
	answers []engine.Answer
	calling effect.Effect // checked for lateness and not yet sent
	decided time.Time
	checked time.Time
	failed  error // why effects have to be repeated
}

type stage int

const (
	idle stage = iota
	loading
	deciding
	committing
	acting
)

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
	return w.live() || w.skip()
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

// work moves one worker one step on.
func (w *World) work(k *worker) bool {
	if k.asleep.After(w.now) {
		return false
	}
	ctx := context.Background()
	switch k.stage {
	case idle:
		return w.fetch(k)
	case loading:
		if err := k.turn.Load(ctx); err != nil {
			panic(err)
		}
		k.stage = deciding
	case deciding:
		if err := k.turn.Decide(w.now); err != nil {
			w.truth.fail("decide: %v", err)
			w.drop(k)
			return true
		}
		k.stage, k.decided = committing, w.now
	case committing:
		if err := k.turn.Commit(ctx); errors.Is(err, engine.ErrConflict) {
			w.trace("worker%d meets a conflict", k.id)
			k.stage = loading
			return true
		}
		if k.failed != nil { // the answers are remembered, and what failed is repeated later
			w.finish(k)
			return true
		}
		k.effects = slices.Clone(k.turn.Effects())
		w.rand.Shuffle(len(k.effects), func(i, j int) { k.effects[i], k.effects[j] = k.effects[j], k.effects[i] })
		k.stage = acting
	case acting:
		w.act(ctx, k)
	}
	return true
}

// fetch takes facts of one key: some of those that wait, in any order.
func (w *World) fetch(k *worker) bool {
	var free []*message
	for _, m := range w.bus.facts {
		if !m.until.After(w.now) {
			free = append(free, m)
		}
	}
	if len(free) == 0 {
		return false
	}
	w.rand.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
	key, n := free[0].key, 1+w.rand.IntN(4)
	var facts []events.Event
	for _, m := range free {
		if m.key == key && len(facts) < n {
			m.holder, m.until = k.id, w.now.Add(engine.AckWait)
			k.held, facts = append(k.held, m), append(facts, m.event)
		}
	}
	k.turn, k.stage = engine.NewTurn(w.fn, w.bus, key, facts...), loading
	w.Steps["turns"]++
	return true
}

// act does the worker's next effect in two steps, so that it may fall asleep between the look at the clock and the call.
func (w *World) act(ctx context.Context, k *worker) {
	if len(k.effects) == 0 {
		for _, a := range k.answers {
			k.turn.Answer(a)
		}
		k.answers, k.failed = nil, k.turn.Err()
		if k.turn.Again() {
			k.stage = deciding
			return
		}
		w.finish(k)
		return
	}
	e := k.effects[0]
	if k.calling == nil {
		ready := engine.ActorFunc(func(context.Context, events.Key, effect.Effect) ([]events.Event, error) { return nil, nil })
		if a := k.turn.Act(ctx, ready, e, w.now); a.Late {
			w.trace("worker%d drops %v as late", k.id, e)
			k.answers, k.effects = append(k.answers, a), k.effects[1:]
			return
		}
		k.calling, k.checked = e, w.now
		return
	}
	k.calling, k.effects = nil, k.effects[1:]
	k.answers = append(k.answers, w.call(ctx, k, e))
}

// call does an effect; now and then it fails, before or after the work.
func (w *World) call(ctx context.Context, k *worker, e effect.Effect) engine.Answer {
	w.Steps[e.Kind()]++
	if t, ok := e.(effect.SetTimer); ok {
		return engine.Answer{Err: w.bus.Set(ctx, k.turn.Key, t.Name, t.At)}
	}
	if k.checked.Sub(k.decided) > engine.Lateness {
		w.truth.fail("%v is done %v after it was decided", e, k.checked.Sub(k.decided))
	}
	if _, ok := e.(effect.CreatePod); ok && w.now.Sub(k.decided) > engine.Lateness {
		w.trace("worker%d slept between its look at the clock and the call", k.id)
		w.truth.zombies++
	}
	broken, before := w.odds(w.rates.Fail), w.rand.IntN(2) == 0
	if broken && before {
		w.trace("worker%d %v: fails", k.id, e)
		return engine.Answer{Err: engine.Retry{Err: errors.New("connection refused")}}
	}
	w.trace("worker%d %v", k.id, e)
	facts, err := w.api.Act(ctx, k.turn.Key, e)
	if broken {
		w.trace("worker%d hears nothing of it", k.id)
		return engine.Answer{Err: engine.Retry{Err: errors.New("timeout")}}
	}
	return engine.Answer{Facts: facts, Err: err}
}

// finish acknowledges. What could not be done is repeated in a second, because a timer on the bus says so.
func (w *World) finish(k *worker) {
	if k.failed != nil {
		_ = w.bus.Set(context.Background(), k.turn.Key, "again", w.now.Add(time.Second))
	}
	for _, m := range k.held {
		w.bus.remove(m)
	}
	*k = worker{id: k.id}
}

// drop forgets the worker's turn; the bus gives its facts to somebody else in time.
func (w *World) drop(k *worker) { *k = worker{id: k.id} }

// The length of a life, in steps.
const (
	roughSteps = 1200
	calmSteps  = 6000
	quietSteps = 60
)

// rest lets the world go on until nothing moves any more.
func (w *World) rest() error {
	for i := 0; w.Step(); i++ {
		if err := w.Check(); err != nil {
			return err
		}
		if i == calmSteps {
			return errors.New("never comes to rest")
		}
	}
	return nil
}

// reach lets the world rest and wants it in order then. What was missed may, very rarely, need the relist that the trigger
// does every ten minutes: a worker that lost its facts to another one and dies between commit and act leaves nobody to
// repeat its effects. The run counts these worlds.
func (w *World) reach(order func() error) error {
	if err := w.rest(); err != nil {
		return err
	}
	if order() == nil {
		return nil
	}
	w.happens(HealedByRelist, "trigger  relists: %v", order())
	w.relist()
	if err := w.rest(); err != nil {
		return err
	}
	return order()
}

// HealedByRelist names the step that counts worlds which came in order only after another relist.
const HealedByRelist = "healed by relist"

// Live lives through the world: rough weather; then calm, first with the nodes frozen to see that the fleet is what the
// Job asks for, then until everything has settled; then a little longer to see that it stays so. It returns the first law that is broken, and adds to steps what happened.
func Live(w *World, steps map[string]int) error {
	defer func() {
		for k, n := range w.Steps {
			if steps != nil {
				steps[k] += n
			}
		}
	}()
	for range roughSteps {
		moved := w.Step()
		if err := w.Check(); err != nil {
			return err
		}
		if !moved {
			break
		}
	}
	w.Calm()
	w.frozen = true
	for _, name := range w.api.podNames() {
		if w.rand.IntN(4) == 0 {
			w.strip(name)
		}
	}
	if err := w.reach(w.Steady); err != nil {
		return err
	}
	w.frozen = false
	if err := w.reach(w.Settled); err != nil {
		return err
	}
	before := w.api.version
	w.frozen = true
	w.relist()
	for i := 0; w.Step() && i < quietSteps; i++ {
		if err := w.Check(); err != nil {
			return err
		}
	}
	if w.api.version != before {
		return fmt.Errorf("came to rest and moved again: version %d, then %d", before, w.api.version)
	}
	return w.Settled()
}
