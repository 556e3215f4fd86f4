package cloudevent

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
)

// headers maps names in lower case to the headers of a message: nats.go keeps the case in which they were sent, and the
// specification ignores it.
type headers map[string][]string

func fold(h nats.Header) headers {
	out := make(headers, len(h))
	for name, values := range h {
		name = strings.ToLower(strings.TrimSpace(name))
		out[name] = append(out[name], values...)
	}
	return out
}

// one returns the value of the header; "" if there is none.
func (h headers) one(name string) (string, error) {
	switch values := h[name]; len(values) {
	case 0:
		return "", nil
	case 1:
		return strings.Trim(values[0], " \t"), nil
	default:
		return "", fmt.Errorf("header %s is there %d times, and it is undefined which one counts", name, len(values))
	}
}

// attributes counts the headers that are attributes of an event.
func (h headers) attributes() int {
	n := 0
	for name := range h {
		if strings.HasPrefix(name, prefix) {
			n++
		}
	}
	return n
}

const hexDigits = "0123456789ABCDEF"

// escape encodes any string as a header value: blanks, double quotes, percent signs and everything outside of printable ASCII are
// percent-encoded, byte by byte of UTF-8, and nothing else is.
func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c > ' ' && c <= '~' && c != '"' && c != '%' {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteByte(hexDigits[c>>4])
			b.WriteByte(hexDigits[c&15])
		}
	}
	return b.String()
}

// unescape is the inverse of escape, and tolerates other encoders: it removes double quotes and backslashes, as RFC 7230 defines
// them, and then one round of percent-encoding.
func unescape(value string) (string, error) {
	value = unquote(value)
	var b strings.Builder
	for i := 0; i < len(value); i++ {
		if value[i] == '%' && i+2 < len(value) {
			if hi, lo := nibble(value[i+1]), nibble(value[i+2]); hi >= 0 && lo >= 0 {
				b.WriteByte(byte(hi<<4 | lo))
				i += 2
				continue
			}
		}
		b.WriteByte(value[i])
	}
	if !utf8.ValidString(b.String()) {
		return "", fmt.Errorf("%q is not UTF-8 once it is decoded", value)
	}
	return b.String(), nil
}

func nibble(c byte) int {
	return strings.IndexByte(hexDigits, strings.ToUpper(string(c))[0])
}

// unquote returns the content of a quoted string; anything else stays as it is.
func unquote(value string) string {
	if len(value) < 2 || value[0] != '"' {
		return value
	}
	var b strings.Builder
	for i := 1; i < len(value); i++ {
		switch {
		case value[i] == '"' && i == len(value)-1:
			return b.String()
		case value[i] == '"':
			return value
		case value[i] == '\\' && i+1 < len(value):
			i++
		}
		b.WriteByte(value[i])
	}
	return value
}
