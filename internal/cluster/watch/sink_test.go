package watch

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"k8s.io/client-go/kubernetes"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
)

// memorySink remembers what was published, and can fail.
type memorySink struct {
	mu     sync.Mutex
	facts  []events.Fact
	broken func(events.Fact) error
	flush  error
}

func (s *memorySink) Publish(_ context.Context, f events.Fact) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		if err := s.broken(f); err != nil {
			return err
		}
	}
	s.facts = append(s.facts, f)
	return nil
}

func (s *memorySink) Flush(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.flush
	s.flush = nil
	return err
}

func (s *memorySink) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// of returns the facts of that type about the key.
func of[E events.Event](s *memorySink, key events.Key) (out []E) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.facts {
		if e, ok := f.Event.(E); ok && f.Key == key {
			out = append(out, e)
		}
	}
	return out
}

func (s *memorySink) about(key events.Key) (out []events.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.facts {
		if f.Key == key {
			out = append(out, f.Event)
		}
	}
	return out
}

// watching is a Watcher that runs until the test ends.
type watching struct {
	*Watcher
	sink     *memorySink
	requests *clustertest.Requests
	log      *clustertest.Buffer
}

func startWatcher(t *testing.T, sink *memorySink, client kubernetes.Interface, seen *clustertest.Requests, change ...func(*Config)) *watching {
	t.Helper()
	log := &clustertest.Buffer{}
	config := Config{Client: client, Sink: sink, Cluster: "c", Log: slog.New(slog.NewTextHandler(log, nil))}
	for _, f := range change {
		f(&config)
	}
	w, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	clustertest.Eventually(t, func() string {
		if w.Ready() {
			return ""
		}
		return "readiness; log:\n" + log.String()
	})
	return &watching{Watcher: w, sink: sink, requests: seen, log: log}
}

// watchSchedules makes a watcher watch ScheduledJobs, too.
func watchSchedules(t *testing.T, sink *memorySink, change ...func(*Config)) *watching {
	t.Helper()
	client, schedules, seen := clustertest.Clients(t)
	all := append([]func(*Config){func(c *Config) { c.ScheduledJobs = schedules }}, change...)
	return startWatcher(t, sink, client, seen, all...)
}
