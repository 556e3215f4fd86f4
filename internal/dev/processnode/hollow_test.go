package processnode

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

func TestHollowPods(t *testing.T) {
	w := newWorld(t, Config{Hollow: true})
	p := shell("part", "this is not run")
	p.Annotations = map[string]string{DurationAnnotation: "300ms", ExitCodeAnnotation: "3"}
	began := time.Now()
	w.create(p)
	if s := mainState(t, w.awaitPhase("part", v1.PodFailed)); s.ExitCode != 3 || s.Reason != "Error" {
		t.Errorf("state is %+v", s)
	}
	if took := time.Since(began); took < 300*time.Millisecond {
		t.Errorf("it ended after %v", took)
	}
	w.create(shell("short", ""))
	w.awaitPhase("short", v1.PodSucceeded)

	long := shell("long", "")
	long.Annotations = map[string]string{DurationAnnotation: "1h"}
	w.create(long)
	w.awaitPhase("long", v1.PodRunning)
	w.delete("long", metav1.DeleteOptions{})
	w.awaitGone("long")
}

// Every Pod of a burst is run once and comes to its end, many more than there are slots.
func TestBurst(t *testing.T) {
	w := newWorld(t, Config{MaxPods: 20})
	w.burst(100)
}

// BenchmarkPods measures what a Pod costs from its creation to its end, with the API server, on all cores: pods/s.
func BenchmarkPods(b *testing.B) {
	for _, hollow := range []bool{false, true} {
		b.Run(fmt.Sprintf("hollow=%v", hollow), func(b *testing.B) {
			const pods = 300
			for b.Loop() {
				b.StopTimer()
				w := newWorld(b, Config{Hollow: hollow})
				b.StartTimer()
				began := time.Now()
				w.burst(pods)
				b.ReportMetric(pods/time.Since(began).Seconds(), "pods/s")
				b.StopTimer()
				w.stop()
				b.StartTimer()
			}
		})
	}
}

// burst creates many Pods at once and returns when all have succeeded.
func (w *world) burst(count int) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), timeout)
	defer cancel()
	succeeded := make(chan string, count)
	observation := func(p *v1.Pod) {
		if p.Namespace == w.namespace && p.Status.Phase == v1.PodSucceeded {
			succeeded <- p.Name
		}
	}
	// A reflector: the API server ends the watches of those who are slow for a moment, on a machine as busy as this one.
	go watch(klog.NewContext(ctx, klog.Logger{}), w.client, slog.Default(), boundTo(w.config.Name), sink{
		observation: observation, gone: func(*v1.Pod) {}, replace: func(list []*v1.Pod) {
			for _, p := range list {
				observation(p)
			}
		},
	})
	var group errgroup.Group
	group.SetLimit(16)
	group.Go(func() error {
		for i := range count {
			group.Go(func() error {
				p := shell(fmt.Sprintf("burst-%d", i), "true")
				p.Spec.NodeSelector = map[string]string{v1.LabelHostname: w.config.Name}
				_, err := w.client.CoreV1().Pods(w.namespace).Create(ctx, p, metav1.CreateOptions{})
				return err
			})
		}
		return nil
	})
	for ended := map[string]bool{}; len(ended) < count; {
		select {
		case name := <-succeeded:
			ended[name] = true
		case <-ctx.Done():
			w.Fatalf("%d of %d pods have succeeded", len(ended), count)
		}
	}
	if err := group.Wait(); err != nil {
		w.Fatal(err)
	}
}
