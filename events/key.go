package events

import (
	"fmt"
	"hash/fnv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Key names the state that an event concerns: one function's state of one object. It lacks the object's name, because a name may
// be reused and a UID is not.
type Key struct {
	// Function is the name of the function, such as "job".
	Function string
	// Namespace is the object's, a DNS label: it holds no dot.
	Namespace string
	// UID is the object's.
	UID types.UID
}

// String renders the key as "job default/5ef034e0-…", for logs.
func (k Key) String() string { return k.Function + " " + k.Namespace + "/" + string(k.UID) }

// Partitions is the fixed number of partitions of facts: to change it, delete the streams, which is safe. 32 consumers spread
// evenly over as many reconcilers as one cluster needs and stay far below the 1,000 consumers that a stream allows.
const Partitions = 32

// Partition returns the partition of the key: FNV-1a of the UID modulo Partitions. The server's partition transform computes the
// same (nats-server, subject_transform.go), so that timers, whose subject the reconciler computes, fire in the partition of their
// facts.
func (k Key) Partition() int {
	h := fnv.New32a()
	h.Write([]byte(escape(string(k.UID))))
	return int(h.Sum32() % Partitions)
}

// Tokens returns the key as the middle of a subject: "<function>.<namespace>.<uid>", each escaped.
func (k Key) Tokens() string {
	return escape(k.Function) + "." + escape(k.Namespace) + "." + escape(string(k.UID))
}

// ParseTokens is the inverse of Key.Tokens. It returns an error unless there are exactly three tokens with valid escapes.
func ParseTokens(s string) (Key, error) {
	t := strings.Split(s, ".")
	if len(t) != 3 {
		return Key{}, fmt.Errorf("key %q: want function.namespace.uid", s)
	}
	for i := range t {
		var err error
		if t[i], err = unescape(t[i]); err != nil {
			return Key{}, fmt.Errorf("key %q: %w", s, err)
		}
		if t[i] == "" {
			return Key{}, fmt.Errorf("key %q: token %d is empty", s, i+1)
		}
	}
	return Key{Function: t[0], Namespace: t[1], UID: types.UID(t[2])}, nil
}

// Token makes one subject token of any string: it escapes what a subject cannot contain (dots, blanks, wildcards), so that
// "my.job" becomes "my=2Ejob". Every legal Kubernetes name survives the round trip.
func Token(s string) string { return escape(s) }

// ParseToken is the inverse of Token. It returns an error for a text that Token does not return: two texts of one name would be two
// subjects, in different partitions, of one state.
func ParseToken(s string) (string, error) { return unescape(s) }

const hexDigits = "0123456789ABCDEF"

// escape keeps letters, digits, '-' and '_'; all else becomes '=' and two hexadecimal digits. '=' is legal in subjects
// and in keys of a key-value bucket alike.
func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('=')
		b.WriteByte(hexDigits[c>>4])
		b.WriteByte(hexDigits[c&15])
	}
	return b.String()
}

func unescape(s string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '=' {
			b.WriteByte(s[i])
			continue
		}
		if i+2 >= len(s) {
			return "", fmt.Errorf("token %q: escape cut short", s)
		}
		hi, lo := strings.IndexByte(hexDigits, s[i+1]), strings.IndexByte(hexDigits, s[i+2])
		if hi < 0 || lo < 0 {
			return "", fmt.Errorf("token %q: escape %q is not hexadecimal", s, s[i:i+3])
		}
		b.WriteByte(byte(hi<<4 | lo))
		i += 2
	}
	name := b.String()
	if only := escape(name); only != s {
		return "", fmt.Errorf("token %q: it is written %q", s, only)
	}
	return name, nil
}
