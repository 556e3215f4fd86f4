package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A stream without room stores nothing. If a configured limit is the reason, the server reports it, and stores messages again as
// soon as there is room. If the disk is full, nats-server 2.15 reports nothing: it leaves the message that it could not write
// unanswered, and from then on every other message to that stream, however much room there is by then, until it is restarted.
// Everything else continues: what the stream holds is delivered and acknowledged, and STREAM.INFO shows nothing unusual. So a
// stream that answers a request, and then does not confirm what is written to it, has met a full disk.

// failed records that a message to the stream was not stored.
func (b *Bus) failed(stream string, err error) {
	b.top.suspect(err)
	if unanswered(err) {
		switch first, lasting := b.ackGaps.missed(stream, time.Now().Add(-requestTimeout)); {
		case first:
			b.top.look()
		case lasting && !b.problems.any(keyPublish): // a message without permission is not confirmed either, and has a log line of its own
			b.problems.note(keyFull+stream, problem{
				words:  fmt.Sprintf("the server answers for the stream %s, but confirms nothing that is written to it, as after its disk was full", stream),
				remedy: diskRemedy,
			})
		}
		return
	}
	b.refused(stream, err)
}

// refused records the server's error about a write to the stream.
func (b *Bus) refused(stream string, err error) {
	if remedy, full := noRoom(err); full {
		b.problems.note(keyFull+stream, problem{words: fmt.Sprintf("the server has no room for writes to the stream %s: %v", stream, err), remedy: remedy})
	}
}

// wrote records that the stream stored a message.
func (b *Bus) wrote(stream string) {
	b.ackGaps.over(stream)
	b.problems.over(keyFull + stream)
}

// diskRemedy is the remedy for a stream that stopped storing because of a full disk.
const diskRemedy = `make room on the server's disk ("no space left on device" in its log), and then restart the server: until then the stream stores nothing, whatever room there is`

// noRoom reports whether the error means that the server has no room to store a message, and returns the remedy.
func noRoom(err error) (remedy string, is bool) {
	switch code(err) {
	case 0:
		return "", false
	case codeNoResources, codeInsufficientStorage:
		return "make room on the server's disk, or raise max_file_store in its configuration; it takes messages again by itself", true
	case codeAccountFull:
		return "raise max_file in the jetstream limits of this program's account on the server, or remove streams that are not needed; it takes messages again by itself", true
	case codeStoreFailed:
		return "look at the server's disk, and at the stream's max_bytes (\"jobstream-reconciler doctor\" compares them); it takes messages again by itself", true
	}
	return diskRemedy, strings.Contains(err.Error(), "no space left on device")
}

// unanswered reports whether the server had time to confirm a message and did not.
func unanswered(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, jetstream.ErrAsyncPublishTimeout) || errors.Is(err, nats.ErrTimeout)
}

// ackGaps are the streams that left a message unconfirmed and have confirmed none since.
type ackGaps struct {
	mu   sync.Mutex
	open map[string]*ackGap
}

// ackGap describes one such stream.
type ackGap struct {
	answered time.Time // when it first answered a request since then; zero until it has
}

// missed records that the stream has not confirmed a message that was sent at the given time or later. The first such message
// proves little: the stream may have lost its leader. The gap is lasting when the stream had answered a request before that
// message was sent.
func (s *ackGaps) missed(stream string, sent time.Time) (first, lasting bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	have := s.open[stream]
	if have == nil {
		if s.open == nil {
			s.open = map[string]*ackGap{}
		}
		s.open[stream] = &ackGap{}
		return true, false
	}
	return false, !have.answered.IsZero() && !sent.Before(have.answered)
}

// answered records that the stream has answered a request.
func (s *ackGaps) answered(stream string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if have := s.open[stream]; have != nil && have.answered.IsZero() {
		have.answered = time.Now()
	}
}

// forget clears all gaps after a reconnect, since the server may have been restarted.
func (s *ackGaps) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = nil
}

// over records that the stream has confirmed a message.
func (s *ackGaps) over(stream string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, stream)
}
