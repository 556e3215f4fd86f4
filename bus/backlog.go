package bus

import (
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Backlog describes the stream of public events: what it holds for subscribers, and its limits.
type Backlog struct {
	Messages, Bytes uint64
	// MaxBytes and MaxAge are the limits that the server applies: beyond either, it drops the oldest events.
	MaxBytes int64
	MaxAge   time.Duration
	// First is the sequence of the oldest event, and Oldest the time at which it was stored; both are zero while the stream is
	// empty.
	First  uint64
	Oldest time.Time
}

// Backlog returns the fill level of the stream of public events as of the last look, seconds ago. ok is false while the stream
// does not exist.
func (b *Bus) Backlog() (full Backlog, ok bool) {
	b.top.mu.Lock()
	defer b.top.mu.Unlock()
	s := b.top.streams[b.names.events()]
	if s == nil || s.created.IsZero() || b.top.broken != nil {
		return Backlog{}, false
	}
	return backlog(s.info), true
}

func backlog(info jetstream.StreamInfo) Backlog {
	return Backlog{Messages: info.State.Msgs, Bytes: info.State.Bytes, MaxBytes: info.Config.MaxBytes, MaxAge: info.Config.MaxAge,
		First: info.State.FirstSeq, Oldest: info.State.FirstTime}
}

// nearlyFull is the share of its bytes from which the operator should be warned: the remaining room is a fifth of what is kept,
// usually more than a day of events.
const nearlyFull = 0.8

// Full returns the share of its byte limit that the stream uses; 0 where bytes are not limited.
func (l Backlog) Full() float64 {
	if l.MaxBytes <= 0 {
		return 0
	}
	return float64(l.Bytes) / float64(l.MaxBytes)
}
