package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/test/bench/report"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// holdTimeout bounds the time in which one number of reconcilers creates all Pods.
const holdTimeout = 10 * time.Minute

// hold starts the same Jobs with one reconciler and with four, each limited to a few requests at a time over a slow connection.
func (o options) hold(ctx context.Context, dir string) error {
	report.Say("building")
	programs, err := harness.BuildPrograms(ctx, filepath.Join(dir, "bin"))
	if err != nil {
		return err
	}
	rows := [][]string{{"reconcilers", "Jobs", "Pods", "requests", "first without work", "until all were made", "Pods/s", "times one"}}
	var alone float64
	for _, n := range []int{1, 4} {
		h, err := o.holdOne(ctx, filepath.Join(dir, "hold-"+strconv.Itoa(n)), programs, n)
		if err != nil {
			return err
		}
		rate := float64(o.jobs*o.pods) / h.took.Seconds()
		if alone == 0 {
			alone = rate
		}
		rows = append(rows, []string{strconv.Itoa(n), strconv.Itoa(o.jobs), strconv.Itoa(o.jobs * o.pods), strconv.Itoa(h.requests), report.Seconds(h.first), report.Seconds(h.took),
			fmt.Sprintf("%.1f", rate), fmt.Sprintf("%.2f", rate/alone)})
	}
	fmt.Printf("\nEvery request of a reconciler takes %v longer, and each has at most %d under way. No Pod is scheduled, so that no node takes part.\n\n", o.latency, o.requests)
	report.Table(rows)
	return nil
}

func (o options) holdOne(ctx context.Context, dir string, programs harness.Programs, reconcilers int) (h held, err error) {
	report.Say("%d reconcilers, %d Jobs of %d Pods", reconcilers, o.jobs, o.pods)
	system, err := harness.StartSystem(ctx, harness.Config{
		Programs: programs, Dir: dir, Reconcilers: reconcilers, Proxied: true, Flags: []string{"--log-level=info"},
		ReconcilerFlags: []string{"--concurrent-requests=" + strconv.Itoa(o.requests)},
	})
	if err != nil {
		return h, err
	}
	defer func() { err = errors.Join(err, system.Stop()) }()
	t := &traffic{last: map[string]time.Time{}}
	system.Proxy.Begin(func(_ http.ResponseWriter, r *http.Request) bool {
		t.see(r)
		select {
		case <-time.After(o.latency):
		case <-r.Context().Done():
		}
		return false
	})
	ctx, cancel := context.WithTimeout(ctx, holdTimeout)
	defer cancel()
	for _, p := range system.Reconcilers {
		if err := harness.Ready(ctx, p); err != nil {
			return h, err
		}
	}
	w, err := system.Client.CoreV1().Pods(holdNamespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return h, err
	}
	defer w.Stop()
	began := t.begin()
	if err := o.makeJobs(ctx, system.Client); err != nil {
		return h, err
	}
	if err := o.awaitPods(ctx, w); err != nil {
		return h, err
	}
	return t.end(began), nil
}

const holdNamespace = "hold"

// makeJobs creates all Jobs, much faster than one reconciler can run them.
func (o options) makeJobs(ctx context.Context, c kubernetes.Interface) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: holdNamespace}}
	if _, err := c.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for i := range o.jobs {
		g.Go(func() error {
			_, err := c.BatchV1().Jobs(holdNamespace).Create(ctx, &batchv1.Job{
				ObjectMeta: metav1.ObjectMeta{Name: "job-" + strconv.Itoa(i)}, // its Pods wait for a scheduler for ever
				Spec: batchv1.JobSpec{ManagedBy: ptr.To(v1alpha1.DefaultManagedBy), Completions: ptr.To(int32(o.pods)),
					Parallelism: ptr.To(int32(o.pods)), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
						SchedulingGates: []corev1.PodSchedulingGate{{Name: "example.com/never"}},
						Containers:      []corev1.Container{{Name: "main", Image: "none", Command: []string{"true"}}}}}},
			}, metav1.CreateOptions{})
			return err
		})
	}
	return g.Wait()
}

// awaitPods returns when all Pods of all Jobs have been created.
func (o options) awaitPods(ctx context.Context, w watch.Interface) error {
	made := map[types.UID]bool{}
	for e := range w.ResultChan() {
		if p, ok := e.Object.(*corev1.Pod); ok {
			made[p.UID] = true
		}
		if len(made) == o.jobs*o.pods {
			return nil
		}
	}
	return fmt.Errorf("%d of %d Pods had been made when the wait ended: %w", len(made), o.jobs*o.pods, context.Cause(ctx))
}
