package bus

import (
	"context"
	"time"

	"github.com/jobstream/jobstream/events"
)

// unreadEvery is the shortest time between two wakes of a key because of facts that this program cannot read. Each wake costs an
// inventory, and a trigger that was upgraded first may report thousands of Pods.
const unreadEvery = 5 * time.Second

// passBy acknowledges a fact whose type, or whose version of it, only another version of this program knows:
//
//	fact --unknown--> a timer for its key, soon --safe--> acknowledged
//	                     '--> inventory, compared with what is remembered
//
// No state is deleted and no message quarantined, since nothing is broken. And no fact waits for a newer reconciler: facts that
// were given back would fill the window of the partition and block every fact that can be read.
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

// nextUnread returns when a partition next fires for facts that it could not read. Each partition has its own moment, so that not
// all objects of a cluster take inventory at once. The moment does not depend on when the last fact came; otherwise a key with a
// steady flow of facts would never be woken.
func nextUnread(partition int, now time.Time) time.Time {
	offset := time.Duration(partition) * unreadEvery / events.Partitions
	return now.Add(-offset).Truncate(unreadEvery).Add(unreadEvery + offset)
}
