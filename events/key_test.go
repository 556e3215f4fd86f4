package events_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
)

// TestTokens: what a subject may contain stays readable, all else is escaped. A text that Token does not return is no token: it would be
// a second subject of one name.
func TestTokens(t *testing.T) {
	const readable = "azAZ09-_"
	if got := events.Token(readable); got != readable {
		t.Errorf("%q becomes %q", readable, got)
	}
	for text, token := range map[string]string{"": "", "my.job": "my=2Ejob", "`{@[/:": "=60=7B=40=5B=2F=3A", "=": "=3D", "*>": "=2A=3E", "\x00\xff": "=00=FF"} {
		if got := events.Token(text); got != token {
			t.Errorf("%q becomes %q, want %q", text, got, token)
		}
		if back, err := events.ParseToken(token); err != nil || back != text {
			t.Errorf("%q is read as %q, %v", token, back, err)
		}
	}
	for token, why := range map[string]string{"a=": "cut short", "a=2": "cut short", "a=2e": "not hexadecimal", "a=G0": "not hexadecimal", "=0G": "not hexadecimal",
		"=61": `it is written "a"`, "a.b": `it is written "a=2Eb"`} {
		if got, err := events.ParseToken(token); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q is read as %q, %v: want an error with %s", token, got, err, why)
		}
	}
}

// TestValidKeys: no part is empty, and none is longer than Kubernetes allows.
func TestValidKeys(t *testing.T) {
	long := func(n int) string { return strings.Repeat("a", n) }
	for _, c := range []struct {
		name string
		key  events.Key
		why  string
	}{
		{"the longest of each", events.Key{Function: long(63), Namespace: long(63), UID: types.UID(long(64))}, ""},
		{"no function", events.Key{Namespace: "a", UID: "a"}, "function is empty"},
		{"no namespace", events.Key{Function: "a", UID: "a"}, "namespace is empty"},
		{"no UID", events.Key{Function: "a", Namespace: "a"}, "UID is empty"},
		{"a long function", events.Key{Function: long(64), Namespace: "a", UID: "a"}, "function has 64 bytes, more than the limit of 63"},
		{"a long namespace", events.Key{Function: "a", Namespace: long(64), UID: "a"}, "namespace has 64 bytes, more than the limit of 63"},
		{"a long UID", events.Key{Function: "a", Namespace: "a", UID: types.UID(long(65))}, "UID has 65 bytes, more than the limit of 64"},
	} {
		if err := c.key.Valid(); (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestPartitionsOfKeys: only the UID decides, so that the bus, which hashes the same token, agrees; and each partition is used.
func TestPartitionsOfKeys(t *testing.T) {
	used := map[int]bool{}
	for i := range 1000 {
		uid := types.UID(strings.Repeat("x", i%7) + string(rune('a'+i%26)) + string(rune('a'+i/26)))
		p := events.Key{Function: "job", Namespace: "a", UID: uid}.Partition()
		if p != (events.Key{Function: "scheduledjob", Namespace: "b", UID: uid}).Partition() || p < 0 || p >= events.Partitions {
			t.Errorf("%s is in partition %d, or in two", uid, p)
		}
		used[p] = true
	}
	if len(used) != events.Partitions {
		t.Errorf("only %d partitions have a key", len(used))
	}
}

// TestATokenThatIsEmpty: the error counts tokens from 1.
func TestATokenThatIsEmpty(t *testing.T) {
	if _, err := events.ParseTokens("job..u"); err == nil || !strings.Contains(err.Error(), "token 2 is empty") {
		t.Error(err)
	}
}
