package app

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// probeTimeout bounds one response of /readyz; a kubelet waits one second by default, so a probe with more checks needs a longer
// timeout.
const probeTimeout = 2 * time.Second

// Probes are the named checks behind /readyz. The zero value has none and is not ready, because the program has not registered
// its requirements yet. It must not be copied.
type Probes struct {
	mu     sync.Mutex
	checks []probe
	alive  func() error // nil if nothing can break permanently
}

type probe struct {
	name  string
	check func(context.Context) error
}

// Set adds a check, or replaces the one of the same name.
func (p *Probes) Set(name string, check func(context.Context) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.IndexFunc(p.checks, func(c probe) bool { return c.name == name }); i >= 0 {
		p.checks[i].check = check
		return
	}
	p.checks = append(p.checks, probe{name, check})
}

// SetAlive sets the check of /healthz: whether something has broken that only a new process can repair.
func (p *Probes) SetAlive(check func() error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.alive = check
}

// broken returns an error that only a new process can repair, or nil.
func (p *Probes) broken() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.alive == nil {
		return nil
	}
	return p.alive()
}

// await makes the check fail until it is set again, for conditions that a starting program waits for.
func (p *Probes) await(name string) {
	p.Set(name, func(context.Context) error { return fmt.Errorf("starting") })
}

// Report runs all checks and writes a line about each, in the form of the API server's own /readyz.
func (p *Probes) Report(ctx context.Context) (report string, ready bool) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	p.mu.Lock()
	checks := slices.Clone(p.checks)
	p.mu.Unlock()
	var b strings.Builder
	if ready = len(checks) > 0; !ready {
		b.WriteString("[-]start failed: not begun\n")
	}
	for _, c := range checks {
		if err := c.check(ctx); err != nil {
			ready = false
			fmt.Fprintf(&b, "[-]%s failed: %s\n", c.name, oneLine(err.Error()))
			continue
		}
		fmt.Fprintf(&b, "[+]%s ok\n", c.name)
	}
	if ready {
		b.WriteString("ready\n")
	} else {
		b.WriteString("not ready\n")
	}
	return b.String(), ready
}

const (
	// readyTimeout allows for a first list of the cluster and the reconciler's first heartbeat: usually a second.
	readyTimeout = time.Minute
	// askReady is the polling interval: probes do not signal changes.
	askReady = 20 * time.Millisecond
)

// AwaitReady waits until all are ready, for at most a minute. It returns an error at once when ctx ends or failed has an error.
func AwaitReady(ctx context.Context, failed <-chan error, probes ...*Probes) error {
	late := time.NewTimer(readyTimeout)
	defer late.Stop()
	again := time.NewTicker(askReady)
	defer again.Stop()
	for {
		missing := ""
		for _, p := range probes {
			if report, ready := p.Report(ctx); !ready {
				missing += report
			}
		}
		if missing == "" {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return ctx.Err()
		case err := <-failed:
			return err
		case <-late.C:
			return &Fatal{Cannot: "start", Err: fmt.Errorf("not ready after %v: %s", readyTimeout, missing), Remedy: "--log-level=info says more"}
		}
	}
}

// handler serves /healthz and /readyz. /healthz reports that the process responds, and that nothing has broken that only another
// process can repair. It ignores an unreachable API server or bus: a restart would not help, and would cost the unfinished work.
func (p *Probes) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if err := p.broken(); err != nil {
			http.Error(w, oneLine(err.Error()), http.StatusInternalServerError)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		report, ready := p.Report(r.Context())
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if !ready {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprint(w, report)
	})
	return mux
}
