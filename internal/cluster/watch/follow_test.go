package watch

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/cluster"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
	"github.com/jobstream/jobstream/internal/dev/controlplane"
	"github.com/jobstream/jobstream/internal/dev/controlplane/controlplanetest"
)

func TestWatcherListsAgainAfterAGap(t *testing.T) {
	w := newWorld(t)
	_, key := w.CreateJob("pi")
	client, seen := clustertest.Client(t)
	var gone atomic.Bool
	seen.Inject(func(q *http.Request) (*http.Response, error) {
		if clustertest.IsWatch(q, "jobs") && gone.CompareAndSwap(false, true) {
			return clustertest.Answer(q, http.StatusGone, metav1.Status{Status: "Failure", Code: http.StatusGone, Reason: metav1.StatusReasonExpired, Message: "too old resource version"}), nil
		}
		return nil, nil
	})
	x := startWatcher(t, &memorySink{}, client, seen)
	clustertest.Eventually(t, func() string {
		if len(of[events.JobListed](x.sink, key)) < 2 {
			return "a second snapshot; log:\n" + x.log.String()
		}
		return ""
	})
	w.StartJob(w.LiveJob("pi"))
	clustertest.Eventually(t, func() string {
		if len(of[events.JobObserved](x.sink, key)) == 0 {
			return "the watch to go on"
		}
		return ""
	})
}

func TestWatcherTakesABrokenWatchUp(t *testing.T) {
	w := newWorld(t)
	client, seen := clustertest.Client(t)
	var opened atomic.Int32
	seen.Inject(func(q *http.Request) (*http.Response, error) {
		if clustertest.IsWatch(q, "pods") && q.URL.Path == "/api/v1/pods" { // not those of namespaces where earlier tests have left adopting Jobs
			if n := opened.Add(1); n == 1 || n == 2 {
				return clustertest.Answer(q, http.StatusInternalServerError, metav1.Status{Status: "Failure", Code: http.StatusInternalServerError}), nil
			}
		}
		return nil, nil
	})
	x := startWatcher(t, &memorySink{}, client, seen)
	j, key := w.CreateJob("pi")
	p := w.createPod(j, key, 0) // created, and runs, while no watch is open
	w.EndPod(p.Name, corev1.PodRunning)
	clustertest.Eventually(t, func() string {
		if seen := of[events.PodObserved](x.sink, key); len(seen) == 0 || seen[0].Pod.UID != p.UID {
			return "the Pod; log:\n" + x.log.String()
		}
		return ""
	})
	if snapshots := of[events.JobListed](x.sink, key); len(snapshots) != 0 {
		t.Errorf("it was listed again: %+v", snapshots)
	}
	if n := strings.Count(x.log.String(), "cannot watch Pods"); n != 1 {
		t.Errorf("%d warnings:\n%s", n, x.log.String())
	}
}

func TestWatcherAndABrokenSink(t *testing.T) {
	w := newWorld(t)
	j, key := w.CreateJob("pi")
	client, seen := clustertest.Client(t)
	x := startWatcher(t, &memorySink{}, client, seen)

	t.Run("Publish", func(t *testing.T) {
		var refused atomic.Int32
		x.sink.set(func() {
			x.sink.broken = func(f events.Fact) error {
				if f.Key != key { // leftovers of other tests
					return nil
				}
				refused.Add(1)
				return errors.New("the bus is lost")
			}
		})
		j = w.StartJob(j)
		clustertest.Eventually(t, func() string {
			if refused.Load() < 2 {
				return "another attempt"
			}
			return ""
		})
		x.sink.set(func() { x.sink.broken = nil })
		clustertest.Eventually(t, func() string {
			snapshots := of[events.JobListed](x.sink, key)
			if last := snapshots[len(snapshots)-1]; len(snapshots) < 2 || last.Job.Status.StartTime == nil {
				return "a new snapshot; log:\n" + x.log.String()
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
		clustertest.Eventually(t, func() string {
			if len(of[events.JobListed](x.sink, key)) == before {
				return "a new snapshot"
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
		if _, err := w.BatchV1().Jobs(w.NS).UpdateStatus(t.Context(), j, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		_, next := w.CreateJob("next")
		clustertest.Eventually(t, func() string {
			if len(of[events.JobObserved](x.sink, next)) == 0 {
				return "the next fact"
			}
			return ""
		})
		if after := len(of[events.JobListed](x.sink, key)); after != before || !strings.Contains(x.log.String(), "can never be published") {
			t.Errorf("%d snapshots after %d, log:\n%s", after, before, x.log.String())
		}
	})
}

type hopeless struct{}

func (hopeless) Error() string   { return "too large" }
func (hopeless) Permanent() bool { return true }

// TestWatcherOutlivesTheAPIServer stops an API server of its own and starts it again.
func TestWatcherOutlivesTheAPIServer(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a second control plane")
	}
	if _, err := controlplane.Assets(); err != nil {
		t.Skip("needs a real API server: ", err)
	}
	cp := controlplanetest.Start(t, controlplane.Config{})
	client, _, err := cluster.NewClient(cluster.ClientConfig{Kubeconfig: cp.Kubeconfig()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Check(t.Context(), client, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	x := startWatcher(t, &memorySink{}, client, nil)
	if err := cp.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Check(t.Context(), client, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "is it up") {
		t.Errorf("%v", err)
	}
	clustertest.Eventually(t, func() string {
		if strings.Contains(x.log.String(), "cannot watch") {
			return ""
		}
		return "the warning"
	})
	if err := cp.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	j, err := client.BatchV1().Jobs("default").Create(t.Context(), clustertest.Job("late"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	key := events.Key{Function: "job", Namespace: "default", UID: j.UID}
	clustertest.Eventually(t, func() string {
		if len(x.sink.about(key)) == 0 {
			return "a fact about the Job; log:\n" + x.log.String()
		}
		return ""
	})
	t.Run("and learns that it no longer knows an old version", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), clustertest.Timeout)
		defer cancel()
		for what, open := range map[string]func(context.Context, metav1.ListOptions) (watch.Interface, error){
			"Jobs": client.BatchV1().Jobs("").Watch, "Pods": x.watchPods(cluster.MarkedPods),
		} {
			if err := x.follow(ctx, what, 1, open, x.onPod); !cluster.Expired(err) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
	if n := strings.Count(x.log.String(), "level=WARN"); n > 4 {
		t.Errorf("%d warnings:\n%s", n, x.log.String())
	}
}
