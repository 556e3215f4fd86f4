package bus

import (
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Backlog is what the stream of public events holds for subscribers, and within which limits.
type Backlog struct {
	Messages, Bytes uint64
	// MaxBytes and MaxAge are what stands on the server: beyond either, the oldest events go.
	MaxBytes int64
	MaxAge   time.Duration
	// First is the sequence of the oldest event, and Oldest when it was stored: zero while the stream is empty.
	First  uint64
	Oldest time.Time
}

// Backlog is how full the stream of public events was when it was last looked at, seconds ago. ok is false while the stream
// does not stand.
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

// nearlyFull is the share of its bytes from which on somebody should know: what then still fits is a fifth of what is kept,
// which usually is more than a day.
const nearlyFull = 0.8

// Full is the share of its bytes that the stream takes; 0 where they are not limited.
func (l Backlog) Full() float64 {
	if l.MaxBytes <= 0 {
		return 0
	}
	return float64(l.Bytes) / float64(l.MaxBytes)
}
