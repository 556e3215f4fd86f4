package kubectl

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
)

// spoken is an output that can be read while it is written.
type spoken struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *spoken) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *spoken) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// running is a call that has not ended.
type running struct {
	w         *world
	watches   atomic.Int32 // watches begun so far
	out, err  spoken
	interrupt func()
	code      chan int
}

func (w *world) start(args []string, change ...func(*tool)) *running {
	w.Helper()
	r := &running{w: w, code: make(chan int, 1)}
	p := newTool(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &r.out, ErrOut: &r.err})
	w.here(p)
	wrap := p.config.WrapConfigFn
	p.config.WrapConfigFn = func(c *rest.Config) *rest.Config {
		c = wrap(c)
		c.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTrip(func(q *http.Request) (*http.Response, error) {
				if q.URL.Query().Get("watch") != "" {
					r.watches.Add(1)
				}
				return next.RoundTrip(q)
			})
		})
		return c
	}
	for _, f := range change {
		f(p)
	}
	ctx, cancel := context.WithCancel(w.Context())
	w.Cleanup(cancel)
	r.interrupt = cancel
	go func() { r.code <- execute(ctx, p, "kubectl jobstream", args) }()
	return r
}

// says waits until the plugin has printed the text on either output.
func (r *running) says(text string) {
	r.w.Helper()
	eventually(r.w, func() string {
		if got := r.out.String() + r.err.String(); !strings.Contains(got, text) {
			return text + " in " + got
		}
		return ""
	})
}

// listed waits until the plugin has listed the objects, and watches.
func (r *running) listed() {
	r.w.Helper()
	eventually(r.w, func() string {
		if r.watches.Load() == 0 {
			return "it to watch"
		}
		return ""
	})
}

func (r *running) ends(code int) {
	r.w.Helper()
	select {
	case got := <-r.code:
		if got != code {
			r.w.Errorf("exit code %d, want %d: %s%s", got, code, r.out.String(), r.err.String())
		}
	case <-time.After(patience):
		r.w.Fatalf("it goes on: %s%s", r.out.String(), r.err.String())
	}
}

// apply creates a Job that no controller runs.
func (w *world) apply(name string, labels map[string]string) {
	w.Helper()
	by := "example.com/none"
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: batchv1.JobSpec{ManagedBy: &by, Template: corev1.PodTemplateSpec{
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "busybox"}}}}}}
	if _, err := w.BatchV1().Jobs(w.ns).Create(w.Context(), j, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) complete(name string) {
	w.end(name, batchv1.JobSuccessCriteriaMet, batchv1.JobComplete)
}
func (w *world) fail(name string) { w.end(name, batchv1.JobFailureTarget, batchv1.JobFailed) }

// TestWatchNamed: the command ends when the named Jobs have ended, in whatever way; a deleted one is an error.
func TestWatchNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c", "other"} {
		w.apply(name, nil)
	}
	r := w.start([]string{"watch", "a", "job.batch/b"})
	r.says("a state=Waiting succeeded=0/1 active=0 failed=0\n")
	w.complete("a")
	r.says("a state=Complete")
	w.fail("b")
	r.ends(0)
	r.says("b state=Failed succeeded=0/1 active=0 failed=0 reason=Because message=\"of a test\"")
	if strings.Contains(r.out.String(), "other") || strings.Contains(r.out.String(), "\x1b") {
		t.Errorf("it shows more than it should: %q", r.out.String())
	}
	gone := w.start([]string{"watch", "a", "c"})
	gone.says("c state=Waiting")
	w.delete("c")
	gone.ends(ExitFailed)
	gone.says("c state=Deleted")
	gone.says("error: deleted before its end: c")
}

// TestWatchAll: Jobs that ended before are not shown, new ones are; Ctrl-C ends the command.
func TestWatchAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	label := map[string]string{"app": "render"}
	w.apply("old", label)
	w.complete("old")
	r := w.start([]string{"watch", "-l", "app=render"})
	r.says("no Job is unfinished; waiting for one, until Ctrl-C")
	w.apply("new", label)
	w.apply("stranger", nil)
	r.says("new state=Waiting")
	w.delete("new")
	r.says("job.batch/new was deleted")
	r.interrupt()
	r.ends(0)
	if got := r.out.String(); strings.Contains(got, "old") || strings.Contains(got, "stranger") {
		t.Errorf("it shows more than it should: %s", got)
	}
	w.apply("everywhere", nil)
	all := w.start([]string{"watch", "-A", "--timeout=10m"})
	all.says("everywhere state=Waiting")
	all.interrupt()
	all.ends(0)
}

// TestWaitForJobs: complete or failed, whichever comes first, and an exit code for each.
func TestWaitForJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	render := map[string]string{"app": "render"}
	w.apply("a", render)
	w.apply("b", render)
	w.apply("c", nil)
	one, both, late := w.start([]string{"wait", "a"}), w.start([]string{"wait", "-l", "app=render"}), w.start([]string{"wait", "c", "--timeout=5s"})
	late.ends(ExitTimeout)
	late.says("error: 1 of 1 Jobs have not ended within 5s; they go on")
	stopped := w.start([]string{"wait", "c"})
	both.listed() // a selector covers existing Jobs only
	w.fail("a")
	one.ends(ExitFailed)
	one.says("job.batch/a has failed: Because: of a test (0 succeeded, 0 failed")
	one.says("error: not complete: a")
	w.complete("b")
	both.ends(ExitFailed)
	both.says("job.batch/b is complete: 0 succeeded, 0 failed")
	stopped.interrupt()
	stopped.ends(ExitInterrupted)
	gone := w.start([]string{"wait", "c"})
	w.start([]string{"wait", "b"}).ends(0)
	gone.listed()
	w.delete("c")
	gone.ends(ExitFailed)
	gone.says("job.batch/c was deleted")
	w.start([]string{"wait", "-l", "app=none"}).ends(ExitFailed)
	missing := w.start([]string{"wait", "nowhere"})
	missing.ends(ExitFailed)
	missing.says("error: there is no Job nowhere in the namespace " + w.ns)
}

// TestWatchSurvivesALostConnection: when a watch breaks, changes during the gap are still seen, including deletions.
func TestWatchSurvivesALostConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply("a", nil)
	w.apply("b", nil)
	var away atomic.Bool
	var asked atomic.Int32
	r := w.start([]string{"watch", "a", "b"}, func(p *tool) {
		wrap := p.config.WrapConfigFn
		p.config.WrapConfigFn = func(c *rest.Config) *rest.Config {
			c = wrap(c)
			c.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return roundTrip(func(q *http.Request) (*http.Response, error) {
					if away.Load() {
						asked.Add(1)
						return nil, errors.New("no way to the API server")
					}
					answer, err := next.RoundTrip(q)
					if q.URL.Query().Get("watch") != "" && answer != nil {
						away.Store(true)
						answer.Body.Close()
					}
					return answer, err
				})
			})
			return c
		}
	})
	eventually(t, func() string {
		if asked.Load() == 0 {
			return "it to ask again"
		}
		return ""
	})
	w.complete("a")
	w.delete("b")
	r.says("trying again")
	away.Store(false)
	r.ends(ExitFailed)
	r.says("a state=Complete")
	r.says("b state=Deleted")
}

// TestLogsThatAreNotThere: without a node there are no logs. test/e2e covers real logs.
func TestLogsThatAreNotThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply("a", nil)
	for _, tt := range []struct {
		args []string
		says string
	}{
		{[]string{"logs", "nowhere"}, "error: there is no Job nowhere in the namespace " + w.ns},
		{[]string{"logs", "a"}, "error: no Pod of the Job a has such logs: kubectl get pods -n " + w.ns + " -l batch.kubernetes.io/job-name=a shows its Pods"},
		{[]string{"logs", "a", "--index=3"}, "error: --index=3: the Job a is not Indexed, so its Pods have none: leave it out"},
	} {
		r := w.start(tt.args)
		r.ends(ExitFailed)
		r.says(tt.says)
	}
	follow := w.start([]string{"logs", "job/a", "-f"})
	w.complete("a")
	follow.ends(0)
}

// TestWrongCommandLinesAboutJobs: as TestWrongCommandLines.
func TestWrongCommandLinesAboutJobs(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("HOME", t.TempDir())
	for _, tt := range []struct {
		args []string
		says string
	}{
		{[]string{"watch", "a", "-A"}, "a name belongs to one namespace: leave out --all-namespaces, or the names"},
		{[]string{"watch", "a", "-l", "app=x"}, "--selector selects the Jobs: leave it out, or the names"},
		{[]string{"watch", "--timeout=-1s"}, "--timeout=-1s is in the past: write a time such as 5m"},
		{[]string{"wait"}, "there is no Job to wait for: write its name, or --selector=LABELS"},
		{[]string{"wait", "a", "-l", "app=x"}, "--selector selects the Jobs: leave it out, or the names"},
		{[]string{"wait", "a", "--timeout=-1s"}, "--timeout=-1s is in the past: write a time such as 5m"},
		{[]string{"logs"}, "write the name of one Job, as in: logs JOB"},
		{[]string{"logs", "a", "b"}, "write the name of one Job, as in: logs JOB"},
		{[]string{"logs", "a", "--index=x"}, "--index=x: write numbers in order, such as 3 or 0-4,7"},
		{[]string{"logs", "a", "--index=7,3"}, "--index=7,3: write numbers in order, such as 3 or 0-4,7"},
		{[]string{"logs", "a", "-f", "--previous"}, "--previous is about containers that have ended: leave out --follow"},
	} {
		got := call(t, "", tt.args)
		if got.code != ExitUsage || !strings.HasPrefix(got.err, "error: "+tt.says+"\n") {
			t.Errorf("%v: want exit code %d and %q, got %s", tt.args, ExitUsage, tt.says, got)
		}
	}
}
