package cloudevent

import (
	"fmt"
	"strings"

	"github.com/cloudevents/sdk-go/v2/event"
)

// Mode is how an event is encoded in a message.
type Mode string

// The modes. The specification has a third, batch, which the NATS binding does not have.
const (
	// Structured puts the whole event into the payload, as JSON.
	Structured Mode = "structured"
	// Binary puts the attributes into headers, and the unchanged data into the payload.
	Binary Mode = "binary"
)

// Valid returns an error that names the two modes if m is neither.
func (m Mode) Valid() error {
	if m != Structured && m != Binary {
		return fmt.Errorf("%q is no mode of an event: use %s or %s", string(m), Structured, Binary)
	}
	return nil
}

const (
	prefix      = "ce-"
	contentType = "Content-Type"

	anyFormat  = "application/cloudevents"
	jsonFormat = event.ApplicationCloudEventsJSON
)

// modeOf derives the mode of a message from its headers.
func modeOf(h headers) (Mode, error) {
	declared, err := h.one(strings.ToLower(contentType))
	if err != nil {
		return "", err
	}
	switch media := mediaType(declared); {
	case media == anyFormat || media == jsonFormat:
		return Structured, nil
	case strings.HasPrefix(media, anyFormat+"-batch"):
		return "", fmt.Errorf("%s is a batch, which the NATS binding does not have: send one event in each message", declared)
	case strings.HasPrefix(media, anyFormat+"+"):
		return "", fmt.Errorf("%s is a format that is not read here: send %s, or binary mode", declared, jsonFormat)
	case h.attributes() > 0:
		return Binary, nil
	case media == "":
		return Structured, nil
	}
	return "", fmt.Errorf("no CloudEvent: its Content-Type is %s, and it has no %sheaders: structured mode wants %s, binary mode %sid and the others",
		declared, prefix, jsonFormat, prefix)
}

// mediaType returns the part of a Content-Type before its parameters.
func mediaType(declared string) string {
	media, _, _ := strings.Cut(declared, ";")
	return strings.ToLower(strings.TrimSpace(media))
}
