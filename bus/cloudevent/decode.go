package cloudevent

import (
	"fmt"
	"strings"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/nats-io/nats.go"
)

// Decode reads the event in a message: give it Header and Data of a *nats.Msg, or Headers() and Data() of a jetstream.Msg. Its
// error describes what is wrong with the message.
func Decode(header nats.Header, data []byte) (event.Event, error) {
	h := fold(header)
	mode, err := modeOf(h)
	if err != nil {
		return event.Event{}, err
	}
	var e event.Event
	if mode == Structured {
		e, err = structured(data)
	} else {
		e, err = binary(h, data)
	}
	if err == nil {
		err = valid(e)
	}
	if err != nil {
		return event.Event{}, fmt.Errorf("%s mode: %w", mode, err)
	}
	return e, nil
}

// binary reads an event whose attributes are headers.
func binary(h headers, data []byte) (event.Event, error) {
	e := event.New()
	version, err := h.one(prefix + "specversion")
	if err != nil {
		return e, err
	}
	switch version = unquote(version); version {
	case event.CloudEventsVersionV1:
	case "":
		return e, fmt.Errorf("header %sspecversion is missing, though others that begin with %s are there", prefix, prefix)
	default:
		return e, fmt.Errorf("its specversion is %s: only %s is supported", version, event.CloudEventsVersionV1)
	}
	for name := range h {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		value, err := h.one(name)
		if err != nil {
			return e, err
		}
		if value, err = unescape(value); err != nil {
			return e, fmt.Errorf("header %s: %w", name, err)
		}
		if err := nameOf(strings.TrimPrefix(name, prefix)); err != nil {
			return e, fmt.Errorf("header %s: %w", name, err)
		}
		if err := v1.SetAttribute(e.Context, name, value); err != nil {
			return e, fmt.Errorf("header %s: %w", name, err)
		}
	}
	if declared, _ := h.one(strings.ToLower(contentType)); declared != "" && e.DataContentType() == "" {
		e.SetDataContentType(declared)
	}
	if len(data) > 0 {
		e.DataEncoded = data
	}
	return e, nil
}

// structured reads an event that is JSON.
func structured(data []byte) (event.Event, error) {
	var e event.Event
	plain, err := plainJSON(data)
	if err != nil {
		return e, err
	}
	if err := e.UnmarshalJSON(plain); err != nil {
		return e, fmt.Errorf("no CloudEvent: %s", strings.TrimSpace(err.Error()))
	}
	return e, nil
}
