package engine

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// announceTimeout is how long a turn waits for the bus to confirm an announcement, which takes milliseconds. The bus's own
// timeout is longer, and a Job must not wait for the sake of subscribers.
const announceTimeout = time.Second

// announce publishes an event for subscribers. A failure of the bus to confirm it counts as a refusal, like an effect that the
// API server refuses. An event that can never be published is given up, since a retry cannot help.
func (r *Runner) announce(ctx context.Context, key events.Key, e effect.Announce) []events.Event {
	ctx, cancel := context.WithTimeout(ctx, announceTimeout)
	defer cancel()
	err := r.cfg.Announcer.Announce(ctx, e.Event)
	switch {
	case err == nil:
	case events.Permanent(err):
		r.cfg.Log.Error("an event can never be announced, and is given up", "function", r.cfg.Function.Name, "key", key.String(), "event", e.Event.String(), "error", err)
	default:
		if r.ctx.Err() == nil {
			r.cfg.Log.Warn("an announcement was not confirmed and will be repeated", "function", r.cfg.Function.Name, "key", key.String(), "error", err)
		}
		return []events.Event{effect.Unconfirmed(err, r.cfg.Now())}
	}
	return []events.Event{events.Announced{ID: events.PublicID(e.Event)}}
}

// untilRefused does effects, but no announcement after the first one that is refused: hundreds of them, a second each, would
// delay the rest of the turn.
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

// reportDropped logs and counts announcements that will never be made.
func (r *Runner) reportDropped(key events.Key, e effect.ReportDropped) []events.Event {
	r.cfg.Log.Error("announcements were dropped: more are due than a state holds; does the bus take public events?",
		"function", r.cfg.Function.Name, "key", key.String(), "count", e.Count)
	if r.cfg.Dropped != nil {
		r.cfg.Dropped(r.cfg.Function.Name, e.Count)
	}
	return []events.Event{events.Announced{ID: e.ID}}
}
