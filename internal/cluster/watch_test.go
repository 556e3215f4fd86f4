package cluster

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/controlplane"
	"github.com/jobstream/jobstream/internal/controlplane/controlplanetest"
)

// memorySink remembers what was published, and can be broken.
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
	requests *requests
	log      *safeBuffer
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func startWatcher(t *testing.T, sink *memorySink, client kubernetes.Interface, seen *requests) *watching {
	t.Helper()
	log := &safeBuffer{}
	w, err := NewWatcher(WatcherConfig{Client: client, Sink: sink, Cluster: "c", Log: slog.New(slog.NewTextHandler(log, nil))})
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
	eventually(t, func() string {
		if w.Ready() {
			return ""
		}
		return "readiness; log:\n" + log.String()
	})
	return &watching{Watcher: w, sink: sink, requests: seen, log: log}
}

func TestWatcherWatches(t *testing.T) {
	w := newWorld(t)
	client, seen := testClient(t)
	x := startWatcher(t, &memorySink{}, client, seen)

	foreign, foreignKey := w.createJob("foreign", func(j *batchv1.Job) { j.Spec.ManagedBy = nil })
	w.startJob(foreign)
	j, key := w.createJob("pi")
	j = w.startJob(j)
	p := w.createPod(j, key, 0)
	w.endPod(p.Name, corev1.PodSucceeded)
	released := only[events.PodObserved](t, w.act(key, effect.ReleasePod{Name: p.Name, UID: p.UID})).Pod
	w.deletePodNow(p.Name)
	waits := w.createPod(j, key, 1) // deleted first, then let go
	w.deletePodNow(waits.Name)
	let := only[events.PodGone](t, w.act(key, effect.ReleasePod{Name: waits.Name, UID: waits.UID})).Pod
	w.deleteJob("pi")
	w.createForeignPod()

	eventually(t, func() string {
		if len(of[events.JobGone](x.sink, key)) == 0 || len(of[events.PodGone](x.sink, key)) < 2 {
			return "the end of the Job and its Pods"
		}
		return ""
	})
	if jobs := of[events.JobObserved](x.sink, key); len(jobs) != 2 || jobs[0].Job.Status.StartTime != nil || jobs[1].Job.Status.StartTime == nil {
		t.Errorf("sights of the Job: %+v", jobs)
	}
	gone := of[events.JobGone](x.sink, key)[0]
	if gone.Name != "pi" || gone.Version <= versionOf(j.ResourceVersion) {
		t.Errorf("%+v", gone)
	}
	var phases []string
	for _, o := range of[events.PodObserved](x.sink, key) {
		if o.Pod.UID == p.UID {
			phases = append(phases, string(o.Pod.Phase))
			if o.Pod.Held != (o.Pod.Version < released.Version) {
				t.Errorf("held at the wrong time: %+v", o.Pod)
			}
		}
	}
	if strings.Join(phases, " ") != "Pending Succeeded Succeeded Succeeded" { // made, ended, released, deleted
		t.Errorf("phases %v", phases)
	}
	for _, o := range of[events.PodGone](x.sink, key) {
		switch o.Pod.UID {
		case p.UID:
			if o.Pod.Phase != events.Succeeded || o.Pod.Version <= released.Version {
				t.Errorf("%+v", o.Pod)
			}
		case waits.UID: // the API server deletes it with the finalizer still in its stored form
			if o.Pod.Serial != 1 || !o.Pod.Held || let.Held || o.Pod.Version <= let.Version {
				t.Errorf("the watch says %+v, the answer said %+v", o.Pod, let)
			}
		default:
			t.Errorf("whose is %+v", o.Pod)
		}
	}
	if facts := x.sink.about(foreignKey); len(facts) != 0 {
		t.Errorf("facts about a Job that is not ours: %+v", facts)
	}
	x.sink.set(func() {
		for _, f := range x.sink.facts {
			if f.Key.Function != "job" || f.Cluster != "c" || f.Key.UID == "" {
				t.Errorf("%+v", f)
			}
		}
	})

	t.Run("a Pod that loses our label is not gone", func(t *testing.T) {
		j, key := w.createJob("label")
		p := w.createPod(j, key, 0)
		live := w.livePod(p.Name)
		delete(live.Labels, v1alpha1.ManagedLabel)
		if _, err := w.CoreV1().Pods(w.ns).Update(t.Context(), live, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() string {
			if strings.Contains(x.log.String(), "somebody took the label") {
				return ""
			}
			return "the warning"
		})
		if gone := of[events.PodGone](x.sink, key); len(gone) != 0 {
			t.Errorf("%+v", gone)
		}
	})
}

// createForeignPod makes a Pod that carries our label and belongs to nobody.
func (w *world) createForeignPod() {
	w.Helper()
	_, err := w.CoreV1().Pods(w.ns).Create(w.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "nobodys", Labels: map[string]string{v1alpha1.ManagedLabel: "true"}},
		Spec:       jobObject("x").Spec.Template.Spec,
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
}

// isWatch tells a watch of a resource from a list.
func isWatch(q *http.Request, resource string) bool {
	return q.URL.Query().Get("watch") != "" && strings.HasSuffix(q.URL.Path, "/"+resource)
}

func TestWatcherListsAgainAfterAGap(t *testing.T) {
	w := newWorld(t)
	_, key := w.createJob("pi")
	client, seen := testClient(t)
	var gone atomic.Bool
	seen.inject(func(q *http.Request) (*http.Response, error) {
		if isWatch(q, "jobs") && gone.CompareAndSwap(false, true) {
			return answer(q, http.StatusGone, metav1.Status{Status: "Failure", Code: http.StatusGone, Reason: metav1.StatusReasonExpired, Message: "too old resource version"}), nil
		}
		return nil, nil
	})
	x := startWatcher(t, &memorySink{}, client, seen)
	eventually(t, func() string {
		if len(of[events.JobListed](x.sink, key)) < 2 {
			return "a second roster; log:\n" + x.log.String()
		}
		return ""
	})
	w.startJob(w.liveJob("pi"))
	eventually(t, func() string {
		if len(of[events.JobObserved](x.sink, key)) == 0 {
			return "the watch to go on"
		}
		return ""
	})
}

func TestWatcherTakesABrokenWatchUp(t *testing.T) {
	w := newWorld(t)
	client, seen := testClient(t)
	var opened atomic.Int32
	seen.inject(func(q *http.Request) (*http.Response, error) {
		if isWatch(q, "pods") {
			if n := opened.Add(1); n == 1 || n == 2 {
				return answer(q, http.StatusInternalServerError, metav1.Status{Status: "Failure", Code: http.StatusInternalServerError}), nil
			}
		}
		return nil, nil
	})
	x := startWatcher(t, &memorySink{}, client, seen)
	j, key := w.createJob("pi")
	p := w.createPod(j, key, 0) // happens while nobody watches
	eventually(t, func() string {
		if seen := of[events.PodObserved](x.sink, key); len(seen) == 0 || seen[0].Pod.UID != p.UID {
			return "the Pod; log:\n" + x.log.String()
		}
		return ""
	})
	if rosters := of[events.JobListed](x.sink, key); len(rosters) != 0 {
		t.Errorf("it was listed again: %+v", rosters)
	}
	if n := strings.Count(x.log.String(), "cannot watch Pods"); n != 1 {
		t.Errorf("%d warnings:\n%s", n, x.log.String())
	}
}

func TestWatcherAndABrokenSink(t *testing.T) {
	w := newWorld(t)
	j, key := w.createJob("pi")
	client, seen := testClient(t)
	x := startWatcher(t, &memorySink{}, client, seen)

	t.Run("Publish", func(t *testing.T) {
		var refused atomic.Int32
		x.sink.set(func() {
			x.sink.broken = func(events.Fact) error { refused.Add(1); return errors.New("the bus is lost") }
		})
		j = w.startJob(j)
		eventually(t, func() string {
			if refused.Load() < 2 {
				return "another attempt"
			}
			return ""
		})
		x.sink.set(func() { x.sink.broken = nil })
		eventually(t, func() string {
			rosters := of[events.JobListed](x.sink, key)
			if last := rosters[len(rosters)-1]; len(rosters) < 2 || last.Job.Status.StartTime == nil {
				return "a new roster"
			}
			return ""
		})
		if n := strings.Count(x.log.String(), "level=WARN"); n != 1 {
			t.Errorf("%d warnings:\n%s", n, x.log.String())
		}
	})
	t.Run("Flush", func(t *testing.T) {
		before := len(of[events.JobListed](x.sink, key))
		x.sink.set(func() { x.sink.flush = errors.New("facts were lost") })
		eventually(t, func() string {
			if len(of[events.JobListed](x.sink, key)) == before {
				return "a new roster"
			}
			return ""
		})
	})
	t.Run("a fact that can never be published is left out", func(t *testing.T) {
		before := len(of[events.JobListed](x.sink, key))
		x.sink.set(func() {
			x.sink.broken = func(f events.Fact) error {
				if f.Event.Type() == events.TypeJobObserved && f.Key == key {
					return hopeless{}
				}
				return nil
			}
		})
		j.Status.Active = 1
		if _, err := w.BatchV1().Jobs(w.ns).UpdateStatus(t.Context(), j, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		_, next := w.createJob("next")
		eventually(t, func() string {
			if len(of[events.JobObserved](x.sink, next)) == 0 {
				return "the next fact"
			}
			return ""
		})
		if after := len(of[events.JobListed](x.sink, key)); after != before || !strings.Contains(x.log.String(), "can never be published") {
			t.Errorf("%d rosters after %d, log:\n%s", after, before, x.log.String())
		}
	})
}

type hopeless struct{}

func (hopeless) Error() string   { return "too large" }
func (hopeless) Permanent() bool { return true }

// TestWatcherOutlivesTheAPIServer takes an API server of its own away and brings it back.
func TestWatcherOutlivesTheAPIServer(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a second control plane")
	}
	if _, err := controlplane.Assets(); err != nil {
		t.Skip("needs a real API server: ", err)
	}
	cp := controlplanetest.Start(t, controlplane.Config{})
	client, _, err := NewClient(ClientConfig{Kubeconfig: cp.Kubeconfig()})
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(t.Context(), client, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	x := startWatcher(t, &memorySink{}, client, nil)
	if err := cp.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	if err := Check(t.Context(), client, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "is it up") {
		t.Errorf("%v", err)
	}
	eventually(t, func() string {
		if strings.Contains(x.log.String(), "cannot watch") {
			return ""
		}
		return "the warning"
	})
	if err := cp.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	j, err := client.BatchV1().Jobs("default").Create(t.Context(), jobObject("late"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	key := events.Key{Function: "job", Namespace: "default", UID: j.UID}
	eventually(t, func() string {
		if len(x.sink.about(key)) == 0 {
			return "a fact about the Job; log:\n" + x.log.String()
		}
		return ""
	})
	t.Run("and hears that it no longer knows an old version", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		for what, open := range map[string]func(context.Context, metav1.ListOptions) (watch.Interface, error){
			"Jobs": client.BatchV1().Jobs("").Watch, "Pods": x.watchPods,
		} {
			if err := x.follow(ctx, what, 1, open, x.onPod); !expired(err) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
	if n := strings.Count(x.log.String(), "level=WARN"); n > 4 {
		t.Errorf("%d warnings:\n%s", n, x.log.String())
	}
}

func TestNewWatcherRefuses(t *testing.T) {
	client := kubernetes.New(nil)
	for _, c := range []struct {
		config WatcherConfig
		want   string
	}{
		{WatcherConfig{Cluster: "c", Sink: &memorySink{}}, "no client"},
		{WatcherConfig{Cluster: "c", Client: client}, "no sink"},
		{WatcherConfig{Client: client, Sink: &memorySink{}}, "no name"},
		{WatcherConfig{Cluster: "c", Client: client, Sink: &memorySink{}, Interval: -1}, "negative"},
	} {
		if _, err := NewWatcher(c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.config, err)
		}
	}
}
