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
	// stale: it comes from the stream's leader. Only Recent, which the Runner puts in front of it, may answer with an older one.
	Load(ctx context.Context, key events.Key) (data []byte, revision uint64, err error)
	// Save writes the state if the key is still at revision (0: does not exist), and returns the new revision. It returns an
	// error that wraps ErrConflict if another worker was faster, and one whose method Permanent returns true if the state is too
	// large to be saved at all. A resting state may be forgotten.
	Save(ctx context.Context, key events.Key, data []byte, revision uint64, rests bool) (uint64, error)
	// Forget deletes the state of the key whatever its revision: the cure for a state that cannot be read.
	Forget(ctx context.Context, key events.Key) error
}

// Actor does effects. It never decides: an effect contains everything that it needs.
type Actor interface {
	// Act does one effect for the key and returns the facts in the answer: the object as it is now, or a refusal. The error is
	// nil or a Retry; a failed precondition is no error, and its answer has a newer fact if possible.
	Act(ctx context.Context, key events.Key, e effect.Effect) ([]events.Event, error)
}

// Delivery is one fact that this process holds until it acknowledges it.
type Delivery interface {
	Key() events.Key
	Event() events.Event
	// Ack reports that everything that follows from the fact has been done.
	Ack()
	// Nak gives the fact back, to be delivered again after a while.
	Nak(after time.Duration)
	// InProgress asks for more time.
	InProgress()
	// Quarantine quarantines the fact with the reason and everything needed to replay it, and acknowledges it.
	Quarantine(reason error)
}

// Timers are durable timers.
type Timers interface {
	// Set makes TimerFired{Name: name} happen for the key at the given time or up to a second earlier, even if everything is
	// restarted in between. It replaces a timer of the same key and name.
	Set(ctx context.Context, key events.Key, name string, at time.Time) error
}

// Announcer publishes events for subscribers.
type Announcer interface {
	// Announce publishes the event and returns nil once the bus has confirmed that it holds it. The same event may be announced
	// again, also by another worker at the same time. An error whose method Permanent returns true means that the event can never
	// be published.
	Announce(ctx context.Context, p events.Public) error
}

// ErrConflict reports that the state has changed since it was loaded.
var ErrConflict = errors.New("state has moved on")

// Retry reports that an effect could not be done now and may be possible later: a timeout, a lost connection, an API server that
// asks its clients to wait.
type Retry struct {
	// After is the shortest time to wait; 0 leaves it to the engine.
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
