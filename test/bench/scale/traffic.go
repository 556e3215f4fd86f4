package main

import (
	"net/http"
	"strings"
	"sync"
	"time"
)

// traffic is the reconcilers' requests to the API server, as the proxy between them sees it.
type traffic struct {
	mu       sync.Mutex
	requests int
	last     map[string]time.Time // by connection, that is by reconciler: the last request to create a Pod
}

// held is the result of one number of reconcilers.
type held struct {
	// requests are all requests meanwhile, except records of Events.
	requests int
	// took is the time until the last Pod was created, first until the first reconciler had requested the last one of its Pods.
	took, first time.Duration
}

func (t *traffic) see(r *http.Request) {
	path := strings.Split(r.URL.Path, "/")
	what := path[len(path)-1]
	if !strings.Contains(r.UserAgent(), "reconciler") || what == "events" { // these do not count as requests in progress either
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
