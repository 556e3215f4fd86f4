package events_test

import (
	"regexp"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/jobstream/jobstream/events"
)

// The names of Jobs must not change from one version to the next, or a Job would be created twice.
func TestNominalHash(t *testing.T) {
	for _, c := range []struct{ at, want string }{
		{"1970-01-01T00:00:00Z", "d72n572lx"},
		{"2026-07-01T11:00:00Z", "dnt5kbc9f"},
		{"2026-07-01T11:00:01Z", "clbcbj9cz"},
		{"2026-07-01T13:00:00+02:00", "dnt5kbc9f"}, // the same moment
		{"1969-12-31T23:59:59Z", "djq4g47mb"},
	} {
		at, err := time.Parse(time.RFC3339, c.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := events.NominalHash(at); got != c.want {
			t.Errorf("%s: %s, want %s", c.at, got, c.want)
		}
	}
}

// No two times share a name.
func TestNominalHashIsInjective(t *testing.T) {
	shape := regexp.MustCompile(`^[bcdfghjklmnpqrstvwxz2456789]{9}$`)
	seen := map[string]int64{}
	add := func(t interface{ Fatalf(string, ...any) }, unix int64) {
		h := events.NominalHash(time.Unix(unix, 0))
		if other, taken := seen[h]; taken && other != unix {
			t.Fatalf("%d and %d share the name %s", other, unix, h)
		}
		if !shape.MatchString(h) || len(h) != events.NominalHashLength {
			t.Fatalf("%d has the name %q", unix, h)
		}
		seen[h] = unix
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	for unix := range int64(200_000) {
		add(t, start+unix)
	}
	rapid.Check(t, func(t *rapid.T) { add(t, rapid.Int64Range(0, 1<<40-1).Draw(t, "unix")) })
}
