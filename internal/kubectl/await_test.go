package kubectl

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
)

// waiting starts "run x --wait" in the background. It returns once the Job exists, with a channel for the result.
func (w *world) waiting(ctx context.Context, args []string, change ...func(*tool)) (ended chan session) {
	w.Helper()
	var out, err bytes.Buffer
	p := newTool(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &err})
	p.takeUpTimeout = 50 * time.Millisecond
	w.here(p)
	for _, f := range change {
		f(p)
	}
	ended = make(chan session, 1)
	go func() {
		code := execute(ctx, p, "kubectl jobstream", append([]string{"run", "x", "--image=busybox"}, args...))
		ended <- session{code, out.String(), err.String()}
	}()
	eventually(w, func() string {
		if len(ended) == 0 && w.job("x") == nil {
			return "the Job"
		}
		return ""
	})
	return ended
}

// TestWait: the exit code is the Job's. test/e2e covers Complete and Failed by a real controller.
func TestWait(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		do   func(w *world, interrupt func())
		code int
		says []string
	}{
		{"complete", []string{"--wait"}, func(w *world, _ func()) { w.end("x", batchv1.JobSuccessCriteriaMet, batchv1.JobComplete) }, 0,
			[]string{"the Job x is complete: 0 succeeded, 0 failed"}},
		{"failed", []string{"--wait"}, func(w *world, _ func()) { w.end("x", batchv1.JobFailureTarget, batchv1.JobFailed) }, ExitFailed,
			[]string{"error: the Job x has failed: Because: of a test (0 succeeded, 0 failed"}},
		{"timeout", []string{"--wait", "--timeout=200ms"}, func(*world, func()) {}, ExitTimeout,
			[]string{"error: the Job x has not ended within 200ms; it goes on"}},
		{"deleted", []string{"--wait"}, func(w *world, _ func()) { w.delete("x") }, ExitFailed,
			[]string{"error: the Job x was deleted"}},
		{"interrupted", []string{"--wait"}, func(_ *world, interrupt func()) { interrupt() }, ExitInterrupted,
			[]string{"error: interrupted: the Job x goes on; kubectl delete job x stops it"}},
		{"complete, with logs", []string{"--logs"}, func(w *world, _ func()) { w.end("x", batchv1.JobSuccessCriteriaMet, batchv1.JobComplete) }, 0,
			[]string{"the Job x is complete"}},
		{"interrupted, with logs", []string{"--logs"}, func(_ *world, interrupt func()) { interrupt() }, ExitInterrupted,
			[]string{"error: interrupted: the Job x goes on"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			ended := w.waiting(ctx, tt.args)
			tt.do(w, interrupt)
			select {
			case got := <-ended:
				if got.code != tt.code || got.out != "job.batch/x created\n" {
					t.Errorf("want exit code %d, got %s", tt.code, got)
				}
				for _, want := range tt.says {
					if !strings.Contains(got.err, want) {
						t.Errorf("it does not say %q: %s", want, got)
					}
				}
			case <-time.After(patience):
				t.Fatal("it still waits")
			}
		})
	}
}

func (w *world) delete(job string) {
	w.Helper()
	if err := w.BatchV1().Jobs(w.ns).Delete(w.Context(), job, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}); err != nil {
		w.Fatal(err)
	}
}

// TestNotTakenUp: without jobstream in the cluster nothing would ever happen, and the plugin warns the user.
func TestNotTakenUp(t *testing.T) {
	w := newWorld(t)
	got := w.call("run", "x", "--image=busybox")
	want := "warning: jobstream has not processed the Job x within 1ms: it waits until jobstream's trigger and reconciler run in this cluster. To look for them: kubectl get deployments -A -l app.kubernetes.io/part-of=jobstream\n"
	if got.code != 0 || got.out != "job.batch/x created\n" || got.err != want {
		t.Errorf("want %q, got %s", want, got)
	}
}

// TestLostConnection: if the API server goes away during a wait, the plugin reports that once, and still sees the end.
func TestLostConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var away atomic.Bool
	var tried atomic.Int32
	ended := w.waiting(t.Context(), []string{"--wait"}, func(p *tool) {
		wrap := p.config.WrapConfigFn
		p.config.WrapConfigFn = func(c *rest.Config) *rest.Config {
			c = wrap(c)
			c.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return roundTrip(func(q *http.Request) (*http.Response, error) {
					if away.Load() && q.Method == http.MethodGet {
						tried.Add(1)
						return nil, errors.New("no way to the API server")
					}
					r, err := next.RoundTrip(q)
					if q.URL.Query().Get("watch") != "" && r != nil {
						away.Store(true)
						r.Body.Close() // breaks the first watch at once
					}
					return r, err
				})
			})
			return c
		}
	})
	eventually(t, func() string {
		if tried.Load() < 2 {
			return "it to try again"
		}
		return ""
	})
	w.end("x", batchv1.JobSuccessCriteriaMet, batchv1.JobComplete) // before the way is free: a second watch would break it again
	away.Store(false)
	select {
	case got := <-ended:
		if got.code != 0 || strings.Count(got.err, "; trying again") != 1 { // of the broken watch, or of the list after it
			t.Errorf("got %s", got)
		}
	case <-time.After(patience):
		t.Fatal("it still waits")
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }
