package bus

import (
	"context"
	"errors"
	"time"
)

const (
	// requestTimeout bounds one request to JetStream, however long the caller is ready to wait: a stream without a leader drops
	// requests, so only a repeated request gets an answer. Replacing a lost leader takes up to seven seconds.
	requestTimeout = 5 * time.Second
	// askTimeout bounds a request that changes nothing and is answered quickly.
	askTimeout = 2 * time.Second
	// wholeTimeout bounds reading a message that may be as large as the server allows, 8 MiB and a third more as it sends it: over a
	// line of 4 Mbit/s, or from a server that has hardly any processor time.
	wholeTimeout = 30 * time.Second
)

// errLost reports that the answer to a request can no longer arrive.
var errLost = errors.New("the connection was lost before the server answered")

// ask makes one request. It fails at once when the connection is lost, where nats.go would wait for an answer that cannot arrive;
// its error is then errLost and never that of the caller's context.
func (b *Bus) ask(ctx context.Context, most time.Duration, request func(context.Context) error) error {
	b.mu.Lock()
	session := b.session
	b.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	defer context.AfterFunc(session, cancel)()
	err := request(limited)
	if errors.Is(err, context.Canceled) && ctx.Err() == nil {
		return errLost
	}
	return err
}

// found begins a session and lost ends it. nats.go calls found when it has connected and lost when it is disconnected, in turn.
func (b *Bus) found() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.session, b.lose = context.WithCancel(context.Background())
}

func (b *Bus) lost() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lose()
}
