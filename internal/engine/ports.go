package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// Store is the durable memory of one function's keys, with compare-and-set.
type Store interface {
	// Load returns the newest state of the key and its revision; nil and 0 where there is none. The read must not be
	// stale: it comes from the stream's leader.
	Load(ctx context.Context, key events.Key) (data []byte, revision uint64, err error)
	// Save writes the state if the key is still at revision (0: does not exist), and returns the new revision. It
	// returns an error that wraps ErrConflict where somebody else was faster, and one with a method Permanent that says true where
	// the state is too large to be saved at all. A state that rests may be forgotten.
	Save(ctx context.Context, key events.Key, data []byte, revision uint64, rests bool) (uint64, error)
	// Forget removes the state of the key whatever its revision: the cure for a state that cannot be read.
	Forget(ctx context.Context, key events.Key) error
}

// Actor does effects. It never decides: what an effect needs to know is in the effect.
type Actor interface {
	// Act does one effect for the key and returns the facts that the answer holds: the object as it is now, a refusal.
	// The error is nil, or a Retry; a precondition that failed is no error, and answers with a newer fact where it can.
	Act(ctx context.Context, key events.Key, e effect.Effect) ([]events.Event, error)
}

// Delivery is one fact in our hands until we acknowledge it.
type Delivery interface {
	Key() events.Key
	Event() events.Event
	// Ack says that everything that follows from the fact has been done.
	Ack()
	// Nak gives the fact back, to be delivered again after a while.
	Nak(after time.Duration)
	// InProgress asks for more time.
	InProgress()
	// Quarantine sets the fact aside with the reason and everything needed to replay it, and acknowledges it.
	Quarantine(reason error)
}

// Timers are durable alarm clocks.
type Timers interface {
	// Set makes TimerFired{Name: name} happen for the key at the given time or up to a second earlier, also when
	// everything has been restarted in between. A timer of the same key and name is replaced.
	Set(ctx context.Context, key events.Key, name string, at time.Time) error
}

// Announcer tells whoever has subscribed.
type Announcer interface {
	// Announce publishes the event and returns nil once the bus has confirmed that it holds it. The same event may be
	// announced again, also at the same time by somebody else. An error with a method Permanent that says true means that it
	// never can be.
	Announce(ctx context.Context, p events.Public) error
}

// ErrConflict says that the state has moved on since it was loaded.
var ErrConflict = errors.New("state has moved on")

// Retry says that an effect could not be done now and may be possible later: a timeout, a lost connection, an API server
// that asks for patience.
type Retry struct {
	// After is how long to wait at least; 0 leaves it to the engine.
	After time.Duration
	// Err is the cause.
	Err error
}

func (e Retry) Error() string {
	if e.After > 0 {
		return fmt.Sprintf("%v (try again after %v)", e.Err, e.After)
	}
	return e.Err.Error()
}

func (e Retry) Unwrap() error { return e.Err }
