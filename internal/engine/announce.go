package engine

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/backoff"
	"github.com/jobstream/jobstream/functions/effect"
)

const (
	// announceTimeout is how long a turn waits for an announcement to be confirmed, which takes milliseconds: that of the bus
	// is longer, and whoever subscribes is no reason for a Job to wait.
	announceTimeout = time.Second

	// unsaid is the name of the engine's own timer of a key: to announce what nobody has confirmed.
	unsaid = "announce"
)

// hush is how the announcements of one key rest after a failure: 1 s doubling to 1 min while none is confirmed.
type hush struct {
	failed int
	until  time.Time
}

// announce tells whoever has subscribed. What can never be told is given up: to repeat it would help nobody.
func (r *Runner) announce(ctx context.Context, key events.Key, e effect.Announce) ([]events.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, announceTimeout)
	defer cancel()
	if err := r.cfg.Announcer.Announce(ctx, e.Event); err != nil {
		var p interface{ Permanent() bool }
		if !errors.As(err, &p) || !p.Permanent() {
			return nil, Unconfirmed{err}
		}
		r.cfg.Log.Error("an event can never be announced, and is given up", "function", r.cfg.Function.Name, "key", key.String(), "event", e.Event.String(), "error", err)
	}
	return []events.Event{events.Announced{ID: events.PublicID(e.Event)}}, nil
}

// untilUnconfirmed does effects, but of announcements none after the first that is not confirmed: hundreds of them, a second
// each, would keep the rest of the turn waiting.
func untilUnconfirmed(do ActorFunc) ActorFunc {
	var first atomic.Pointer[Unconfirmed]
	return func(ctx context.Context, key events.Key, e effect.Effect) ([]events.Event, error) {
		if !isAnnounce(e) {
			return do(ctx, key, e)
		}
		if unsaid := first.Load(); unsaid != nil {
			return nil, *unsaid
		}
		facts, err := do(ctx, key, e)
		if unsaid := (Unconfirmed{}); errors.As(err, &unsaid) {
			first.CompareAndSwap(nil, &unsaid)
		}
		return facts, err
	}
}

// reportDropped tells whoever runs us of announcements that will never be made.
func (r *Runner) reportDropped(key events.Key, e effect.ReportDropped) []events.Event {
	r.cfg.Log.Error("announcements were dropped: more are due than a state holds; does the bus take public events?",
		"function", r.cfg.Function.Name, "key", key.String(), "count", e.Count)
	if r.cfg.Dropped != nil {
		r.cfg.Dropped(r.cfg.Function.Name, e.Count)
	}
	return []events.Event{events.Announced{ID: e.ID}}
}

// listen notes how the announcements among the effects have fared: if one was not confirmed, they rest.
func (r *Runner) listen(key events.Key, effects []effect.Effect, answers []Answer) {
	if !slices.ContainsFunc(effects, isAnnounce) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	h := hush{failed: r.state(key).hush.failed + 1}
	failed := false
	for _, a := range answers {
		if unsaid := (Unconfirmed{}); errors.As(a.Err, &unsaid) {
			failed = true
			after, retry := backoff.API.Delay(h.failed), Retry{}
			if errors.As(a.Err, &retry) && retry.After > 0 {
				after = retry.After
			}
			h.until = time.Now().Add(after)
		}
	}
	if !failed {
		h = hush{}
	}
	r.state(key).hush = h
}

func isAnnounce(e effect.Effect) bool {
	_, ok := e.(effect.Announce)
	return ok
}

// audible leaves out announcements while those of the key rest, and sees to it that they are made afterwards.
func (r *Runner) audible(key events.Key, effects []effect.Effect) []effect.Effect {
	if !slices.ContainsFunc(effects, isAnnounce) {
		return effects
	}
	r.mu.Lock()
	rest := time.Until(r.state(key).hush.until)
	r.mu.Unlock()
	if rest <= 0 {
		return effects
	}
	r.wakeIn(key, rest)
	return slices.DeleteFunc(slices.Clone(effects), isAnnounce)
}

// repeat sees to it that an announcement is made again, by whoever has the key then. Its error means that nobody will, unless
// the facts come again. The timer on the bus, which may fire a second early, fires when we do not rest any more.
func (r *Runner) repeat(key events.Key, cause error) error {
	r.mu.Lock()
	rest := max(0, time.Until(r.state(key).hush.until))
	r.mu.Unlock()
	r.wakeIn(key, rest)
	if r.ctx.Err() == nil {
		r.cfg.Log.Warn("an announcement was not confirmed and will be repeated", "function", r.cfg.Function.Name, "key", key.String(), "after", rest.Round(time.Millisecond), "error", cause)
	}
	return r.cfg.Timers.Set(r.ctx, key, unsaid, r.cfg.Now().Add(rest+time.Second))
}
