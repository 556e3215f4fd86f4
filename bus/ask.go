package bus

import (
	"context"
	"errors"
	"time"
)

const (
	// requestTimeout is for one request to JetStream, however long the caller would wait: a stream without a leader drops
	// what it is asked, and only who asks again gets an answer. A lost leader takes up to seven seconds to replace.
	requestTimeout = 5 * time.Second
	// askTimeout is the same for a question that changes nothing and is quickly answered.
	askTimeout = 2 * time.Second
)

// errLost is a request whose answer can no longer come.
var errLost = errors.New("the connection was lost before the server answered")

// ask makes one request. It fails at once when the connection is lost, where nats.go would wait for an answer that the
// server no longer owes; and it never blames the caller's context for that.
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

// found begins a session and lost ends it: nats.go calls them in turn, when it has connected and when it is disconnected.
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
