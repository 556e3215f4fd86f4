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

// A stream without room takes nothing. Of limits that somebody has set, the server says so, and takes messages again as soon as there
// is room. Of a disk that is full it says nothing at all: nats-server 2.15 leaves the message that it could not write unanswered, and
// from then on every other one to that stream, however much room there is by then, until it is started anew. All else goes on: what
// the stream holds is delivered and acknowledged, and STREAM.INFO shows nothing unusual. So a stream that answers a question, and
// then does not confirm what is written to it, has met a full disk.

// failed hears that a message to the stream was not stored.
func (b *Bus) failed(stream string, err error) {
	b.top.suspect(err)
	if unanswered(err) {
		switch first, lasting := b.ackGaps.heard(stream, time.Now().Add(-requestTimeout)); {
		case first:
			b.top.look()
		case lasting && !b.problems.any(keyPublish): // what we may not send is not confirmed either, and has a line of its own
			b.problems.note(keyFull+stream, problem{
				words:  fmt.Sprintf("the server answers for the stream %s, but confirms nothing that we write to it, as after its disk was full", stream),
				remedy: diskRemedy,
			})
		}
		return
	}
	b.refused(stream, err)
}

// refused hears what the server says of something that we could not change in the stream.
func (b *Bus) refused(stream string, err error) {
	if remedy, full := noRoom(err); full {
		b.problems.note(keyFull+stream, problem{words: fmt.Sprintf("the server has no room for what we write to the stream %s: %v", stream, err), remedy: remedy})
	}
}

// wrote hears that one was.
func (b *Bus) wrote(stream string) {
	b.ackGaps.over(stream)
	b.problems.over(keyFull + stream)
}

// diskRemedy is for a stream that a full disk has closed.
const diskRemedy = `make room on the server's disk ("no space left on device" in its log), and then start the server anew: until it is, the stream takes nothing, whatever room there is`

// noRoom says that the server could not store what we sent for want of room, and what to do.
func noRoom(err error) (remedy string, is bool) {
	switch code(err) {
	case 0:
		return "", false
	case codeNoResources, codeInsufficientStorage:
		return "make room on the server's disk, or raise max_file_store in its configuration; it takes messages again by itself", true
	case codeAccountFull:
		return "raise max_file in the jetstream limits of our account on the server, or remove streams that nobody needs; it takes messages again by itself", true
	case codeStoreFailed:
		return "look at the server's disk, and at the stream's max_bytes (\"jobstream-reconciler doctor\" compares them); it takes messages again by itself", true
	}
	return diskRemedy, strings.Contains(err.Error(), "no space left on device")
}

// unanswered says that the server had time to confirm what it was sent, and did not.
func unanswered(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, jetstream.ErrAsyncPublishTimeout) || errors.Is(err, nats.ErrTimeout)
}

// ackGaps are the streams that have not confirmed a message, and none since.
type ackGaps struct {
	mu   sync.Mutex
	open map[string]*ackGap
}

// ackGap is one of them.
type ackGap struct {
	answered time.Time // when it first answered a question since; zero while it has not
}

// heard notes that the stream has not confirmed a message which was sent then, or later. The first time that proves little: the
// stream may have lost its leader. The gap is lasting when the stream had answered a request before that message was sent.
func (s *ackGaps) heard(stream string, sent time.Time) (first, lasting bool) {
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

// answered says that the stream has answered a question.
func (s *ackGaps) answered(stream string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if have := s.open[stream]; have != nil && have.answered.IsZero() {
		have.answered = time.Now()
	}
}

// forget is for a new connection, which may be to a server that was started anew.
func (s *ackGaps) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = nil
}

// over says that it has confirmed a message.
func (s *ackGaps) over(stream string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, stream)
}
