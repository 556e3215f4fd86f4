package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/jobstream/jobstream/events"
)

const (
	// outstanding is how many facts may wait for their confirmation: enough to hide a replicated stream's round trip (256 in 5 ms
	// is 50,000 a second), few enough to send all again at once.
	outstanding = 256
	// publishTimeout is how long a fact is retried before it is given up: twice the seven seconds that replacing a lost leader
	// takes. Repeating is harmless, since the message id is the fact's own.
	publishTimeout = 15 * time.Second
	// resendAfter is the first pause before facts are sent again; it doubles up to resendAtMost.
	resendAfter  = 50 * time.Millisecond
	resendAtMost = time.Second
)

var errClosed = errors.New("the bus is closed")

// publisher sends facts in order and keeps the unconfirmed ones in a window. When one fails, it sends the whole window again in
// order; the server recognises by its id what it has already stored.
//
//	Publish --> queue --> [ window: oldest ... newest ] --> confirmed
//	                              ^        |
//	                              '-resend-'    after publishTimeout: given up, and signalled by Losses
type publisher struct {
	bus            *Bus
	slots          chan struct{} // one token for each fact that is not confirmed
	queue          chan *pendingPublish
	publishTimeout time.Duration

	mu     sync.Mutex
	failed error // the first failure that no Flush has reported yet
}

// pendingPublish is a fact that is being published, or the mark of a Flush.
type pendingPublish struct {
	id, subject string
	data        []byte
	since       time.Time
	ok          <-chan *jetstream.PubAck
	fail        <-chan error
	flush       chan struct{} // not nil: a mark, closed when everything before it has an outcome
}

func newPublisher(b *Bus) *publisher {
	return &publisher{
		bus:            b,
		slots:          make(chan struct{}, outstanding),
		queue:          make(chan *pendingPublish, outstanding),
		publishTimeout: publishTimeout,
	}
}

// Publish sends the fact and does not wait for its confirmation; it blocks while 256 facts are unconfirmed. The fact's ID is the
// message's, so a fact that any number of triggers publish any number of times within ten minutes is stored once. The error is
// the context's, or reports that the fact can never be sent (too large, an invalid key), or that the bus has been lost for so
// long that facts are dropped until Losses signals that the cluster must be listed again.
func (b *Bus) Publish(ctx context.Context, f events.Fact) error {
	if f.Cluster != b.cfg.Cluster {
		return unsendable{fmt.Errorf("publish %s: it is about cluster %q, and this bus carries %q", f.ID(), f.Cluster, b.cfg.Cluster)}
	}
	if err := f.Key.Valid(); err != nil {
		return unsendable{fmt.Errorf("publish %s: %w", f.Event.Type(), err)}
	}
	data, err := events.Encode(f)
	if err != nil {
		return unsendable{err}
	}
	if err := b.sendable(f.Subject(), f.ID(), len(data)); err != nil {
		return fmt.Errorf("publish %.200s: %w", f.ID(), err)
	}
	if b.top.losing() {
		return fmt.Errorf("publish %s: the bus is lost: dropped, since a new list must follow anyway", f.ID())
	}
	select {
	case b.pub.slots <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("publish %s: %w", f.ID(), ctx.Err())
	case <-b.closed:
		return fmt.Errorf("publish %s: %w", f.ID(), errClosed)
	}
	b.pub.queue <- &pendingPublish{id: f.ID(), subject: f.Subject(), data: data, since: time.Now()} // its capacity is the number of slots
	return nil
}

// Flush waits until every fact that was published before is confirmed. It returns the first failure among them, or of earlier
// facts, that no Flush has returned yet.
func (b *Bus) Flush(ctx context.Context) error {
	mark := &pendingPublish{flush: make(chan struct{})}
	select {
	case b.pub.slots <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("flush: %w", ctx.Err())
	case <-b.closed:
		return fmt.Errorf("flush: %w", errClosed)
	}
	b.pub.queue <- mark
	select {
	case <-mark.flush:
		return b.pub.report()
	case <-ctx.Done():
		return fmt.Errorf("flush: %w", ctx.Err())
	case <-b.closed:
		return fmt.Errorf("flush: %w", errClosed)
	}
}

// run is the publisher's one goroutine.
func (p *publisher) run(ctx context.Context) {
	var window []*pendingPublish
	for {
		for len(window) > 0 && window[0].flush != nil {
			close(window[0].flush)
			window = p.settle(window)
		}
		var ok <-chan *jetstream.PubAck
		var fail <-chan error
		if len(window) > 0 {
			ok, fail = window[0].ok, window[0].fail
		}
		select {
		case next := <-p.queue:
			window = append(window, next)
			if err := p.send(next); err != nil {
				window = p.resend(ctx, window, err)
			}
		case ack := <-ok:
			p.bus.top.confirmed(ack.Stream, ack.Sequence)
			window = p.settle(window)
		case err := <-fail:
			window = p.resend(ctx, window, err)
		case <-ctx.Done():
			p.giveUp(window, errClosed)
			return
		}
	}
}

// settle removes the oldest fact of the window.
func (p *publisher) settle(window []*pendingPublish) []*pendingPublish {
	window[0] = nil
	<-p.slots
	return window[1:]
}

func (c *pendingPublish) message() *nats.Msg {
	return &nats.Msg{
		Subject: c.subject,
		Data:    c.data,
		Header:  nats.Header{jetstream.MsgIDHeader: {c.id}, "Content-Type": {events.ContentType}},
	}
}

func (p *publisher) send(c *pendingPublish) error {
	if c.flush != nil {
		return nil
	}
	f, err := p.bus.js.PublishMsgAsync(c.message(), jetstream.WithRetryAttempts(0)) // nats.go would retry single messages, out of order
	if err != nil {
		return err
	}
	c.ok, c.fail = f.Ok(), f.Err()
	return nil
}

// resend sends the whole window again, in order, until that succeeds or publishTimeout ends.
func (p *publisher) resend(ctx context.Context, window []*pendingPublish, cause error) []*pendingPublish {
	pause := resendAfter
	for {
		p.bus.failed(p.bus.names.facts(), cause)
		p.bus.throttled.warn("facts are not confirmed; sending them again", "facts", len(window), "err", cause)
		if oldest := oldest(window); !oldest.IsZero() && time.Since(oldest) > p.publishTimeout {
			return p.giveUp(window, cause)
		}
		select {
		case <-ctx.Done():
			return p.giveUp(window, ctx.Err())
		case <-time.After(pause):
		}
		pause = min(2*pause, resendAtMost)
		if cause = p.sendAll(window); cause == nil {
			return window
		}
	}
}

func (p *publisher) sendAll(window []*pendingPublish) error {
	for _, c := range window {
		if err := p.send(c); err != nil {
			return err
		}
	}
	return nil
}

// oldest returns when the oldest fact of the window was published.
func oldest(window []*pendingPublish) time.Time {
	for _, c := range window {
		if c.flush == nil {
			return c.since
		}
	}
	return time.Time{}
}

// keep retries the oldest fact that a full stream did not store until it does. So the publisher learns when there is room. A fact
// that arrives late is older than the new list, which every function tolerates.
func (p *publisher) keep(window []*pendingPublish, cause error) {
	facts := p.bus.names.facts()
	for _, c := range window {
		if c.flush != nil || code(cause) == codeStoreFailed { // may concern this fact alone
			continue
		}
		p.bus.problems.keep(keyFull+facts, func(ctx context.Context) {
			var ack *jetstream.PubAck
			err := p.bus.ask(ctx, requestTimeout, func(ctx context.Context) (err error) {
				ack, err = p.bus.js.PublishMsg(ctx, c.message(), jetstream.WithRetryAttempts(0))
				return err
			})
			if err != nil {
				p.bus.failed(facts, err)
				return
			}
			p.bus.top.confirmed(ack.Stream, ack.Sequence)
			p.bus.top.look() // the loss can be signalled
		})
		return
	}
}

// giveUp drops all waiting facts, also those in the queue: after a loss the cluster is listed again, and the list has the newest
// state of everything.
func (p *publisher) giveUp(window []*pendingPublish, cause error) []*pendingPublish {
	p.keep(window, cause)
	p.bus.top.lose()
	for {
		select {
		case c := <-p.queue:
			window = append(window, c)
			continue
		default:
		}
		break
	}
	for _, c := range window {
		if c.flush != nil {
			close(c.flush)
		} else {
			p.fail(fmt.Errorf("publish %s: %w", c.id, cause))
		}
		<-p.slots
	}
	return nil
}

func (p *publisher) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed == nil {
		p.failed = err
	}
}

// report returns the first failure once.
func (p *publisher) report() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.failed
	p.failed = nil
	return err
}
