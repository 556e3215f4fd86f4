package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Role limits what a program does on the bus, so that its NATS user needs permissions for nothing else: deploy/nats/accounts.conf
// gives each role a user.
type Role string

const (
	// Everything is for a program that publishes facts and consumes them.
	Everything Role = ""
	// Trigger publishes facts. It creates and repairs their stream and only looks at the others: at timers, since the cluster has
	// to be listed again when they are lost, and at public events, to report how full their stream is.
	Trigger Role = "trigger"
	// Reconciler does everything but publish facts.
	Reconciler Role = "reconciler"
	// Reader looks at what is stored and changes nothing: an Inspector may have it, a Bus may not.
	Reader Role = "reader"
)

// valid rejects an unknown role.
func (r Role) valid() error {
	switch r {
	case Everything, Trigger, Reconciler, Reader:
		return nil
	}
	return fmt.Errorf("bus: %q is no role: use %q, %q, %q or %q", string(r), Everything, Trigger, Reconciler, Reader)
}

// makes reports whether the role creates and repairs the stream.
func (b *Bus) makes(stream string) bool { return b.cfg.Role != Trigger || stream == b.names.facts() }

// glance looks at a stream that other programs create. If it is missing, they are about to create it. If it was replaced by
// another stream, its contents are lost.
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
		t.bus.log.Warn("stream was lost, and another program has recreated it", "stream", was.want.Name)
		t.lost = true
	}
	t.settled(now) // other programs may have other flags
	t.streams[was.want.Name] = now
	return nil
}
