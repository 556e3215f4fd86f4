package bus

import (
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/jobstream/jobstream/events"
)

// delivery implements engine.Delivery on a JetStream message. A failure to reach the server needs no error: the message is
// delivered again.
type delivery struct {
	bus      *Bus
	function string // of the consumer: known even where the fact could not be read
	msg      jetstream.Msg
	fact     events.Fact
}

func (d *delivery) Key() events.Key     { return d.fact.Key }
func (d *delivery) Event() events.Event { return d.fact.Event }
func (d *delivery) Ack()                { d.told(d.msg.Ack()) }
func (d *delivery) InProgress()         { d.told(d.msg.InProgress()) }

func (d *delivery) Nak(after time.Duration) {
	if after <= 0 {
		d.told(d.msg.Nak())
		return
	}
	d.told(d.msg.NakWithDelay(after))
}

func (d *delivery) told(err error) {
	if err != nil && !errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
		d.bus.throttled.warn("an acknowledgement was not sent; the fact will come again", "err", err)
	}
}
