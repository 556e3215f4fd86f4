package watch

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/census"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
)

// counting is a Census of one namespace, and a watcher that reports to it.
type counting struct {
	*watching
	*census.Census
	t *testing.T

	mu     sync.Mutex
	starts []string // namespaces and how late the first Pods of Jobs were seen to start
}

func startCounting(t *testing.T, w *world, client kubernetes.Interface, seen *clustertest.Requests) *counting {
	t.Helper()
	out := &counting{t: t}
	out.Census = census.New(census.Config{Schedules: 10, Now: func() time.Time { return clustertest.Noon.Add(1500 * time.Millisecond) },
		Started: func(namespace string, nominal, at time.Time) {
			out.mu.Lock()
			defer out.mu.Unlock()
			out.starts = append(out.starts, fmt.Sprint(namespace, " ", at.Sub(nominal)))
		}})
	out.watching = startWatcher(t, &memorySink{}, client, seen, func(c *Config) {
		c.Namespace, c.ScheduledJobs, c.Meter = w.NS, w.ScheduledJobs, out.Census
	})
	return out
}

// until waits until the Census knows this: Pending Pods by reason, Jobs that back off, starts, ScheduledJobs.
func (c *counting) until(pending map[string]int, backingOff, starts int, schedules ...string) {
	c.t.Helper()
	want := fmt.Sprint(pending, backingOff, starts, schedules)
	clustertest.Eventually(c.t, func() string {
		if got := c.knows(); got != want {
			return fmt.Sprintf("%s; the census knows %s; log:\n%s", want, got, c.log)
		}
		return ""
	})
}

func (c *counting) knows() string {
	pending, schedules := map[string]int{}, []string(nil)
	for i, n := range c.Pending() {
		if n > 0 {
			pending[census.Reasons[i]] = n
		}
	}
	for _, s := range c.Schedules() {
		schedules = append(schedules, s.Name)
	}
	backingOff := c.BackingOff() // before c.mu is locked: the census locks itself, and then c.mu to report a start
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprint(pending, backingOff, len(c.starts), schedules)
}

// TestTheMeterKnowsWhatTheAPIServerHas follows Jobs, Pods and ScheduledJobs of a real API server from the first list to their
// deletion, and lists everything again in between.
func TestTheMeterKnowsWhatTheAPIServerHas(t *testing.T) {
	w := newWorld(t)
	none := map[string]int{}
	listed, _ := w.CreateJob("listed")
	first := w.MakePod(listed, 0)
	hourly, _ := w.CreateSchedule("hourly")
	c := startCounting(t, w, w.Client, w.Requests)
	c.until(map[string]int{"none": 1}, 0, 0, "hourly")

	j := w.MakeRun(hourly, clustertest.Noon)
	p := w.MakePod(j, 0)
	c.until(map[string]int{"none": 2}, 0, 0, "hourly")
	w.setPod(p.Name, func(st *corev1.PodStatus) {
		st.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}}}
	})
	c.until(map[string]int{"none": 1, "ErrImagePull": 1}, 0, 0, "hourly")

	w.EndPod(p.Name, corev1.PodRunning)
	c.until(map[string]int{"none": 1}, 0, 1, "hourly")
	w.MakePod(j, 1)
	w.EndPod(w.MakePod(j, 2).Name, corev1.PodRunning)
	w.setJob(j.Name, func(st *batchv1.JobStatus) {
		st.Failed = 1
		st.Conditions = []batchv1.JobCondition{{Type: v1alpha1.BackingOffCondition, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	})
	w.CreateSchedule("daily")
	c.until(map[string]int{"none": 2}, 1, 1, "daily", "hourly")

	c.Relist()
	w.DeletePodNow(first.Name)
	w.EditPod(first.Name, func(p *corev1.Pod) { p.Finalizers = nil })
	w.DeleteSchedule("hourly")
	c.until(map[string]int{"none": 1}, 1, 1, "daily")
	w.DeleteJob(j.Name)
	c.until(map[string]int{"none": 1}, 0, 1, "daily")
	for _, p := range w.pods() {
		w.DeletePodNow(p)
		w.EditPod(p, func(p *corev1.Pod) { p.Finalizers = nil })
	}
	w.DeleteSchedule("daily")
	c.until(none, 0, 1)
	if !slices.Equal(c.starts, []string{w.NS + " 1.5s"}) {
		t.Errorf("starts %q", c.starts)
	}
}

// A second trigger, or one that starts again, knows the same from its first list, and counts no start again.
func TestAMeterThatStartsAgainCountsNoStartAgain(t *testing.T) {
	w := newWorld(t)
	hourly, _ := w.CreateSchedule("hourly")
	starts, waits := w.MakeRun(hourly, clustertest.Noon), w.MakeRun(hourly, clustertest.Noon.Add(-time.Hour))
	w.EndPod(w.MakePod(starts, 0).Name, corev1.PodRunning)
	p := w.MakePod(waits, 0)
	for range 2 {
		c := startCounting(t, w, w.Client, w.Requests)
		c.until(map[string]int{"none": 1}, 0, 0, "hourly")
		w.TouchPod(w.pods()[0])
		w.TouchPod(w.pods()[1])
	}
	client, seen := clustertest.Client(t)
	var gone atomic.Bool
	seen.Inject(func(q *http.Request) (*http.Response, error) { // and one that has to list everything twice
		if clustertest.IsWatch(q, "jobs") && gone.CompareAndSwap(false, true) {
			return clustertest.Answer(q, http.StatusGone, metav1.Status{Status: "Failure", Code: http.StatusGone, Reason: metav1.StatusReasonExpired}), nil
		}
		return nil, nil
	})
	c := startCounting(t, w, client, seen)
	clustertest.Eventually(t, func() string {
		if c.sessions() < 2 { // what starts between two lists is not counted
			return "the second list; log:\n" + c.log.String()
		}
		return ""
	})
	w.EndPod(p.Name, corev1.PodSucceeded)
	c.until(map[string]int{}, 0, 1, "hourly")
	if want := w.NS + " 1h0m1.5s"; c.starts[0] != want {
		t.Errorf("%q, want %s", c.starts, want)
	}
}

func (w *world) setPod(name string, change func(*corev1.PodStatus)) {
	w.Helper()
	p := w.LivePod(name)
	change(&p.Status)
	if _, err := w.CoreV1().Pods(w.NS).UpdateStatus(w.Context(), p, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) setJob(name string, change func(*batchv1.JobStatus)) {
	w.Helper()
	j := w.LiveJob(name)
	change(&j.Status)
	if _, err := w.BatchV1().Jobs(w.NS).UpdateStatus(w.Context(), j, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// pods are the names of all Pods of the namespace.
func (w *world) pods() (out []string) {
	w.Helper()
	list, err := w.CoreV1().Pods(w.NS).List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	for _, p := range list.Items {
		out = append(out, p.Name)
	}
	return out
}
