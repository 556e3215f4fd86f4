package bus

import (
	"encoding/json"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/jobstream/jobstream/internal/partition"
)

// Members carries the heartbeats of reconcilers: partition.Transport on plain NATS messages. They need no stream: one that is lost
// is followed by the next, and a JetStream that is choosing a leader for seconds must not make everybody seem dead.
type Members struct{ bus *Bus }

var _ partition.Transport = (*Members)(nil)

// Members returns the one of this cluster.
func (b *Bus) Members() *Members { return &Members{bus: b} }

// Send implements partition.Transport. It does not wait; its error says that we are not connected.
func (b *Members) Send(heartbeat partition.Heartbeat) error {
	data, err := json.Marshal(heartbeat)
	if err != nil {
		return fmt.Errorf("send heartbeat: %w", err)
	}
	if err := b.bus.nc.Publish(b.bus.names.members(), data); err != nil {
		return fmt.Errorf("send heartbeat: %w", err)
	}
	return nil
}

// Listen implements partition.Transport. What nobody can read is dropped: it comes from a future version or a stranger.
func (b *Members) Listen(hear func(partition.Heartbeat)) (stop func(), err error) {
	s, err := b.bus.nc.Subscribe(b.bus.names.members(), func(m *nats.Msg) {
		if len(m.Data) == 0 {
			return // an Inspector has tried whether it may
		}
		var heartbeat partition.Heartbeat
		if err := json.Unmarshal(m.Data, &heartbeat); err != nil || heartbeat.Member == "" {
			b.bus.throttled.warn("a heartbeat that nobody can read", "err", err)
			return
		}
		hear(heartbeat)
	})
	if err != nil {
		return nil, fmt.Errorf("listen for heartbeats: %w", err)
	}
	return func() { _ = s.Unsubscribe() }, nil // it fails only where the connection is closed
}
