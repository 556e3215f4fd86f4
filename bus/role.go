package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Role is what a program does on the bus. One that has a role does nothing else, so that its user of NATS needs permission for
// nothing else: deploy/nats/accounts.conf gives each role a user.
type Role string

const (
	// Everything is for a program that publishes facts and consumes them.
	Everything Role = ""
	// Trigger publishes facts. It makes and mends their stream; at the others it only looks: at timers, since the cluster has to
	// be listed again when they are lost, and at public events, to tell how full their stream is.
	Trigger Role = "trigger"
	// Reconciler does all but publish facts.
	Reconciler Role = "reconciler"
)

// valid refuses what is none.
func (r Role) valid() error {
	switch r {
	case Everything, Trigger, Reconciler:
		return nil
	}
	return fmt.Errorf("bus: %q is no role: use %q, %q or %q", string(r), Everything, Trigger, Reconciler)
}

// makes says that the stream is ours to make and to mend.
func (b *Bus) makes(stream string) bool { return b.cfg.Role != Trigger || stream == b.names.facts() }

// glance looks at a stream that others make. While it is missing, they are about to make it. When it has become another one than
// it was, what it held is lost.
func (t *topology) glance(ctx context.Context, was streamState) error {
	s, err := t.bus.find(ctx, was.want.Name)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("bus: stream %s: %w", was.want.Name, explain(err))
	}
	info := s.CachedInfo()
	now := &streamState{want: was.want, stream: s, created: info.Created, info: *info, conflict: was.conflict, remedy: was.remedy}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !was.created.IsZero() && !was.created.Equal(now.created) && t.bus.names.works(was.want.Name) {
		t.bus.log.Warn("stream was lost, and others have made it anew", "stream", was.want.Name)
		t.lost = true
	}
	t.settled(now) // they may have other flags
	t.streams[was.want.Name] = now
	return nil
}
