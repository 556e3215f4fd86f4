package bus

import (
	"fmt"
)

const (
	// maxSubject bounds the length in bytes of a subject that is sent. A server closes the connection of a client that sends a
	// line above max_control_line, 4 KiB by default, which contains the subject, the reply inbox and two numbers; and nats.go
	// does not reconnect after that. Subjects with valid keys take fewer than 900 bytes.
	maxSubject = 1024
	// maxMsgID bounds message ids, which the server keeps in memory for the window of duplicates.
	maxMsgID = 1024
	// headerRoom is the part of max_payload that is reserved for headers.
	headerRoom = 16 << 10
)

// unsendable is an error about one message that can never be sent, however healthy the bus is: the publisher goes on without it.
type unsendable struct{ error }

// Permanent reports that retrying is useless.
func (unsendable) Permanent() bool { return true }

func (e unsendable) Unwrap() error { return e.error }

// sendable returns an error for a message that no server would take, or that would cost the connection. It checks every message
// whose subject, id or data come from a Kubernetes object or from another client's message.
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
