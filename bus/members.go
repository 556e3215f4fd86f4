package bus

import (
	"encoding/json"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/jobstream/jobstream/internal/partition"
)

// Members carries the heartbeats of reconcilers: partition.Transport on plain NATS messages. They need no stream: a lost one is
// followed by the next, and a JetStream that takes seconds to elect a leader must not make all reconcilers seem dead.
type Members struct{ bus *Bus }

var _ partition.Transport = (*Members)(nil)

// Members returns the transport of this cluster.
func (b *Bus) Members() *Members { return &Members{bus: b} }

// Send implements partition.Transport. It does not wait; its error reports that the connection is lost.
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

// Listen implements partition.Transport. A message that cannot be decoded is dropped: it comes from a future version or a foreign
// client.
func (b *Members) Listen(receive func(partition.Heartbeat)) (stop func(), err error) {
	s, err := b.bus.nc.Subscribe(b.bus.names.members(), func(m *nats.Msg) {
		if len(m.Data) == 0 {
			return // an Inspector's probe of its permissions
		}
		var heartbeat partition.Heartbeat
		if err := json.Unmarshal(m.Data, &heartbeat); err != nil || heartbeat.Member == "" {
			b.bus.throttled.warn("a heartbeat cannot be decoded", "err", err)
			return
		}
		receive(heartbeat)
	})
	if err != nil {
		return nil, fmt.Errorf("listen for heartbeats: %w", err)
	}
	return func() { _ = s.Unsubscribe() }, nil // fails only if the connection is closed
}
