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

// turnShare is how many turns one namespace may have for each free turn: alone it gets 15 of 16 parts. The next namespace finds a
// turn free, even if an API server delays all running ones.
const turnShare = 15

// Config configures a Runner. All fields but Turned and Dropped are required, except where a default is named.
type Config struct {
	Function  fn.Registered
	Store     Store
	Actor     Actor
	Timers    Timers
	Announcer Announcer
	Log       *slog.Logger
	// Keys is how many keys take their turns at the same time; default 64. Namespaces share them: see turnShare.
	Keys int
	// Now is the clock; default time.Now. Tests offset it.
	Now func() time.Time
	// Newest reports whether no live reconciler reads newer states of the function than this one: a state of a newer version was
	// then left behind by a rollback. It must return at once; nil means never.
	Newest func(function string) bool
	// Turned, if not nil, is called after every turn, for metrics.
	Turned func(Turned)
	// Dropped, if not nil, is called for announcements that will never be made, for metrics.
	Dropped func(function string, count int)
}

// Turned is one finished turn.
type Turned struct {
	Function string
	Key      events.Key
	// Facts has the facts that it folded first, and that woke it. The answers to its effects, and what has arrived meanwhile, are not
	// among them.
	Facts []events.Event
	// Rounds is the number of its decisions, Effects the number of effects that it did.
	Rounds, Effects int
	// Tried has the first effect of each kind among its decisions, to show what the turn was about.
	Tried []effect.Effect
	// Duration is without the time that it has let other turns go first.
	Duration time.Duration
	// Err is why the facts go back to the bus; nil if they were acknowledged.
	Err error
}

// Runner takes turns for many keys, never two of one key at the same time. A turn folds all facts that have arrived for its key.
type Runner struct {
	cfg    Config
	recent *Recent     // cfg.Store
	slots  *fair.Slots // turns, shared by namespaces
	mu     sync.Mutex
	keys   [events.Partitions]map[events.Key]*keyState // by partition, so that Release need not look at all others
	left   [events.Partitions]bool                     // partitions that other reconcilers serve
	queued [events.Partitions]int                      // facts that no turn has folded, or whose turn lets others go first
	// clearing reports whether makeRoom is due for the partition.
	clearing [events.Partitions]bool
	idle     *sync.Cond // a turn has ended
	done     sync.WaitGroup
	ctx      context.Context
}

// keyState is the runner's state of one key.
type keyState struct {
	waiting []Delivery // facts that no turn has folded
	working []Delivery // facts of the running turn
	// held is how many of them count as queued, since the turn lets others go first; part then ends its wait, see Runner.part.
	held int
	part context.CancelFunc
	// remembering has facts that are being folded beside a turn that takes too long.
	remembering []Delivery
	busy        bool
	asked       time.Time // start of the wait for a turn; zero while one runs, or none is wanted
	began       time.Time // of the running turn
	wake        bool      // take a turn, also without a fact
	wakeup      *time.Timer
	wakesAt     time.Time // when wakeup fires
	timer       time.Time // what the timer on the bus was last set to
	failed      int       // turns in a row in which nothing could be done
	unsaved     int       // turns in a row that the bus failed
	inVain      int       // turns in which everything was done in vain, since the last progress
	pause       time.Time // the end of the effects' backoff
	backed      bool      // a timer on the bus wakes the key then
}

// NewRunner returns a Runner that takes deliveries until ctx ends; Wait returns once it has stopped all work.
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
	recent := NewRecent(cfg.Store)
	cfg.Store = recent
	r := &Runner{cfg: cfg, recent: recent, slots: fair.NewSlots(cfg.Keys, turnShare), ctx: ctx}
	for partition := range r.keys {
		r.keys[partition] = map[events.Key]*keyState{}
	}
	r.idle = sync.NewCond(&r.mu)
	r.done.Go(r.keepAlive)
	return r
}

// Wait returns when ctx has ended and no turn is running. The bus delivers unfinished facts again, to any reconciler.
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
		return // the reconciler that serves it gets what wakes it
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

// states iterates over all keys, with the mutex held.
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
			return // the context has ended
		}
		r.mu.Lock()
		k.asked = time.Time{}
		if r.left[key.Partition()] && len(k.waiting) == 0 { // the partition was released while serve waited
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

// end records that no goroutine serves the key any more.
func (r *Runner) end(key events.Key, k *keyState) {
	k.busy = false
	r.clear(key, k)
}

// clear drops the keyState of a key that waits for nothing.
func (r *Runner) clear(key events.Key, k *keyState) {
	if r.left[key.Partition()] {
		k.stopWakeup()
	}
	if !k.busy && k.wakeup == nil && len(k.waiting) == 0 && len(k.remembering) == 0 {
		delete(r.keys[key.Partition()], key)
	}
}

// keepAlive asks the bus for more time for every fact that this process holds.
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
