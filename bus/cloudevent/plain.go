package cloudevent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// plainJSON returns equivalent JSON without what the SDK cannot parse: blanks between the tokens, and null for an absent
// attribute. It rejects what the SDK accepts or panics at: a duplicate attribute, a data_base64 that is no string, and anything
// after the event.
func plainJSON(data []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	first, err := d.Token()
	switch {
	case err != nil:
		return nil, fmt.Errorf("no JSON: %w", err)
	case first == json.Delim('['):
		return nil, errors.New("an array, and so a batch, which the NATS binding does not have: send one event in each message")
	case first != json.Delim('{'):
		return nil, fmt.Errorf("a JSON object is wanted, not %v", first)
	}
	out := bytes.NewBufferString("{")
	for seen := map[string]bool{}; d.More(); {
		name, value, err := member(d)
		if err != nil {
			return nil, err
		}
		if folded := strings.ToLower(name); seen[folded] {
			return nil, fmt.Errorf("%q is there twice", name)
		} else {
			seen[folded] = true
		}
		if err := copyMember(out, name, value); err != nil {
			return nil, err
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("no JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something stands behind the event: one message is one event")
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// member reads the next member of the object.
func member(d *json.Decoder) (name string, value json.RawMessage, err error) {
	key, err := d.Token()
	if err == nil {
		err = d.Decode(&value)
	}
	if err != nil {
		return "", nil, fmt.Errorf("no JSON: %w", err)
	}
	return fmt.Sprint(key), value, nil
}

// copyMember appends the member to those that are there.
func copyMember(out *bytes.Buffer, name string, value json.RawMessage) error {
	switch {
	case name == "data_base64" && value[0] != '"':
		return errors.New("data_base64 is no string")
	case name != "data" && string(value) == "null":
		return nil
	case name != "data" && name != "data_base64":
		if err := nameOf(name); err != nil {
			return err
		}
	}
	if out.Len() > 1 {
		out.WriteByte(',')
	}
	quoted, err := json.Marshal(name)
	if err == nil {
		out.Write(quoted)
		out.WriteByte(':')
		err = json.Compact(out, value)
	}
	if err != nil {
		return fmt.Errorf("no JSON: %w", err)
	}
	return nil
}
