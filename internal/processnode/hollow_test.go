package processnode

import (
	"context"
	"fmt"
	"os"
	"runtime/pprof"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestHollowPods(t *testing.T) {
	w := newWorld(t, Config{Hollow: true})
	p := shell("part", "this is not run")
	p.Annotations = map[string]string{DurationAnnotation: "300ms", ExitCodeAnnotation: "3"}
	w.create(p)
	w.awaitPhase("part", v1.PodRunning)
	if s := mainState(t, w.awaitPhase("part", v1.PodFailed)); s.ExitCode != 3 || s.Reason != "Error" {
		t.Errorf("state is %+v", s)
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
	watch, err := w.client.CoreV1().Pods(w.namespace).Watch(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	defer watch.Stop()
	var group errgroup.Group
	group.SetLimit(16)
	go func() {
		for i := range count {
			group.Go(func() error {
				p := shell(fmt.Sprintf("burst-%d", i), "true")
				p.Spec.NodeSelector = map[string]string{v1.LabelHostname: w.config.Name}
				_, err := w.client.CoreV1().Pods(w.namespace).Create(w.Context(), p, metav1.CreateOptions{})
				return err
			})
		}
	}()
	ended := map[string]bool{}
	timeout := time.After(patience)
	for len(ended) < count {
		select {
		case e, open := <-watch.ResultChan():
			if !open {
				w.Fatalf("the test's watch has ended after %d of %d pods", len(ended), count)
			}
			if p, ok := e.Object.(*v1.Pod); ok && p.Status.Phase == v1.PodSucceeded {
				ended[p.Name] = true
			}
		case <-timeout:
			list, _ := w.client.CoreV1().Pods(w.namespace).List(context.Background(), metav1.ListOptions{})
			for _, p := range list.Items {
				if p.Status.Phase != v1.PodSucceeded {
					w.Logf("%s %q %s %+v", p.Name, p.Spec.NodeName, p.Status.Phase, p.Status.ContainerStatuses)
				}
			}
			pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
			w.Fatalf("%d of %d pods have succeeded", len(ended), count)
		}
	}
	if err := group.Wait(); err != nil {
		w.Fatal(err)
	}
}
