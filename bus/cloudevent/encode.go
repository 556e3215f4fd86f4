package cloudevent

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/cloudevents/sdk-go/v2/binding/spec"
	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/cloudevents/sdk-go/v2/types"
	"github.com/nats-io/nats.go"
)

// v1 knows the attributes of CloudEvents 1.0 by the names of their headers.
var v1 = spec.WithPrefix(prefix).Version(event.CloudEventsVersionV1)

// Encode returns the headers and the payload of a message. It fails if the event breaks the specification; its error names the
// attribute.
func Encode(e event.Event, m Mode) (nats.Header, []byte, error) {
	if err := m.Valid(); err != nil {
		return nil, nil, err
	}
	if err := valid(e); err != nil {
		return nil, nil, err
	}
	attributes, err := attributesOf(e)
	if err != nil {
		return nil, nil, fmt.Errorf("it breaks CloudEvents: %w", err)
	}
	if m == Binary {
		return binaryHeader(e, attributes), e.Data(), nil
	}
	data, err := json.Marshal(e)
	if err != nil {
		return nil, nil, fmt.Errorf("it is no JSON: %w", err)
	}
	return nats.Header{contentType: {jsonFormat}}, data, nil
}

// valid rejects what the specification does not allow.
func valid(e event.Event) error {
	if err := e.Validate(); err != nil {
		problems := strings.Split(strings.TrimSpace(err.Error()), "\n")
		slices.Sort(problems)
		return fmt.Errorf("it breaks CloudEvents: %s", strings.Join(problems, "; "))
	}
	if v := e.SpecVersion(); v != event.CloudEventsVersionV1 {
		return fmt.Errorf("its specversion is %s: only %s is supported", v, event.CloudEventsVersionV1)
	}
	return nil
}

// attributesOf returns all attributes of the event, including extensions, in the canonical string form of their types.
func attributesOf(e event.Event) (map[string]string, error) {
	out := map[string]string{}
	add := func(name string, value any) error {
		text, err := types.Format(value)
		switch {
		case err != nil:
		case !utf8.ValidString(text):
			err = errors.New("it is not UTF-8")
		default:
			out[name] = text
			return nil
		}
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, attribute := range v1.Attributes() {
		if value := attribute.Get(e.Context); value != nil {
			if err := add(attribute.Name(), value); err != nil {
				return nil, err
			}
		}
	}
	for name, value := range e.Extensions() {
		if err := nameOf(name); err != nil {
			return nil, err
		}
		if err := add(name, value); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// nameOf rejects what cannot be the name of an attribute. The SDK accepts "data", which JSON uses for the payload.
func nameOf(name string) error {
	if name == "data" || !event.IsExtensionNameValid(name) {
		return fmt.Errorf("%q cannot be the name of an attribute: use lower-case letters and digits", name)
	}
	return nil
}

// binaryHeader returns a header for each attribute, and the Content-Type that NATS tools look at, unless that would make the
// message a structured one.
func binaryHeader(e event.Event, attributes map[string]string) nats.Header {
	h := nats.Header{}
	for name, value := range attributes {
		h[prefix+name] = []string{escape(value)}
	}
	if declared := e.DataContentType(); declared != "" && !strings.HasPrefix(mediaType(declared), anyFormat) && printable(declared) {
		h[contentType] = []string{declared}
	}
	return h
}

// printable reports whether a header can hold the text without encoding.
func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}
