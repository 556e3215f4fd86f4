package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

// The built-in Job controller removes the finalizer from a Pod being deleted whose Job it does not know, since it takes the Job
// for deleted. That is an error while its watch of Jobs is behind its watch of Pods, as it may be after an outage of the API
// server, and nothing prevents it. The Pod is then not counted, like any whose finalizer a user has removed. Another Pod does
// its work.
func TestBuiltInControllerThatIsBehindLosesNoWork(t *testing.T) {
	t.Parallel()
	s := own(t, harness.Config{NoBuiltInJobs: true, Proxied: true})
	p := s.Space(t)
	startBuiltIn(t, s)
	theirs := harness.Shell("theirs", "true", harness.Size(1, 1, 0))
	theirs.Spec.ManagedBy = nil
	p.Apply(theirs)
	p.AwaitEnd("theirs", batchv1.JobComplete, time.Minute) // it works
	s.Proxy.Begin(func(out http.ResponseWriter, in *http.Request) bool {
		return strings.HasPrefix(in.UserAgent(), "kube-controller-manager") && in.URL.Path == "/apis/batch/v1/jobs" && internalError(out, in)
	})
	// The first Pod outlives SIGTERM: had it failed while it was still held, it would rightly be counted. For the same reason a Pod
	// that is being deleted must not count yet: the reconciler may learn that it is gone only after it has learned that it was to go.
	trapped := filepath.Join(t.TempDir(), "first")
	script := "trap '' TERM; mkdir " + trapped + " || exit 0; exec sleep 600"
	p.Apply(harness.Shell("ours", script, harness.Size(1, 1, 0), func(s *batchv1.JobSpec) { s.PodReplacementPolicy = ptr.To(batchv1.Failed) }))
	p.Await("ours", time.Minute, "to run", func(j *batchv1.Job) bool { return ptr.Deref(j.Status.Ready, 0) == 1 })
	harness.Until(t, time.Minute, "it to have set its trap", func(context.Context) error { _, err := os.Stat(trapped); return err })
	if err := s.Reconcilers[0].Kill(); err != nil { // otherwise it may be first
		t.Fatal(err)
	}
	first := p.Pods("ours")[0]
	end := func(seconds int64) {
		t.Helper()
		err := p.Client.CoreV1().Pods(p.Namespace).Delete(t.Context(), first.Name, metav1.DeleteOptions{GracePeriodSeconds: &seconds})
		if err != nil {
			t.Fatal(err)
		}
	}
	end(600)
	harness.Until(t, time.Minute, "the running Pod to lose its finalizer, although no controller has counted it", func(context.Context) error {
		if held := harness.Held(p.Pods("ours")); len(held) > 0 {
			return fmt.Errorf("%v is held", held)
		}
		return nil
	})
	end(0)
	startAll(t, s)
	if st := p.AwaitEnd("ours", batchv1.JobComplete, time.Minute).Status; st.Succeeded != 1 || st.Failed != 0 {
		t.Errorf("%s", harness.Brief(st))
	}
	if held := harness.Held(p.Pods("ours")); len(held) > 0 {
		t.Errorf("held are %v", held)
	}
	requests, err := s.Requests(p.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	if n := harness.Count(requests, func(r harness.Request) bool { return r.Name == first.Name && harness.BuiltInPatch(r) }); n < 1 || s.Proxy.End() == 0 {
		t.Errorf("the built-in controller has removed its finalizer %d times: this test proves nothing", n)
	}
}
