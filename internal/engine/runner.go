package engine

import (
	"context"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/internal/fair"
)

// turnShare is how many times as many turns as are free one namespace may take: alone it gets 15 of 16 parts. The next one that
// comes finds a turn free, even where an API server keeps all others waiting.
const turnShare = 15

// Config is what a Runner needs. All fields but Turned and Dropped are required, except where a default is named.
type Config struct {
	Function  fn.Registered
	Store     Store
	Actor     Actor
	Timers    Timers
	Announcer Announcer
	Log       *slog.Logger
	// Keys is how many keys take their turns at once; default 64. Namespaces share them: see turnShare.
	Keys int
	// Now is the clock; default time.Now. Tests offset it.
	Now func() time.Time
	// Newest says that no live reconciler reads newer states of the function than this one: a state of a newer version is
	// then what a rollback has left behind. It must answer at once; nil means never.
	Newest func(function string) bool
	// Turned, if not nil, hears of every finished turn, for metrics.
	Turned func(Turned)
	// Dropped, if not nil, hears of announcements that will never be made, for metrics.
	Dropped func(function string, count int)
}

// Turned is one finished turn.
type Turned struct {
	Function string
	Key      events.Key
	// Heard is what woke it: what it folded at first. The answers to its effects are not among them.
	Heard []events.Event
	// Rounds is how often it decided, Effects how many effects it did.
	Rounds, Effects int
	// Tried has the first effect of each kind that it decided on: what the turn was about.
	Tried    []effect.Effect
	Duration time.Duration
	// Err is why the facts go back to the bus; nil where they were acknowledged.
	Err error
}

// Runner takes turns for many keys: never two of one key at once, and for each all that has arrived for it together.
type Runner struct {
	cfg    Config
	slots  *fair.Slots // turns, shared by namespaces
	mu     sync.Mutex
	keys   [events.Partitions]map[events.Key]*keyState // by partition, since one that is put down must not wait for a look at all others
	left   [events.Partitions]bool                     // partitions that somebody else serves
	queued [events.Partitions]int                      // facts that no turn has folded
	// clearing says that room will be made in the partition.
	clearing [events.Partitions]bool
	idle     *sync.Cond // a turn has ended
	done     sync.WaitGroup
	ctx      context.Context
}

// keyState is what the runner knows of one key.
type keyState struct {
	waiting []Delivery // facts that no turn has folded
	working []Delivery // facts of the running turn
	// remembering has facts that are folded beside a turn that takes too long.
	remembering []Delivery
	busy        bool
	asked       time.Time // since when it waits for a turn; zero while one runs, or none is wanted
	began       time.Time // of the running turn
	wake        bool      // take a turn, also without a fact
	wakeup      *time.Timer
	wakesAt     time.Time // when wakeup fires
	timer       time.Time // what the timer on the bus was last set to
	failed      int       // turns in a row in which nothing could be done
	inVain      int       // turns in which everything was done in vain, since the last progress
	pause       time.Time // effects rest until then
	backed      bool      // something on the bus wakes the key then: a timer, or a fact that was given back
}

// NewRunner returns a Runner that takes deliveries until ctx ends; Wait returns once it has put everything down.
func NewRunner(ctx context.Context, cfg Config) *Runner {
	if cfg.Keys <= 0 {
		cfg.Keys = 64
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Newest == nil {
		cfg.Newest = func(string) bool { return false }
	}
	r := &Runner{cfg: cfg, slots: fair.NewSlots(cfg.Keys, turnShare), ctx: ctx}
	for partition := range r.keys {
		r.keys[partition] = map[events.Key]*keyState{}
	}
	r.idle = sync.NewCond(&r.mu)
	r.done.Go(r.keepAlive)
	return r
}

// Wait returns when ctx has ended and no turn is running. What was not finished is delivered again, to somebody.
func (r *Runner) Wait() { r.done.Wait() }

// Deliver takes a fact; it never blocks. The turn that folds it acknowledges it or gives it back.
func (r *Runner) Deliver(d Delivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.state(d.Key())
	r.enqueue(d.Key(), k, d)
	r.start(d.Key(), k)
}

// Wake makes the key take a turn without a new fact.
func (r *Runner) Wake(key events.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left[key.Partition()] {
		return // whoever serves it has what wakes it
	}
	k := r.state(key)
	k.wake = true
	r.start(key, k)
}

func (r *Runner) state(key events.Key) *keyState {
	keys := r.keys[key.Partition()]
	k := keys[key]
	if k == nil {
		k = &keyState{}
		keys[key] = k
	}
	return k
}

// states are those of all keys. The mutex is held meanwhile.
func (r *Runner) states() iter.Seq2[*keyState, events.Key] {
	return func(yield func(*keyState, events.Key) bool) {
		for _, keys := range r.keys {
			for key, k := range keys {
				if !yield(k, key) {
					return
				}
			}
		}
	}
}

func (r *Runner) start(key events.Key, k *keyState) {
	if k.busy || r.ctx.Err() != nil {
		return
	}
	k.busy, k.asked = true, time.Now()
	r.done.Go(func() { r.serve(key, k) })
}

// serve takes turns for the key while anything is left to do.
func (r *Runner) serve(key events.Key, k *keyState) {
	for {
		if r.slots.Acquire(r.ctx, key.Namespace) != nil {
			return // the end
		}
		r.mu.Lock()
		k.asked = time.Time{}
		if r.left[key.Partition()] && len(k.waiting) == 0 { // the partition was put down while we waited
			r.slots.Release(key.Namespace)
			r.end(key, k)
			r.mu.Unlock()
			return
		}
		batch := r.pick(key, k)
		k.working, k.wake, k.began = batch, false, time.Now()
		quiet := k.began.Before(k.pause)
		r.mu.Unlock()
		r.turn(key, batch, quiet)
		r.slots.Release(key.Namespace)
		if quiet {
			r.wakeIn(key, time.Until(k.pause))
		}
		r.mu.Lock()
		k.working, k.began = nil, time.Time{}
		r.idle.Broadcast()
		if len(k.waiting) == 0 && !k.wake || r.ctx.Err() != nil {
			r.end(key, k)
			r.mu.Unlock()
			return
		}
		k.asked = time.Now()
		r.mu.Unlock()
	}
}

// end is when nobody serves the key any more.
func (r *Runner) end(key events.Key, k *keyState) {
	k.busy = false
	r.clear(key, k)
}

// clear removes the state of a key that has nothing to wait for.
func (r *Runner) clear(key events.Key, k *keyState) {
	if r.left[key.Partition()] {
		k.stopWakeup()
	}
	if !k.busy && k.wakeup == nil && len(k.waiting) == 0 && len(k.remembering) == 0 {
		delete(r.keys[key.Partition()], key)
	}
}

// keepAlive asks the bus for more time for every fact that is in our hands.
func (r *Runner) keepAlive() {
	tick := time.NewTicker(AckWait / 3)
	defer tick.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-tick.C:
		}
		r.mu.Lock()
		var inHand []Delivery
		for k := range r.states() {
			inHand = append(append(append(inHand, k.waiting...), k.working...), k.remembering...)
		}
		r.mu.Unlock()
		r.rememberWaiting()
		for _, d := range inHand {
			d.InProgress()
		}
	}
}
