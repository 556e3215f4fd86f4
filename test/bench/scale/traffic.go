package main

import (
	"net/http"
	"strings"
	"sync"
	"time"
)

// traffic is what the reconcilers ask of the API server, as the proxy between them sees it.
type traffic struct {
	mu       sync.Mutex
	requests int
	last     map[string]time.Time // by connection, that is by reconciler: when it last asked for a Pod to be made
}

// held is how one number of reconcilers did.
type held struct {
	// requests are all that they made meanwhile, records of Events not among them.
	requests int
	// took is until the last Pod was made, first until the first reconciler had asked for the last one of its Pods.
	took, first time.Duration
}

func (t *traffic) see(r *http.Request) {
	path := strings.Split(r.URL.Path, "/")
	what := path[len(path)-1]
	if !strings.Contains(r.UserAgent(), "reconciler") || what == "events" { // which do not count as under way either
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.requests++
	if r.Method == http.MethodPost && what == "pods" {
		t.last[r.RemoteAddr] = time.Now()
	}
}

// begin counts from now on.
func (t *traffic) begin() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.requests = 0
	return time.Now()
}

func (t *traffic) end(began time.Time) held {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := held{requests: t.requests, took: time.Since(began)}
	h.first = h.took
	for _, at := range t.last {
		h.first = min(h.first, at.Sub(began))
	}
	return h
}
