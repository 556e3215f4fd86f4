package main

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// What an answer means: done, again, or set aside.
func TestJudge(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		code  int
		after string // Retry-After
		done  bool
		final bool
		wait  time.Duration
	}{
		{code: 200, done: true}, {code: 204, done: true}, {code: 202, after: "5", done: true},
		{code: 301, final: true}, {code: 307, final: true}, {code: 400, final: true}, {code: 401, final: true}, {code: 404, final: true}, {code: 410, after: "5", final: true},
		{code: 408}, {code: 500}, {code: 502}, {code: 504},
		{code: 429, after: "7", wait: 7 * time.Second},
		{code: 503, after: "Fri, 02 Jan 2026 03:05:05 GMT", wait: time.Minute},
		{code: 503, after: "Fri, 02 Jan 2026 03:03:05 GMT"}, // long ago
		{code: 429, after: "soon"}, {code: 429, after: "-1"}, {code: 429, after: "0"},
		{code: 429, after: "2000000000", wait: longestAsked}, {code: 429, after: "99999999999999999999"},
	} {
		a := &http.Response{StatusCode: c.code, Header: http.Header{"Retry-After": {c.after}}}
		if o := judge(a, now); (o.err == nil) != c.done || o.final != c.final || o.wait != c.wait {
			t.Errorf("%d, Retry-After %q: %+v", c.code, c.after, o)
		}
	}
}

// The wait doubles and has an end, however often it was tried.
func TestBackoff(t *testing.T) {
	for tries, want := range map[uint64]time.Duration{1: time.Second, 2: 2 * time.Second, 4: 8 * time.Second, 11: longestWait, 100: longestWait, 1 << 60: longestWait} {
		if got := backoff(tries); got != want {
			t.Errorf("after %d tries: %v, want %v", tries, got, want)
		}
	}
}

// A setting that cannot work is refused by its name.
func TestSettings(t *testing.T) {
	for name, bad := range map[string]string{"WEBHOOK_URL": "no URL", "WEBHOOK_TIMEOUT": "ten", "WEBHOOK_TRIES": "0"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("WEBHOOK_URL", "https://127.0.0.1/events")
			if _, err := settings(); err != nil {
				t.Fatal(err)
			}
			t.Setenv(name, bad)
			if _, err := settings(); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s=%s: %v", name, bad, err)
			}
		})
	}
}
