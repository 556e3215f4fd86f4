package bus

import (
	"fmt"
)

const (
	// maxSubject is the length, in bytes, of the longest subject that we send. A server closes the connection of whoever sends a
	// line above its max_control_line, 4 KiB by default, in which the subject, the inbox of the answer and two numbers stand;
	// and nats.go does not reconnect after that. What we send ourselves, by a key that is valid, takes less than 900.
	maxSubject = 1024
	// maxMsgID is the same for message ids, which the server keeps in memory for as long as it looks for duplicates.
	maxMsgID = 1024
	// headerRoom is what the headers of any message of ours may take of max_payload.
	headerRoom = 16 << 10
)

// unsendable is about one message that can never be sent, however healthy the bus is: whoever publishes goes on without it.
type unsendable struct{ error }

// Permanent says that trying again is useless.
func (unsendable) Permanent() bool { return true }

func (e unsendable) Unwrap() error { return e.error }

// sendable says what is wrong with a message that no server would take, or that would cost us the connection. It is asked before
// every message whose subject, id or data come from an object of Kubernetes or from somebody else's message.
func (b *Bus) sendable(subject, id string, size int) error {
	switch most := b.nc.MaxPayload() - headerRoom; {
	case len(subject) > maxSubject:
		return unsendable{fmt.Errorf("its subject has %d bytes, at most %d are sent: %.80s", len(subject), maxSubject, subject)}
	case len(id) > maxMsgID:
		return unsendable{fmt.Errorf("its id has %d bytes, at most %d are sent: %.80s", len(id), maxMsgID, id)}
	case most > 0 && int64(size) > most:
		return unsendable{fmt.Errorf("%d bytes, at most %d fit: raise max_payload of the NATS server", size, most)}
	}
	return nil
}
