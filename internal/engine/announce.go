package engine

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// announceTimeout is how long a turn waits for an announcement to be confirmed, which takes milliseconds: that of the bus
// is longer, and subscribers are no reason for a Job to wait.
const announceTimeout = time.Second

// announce publishes an event for subscribers. What the bus does not confirm is refused, like an effect that the API server refuses.
// What can never be told is given up: to repeat it would help nobody.
func (r *Runner) announce(ctx context.Context, key events.Key, e effect.Announce) []events.Event {
	ctx, cancel := context.WithTimeout(ctx, announceTimeout)
	defer cancel()
	err := r.cfg.Announcer.Announce(ctx, e.Event)
	switch {
	case err == nil:
	case permanent(err):
		r.cfg.Log.Error("an event can never be announced, and is given up", "function", r.cfg.Function.Name, "key", key.String(), "event", e.Event.String(), "error", err)
	default:
		if r.ctx.Err() == nil {
			r.cfg.Log.Warn("an announcement was not confirmed and will be repeated", "function", r.cfg.Function.Name, "key", key.String(), "error", err)
		}
		return []events.Event{effect.Unconfirmed(err, r.cfg.Now())}
	}
	return []events.Event{events.Announced{ID: events.PublicID(e.Event)}}
}

// untilRefused does effects, but of announcements none after the first that is refused: hundreds of them, a second each, would keep the
// rest of the turn waiting.
func untilRefused(do ActorFunc) ActorFunc {
	var refused atomic.Bool
	return func(ctx context.Context, key events.Key, e effect.Effect) ([]events.Event, error) {
		_, announces := e.(effect.Announce)
		if announces && refused.Load() {
			return nil, nil
		}
		facts, err := do(ctx, key, e)
		if announces && slices.ContainsFunc(facts, func(e events.Event) bool { _, no := e.(events.EffectRefused); return no }) {
			refused.Store(true)
		}
		return facts, err
	}
}

// reportDropped tells operators of announcements that will never be made.
func (r *Runner) reportDropped(key events.Key, e effect.ReportDropped) []events.Event {
	r.cfg.Log.Error("announcements were dropped: more are due than a state holds; does the bus take public events?",
		"function", r.cfg.Function.Name, "key", key.String(), "count", e.Count)
	if r.cfg.Dropped != nil {
		r.cfg.Dropped(r.cfg.Function.Name, e.Count)
	}
	return []events.Event{events.Announced{ID: e.ID}}
}
