package bus

import (
	"context"
	"time"

	"github.com/jobstream/jobstream/events"
)

// unreadEvery is how often at most a key is woken because of facts that this program cannot read: each wake costs an
// inventory, and a trigger that was upgraded first may tell of thousands of Pods.
const unreadEvery = 5 * time.Second

// passBy takes a fact off the partition whose type, or the version of it, only another version of this program knows:
//
//	fact --unknown--> a timer for its key, soon --safe--> acknowledged
//	                     '--> inventory, compared with what is remembered
//
// Nothing is forgotten and nothing set aside, since nothing is broken. And nothing waits for a newer reconciler: facts that
// were given back would fill the window of the partition, and with it stop all that can be read.
func (d *delivery) passBy(ctx context.Context, what events.UnknownFact) {
	b := d.bus
	if err := b.Timers().Set(ctx, what.Key, events.Unread, nextUnread(what.Key.Partition(), time.Now())); err != nil {
		b.throttled.warn("a fact of another version cannot be passed by; it will come again", "subject", d.msg.Subject(), "err", err)
		d.Nak(asideRetry)
		return
	}
	b.throttled.warn("a fact cannot be read; inventory is taken instead", "type", what.Type, "key", what.Key.String(), "remedy", what.Remedy())
	b.cfg.Unread(d.function)
	d.Ack()
}

// nextUnread is when a partition fires next for what it could not read. Each partition has its own moment, so that not all objects of a
// cluster take inventory at once; and it does not depend on when the last fact came, or a key that many are about would
// never be woken.
func nextUnread(partition int, now time.Time) time.Time {
	offset := time.Duration(partition) * unreadEvery / events.Partitions
	return now.Add(-offset).Truncate(unreadEvery).Add(unreadEvery + offset)
}
