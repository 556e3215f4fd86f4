package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/bits"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/dev/size"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// A user changes a Job all the time: every write of the reconciler meets a conflict sooner or later.
func TestJobThatChangesUnderUsIsCountedExactly(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, indexed bool) {
		b := startBatch(t, shared(t), 200, 20, indexed)
		changes := meddle(t, b.Space, b.job.Name)
		b.finish(t)
		requests, err := b.Requests(b.Namespace)
		if err != nil {
			t.Fatal(err)
		}
		conflicts := harness.Count(requests, func(r harness.Request) bool { return r.Resource == "jobs/status" && r.Code == http.StatusConflict })
		t.Logf("%d changes, %d status writes met a conflict", changes(), conflicts)
		if conflicts == 0 {
			t.Error("no write met a conflict: this run proves nothing")
		}
		switch end := b.Job(b.job.Name); {
		case end.Annotations["example.com/change"] == "":
			t.Error("the change is lost")
		case end.Annotations["example.com/first"] != "kept":
			t.Error("an older change is lost")
		}
	})
}

// meddle changes an annotation of the Job again and again, until the test ends or changes is called, which returns their number.
func meddle(t *testing.T, p *harness.Space, job string) (changes func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	n := 0
	patch := func(key, value string) error {
		change := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, value)
		_, err := p.Client.BatchV1().Jobs(p.Namespace).Patch(ctx, job, types.MergePatchType, change, metav1.PatchOptions{})
		return err
	}
	if err := patch("example.com/first", "kept"); err != nil {
		t.Fatal(err)
	}
	done.Go(func() {
		for ; ctx.Err() == nil; n++ {
			if err := patch("example.com/change", fmt.Sprint(n)); err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
		}
	})
	stop := func() int { cancel(); done.Wait(); return n }
	t.Cleanup(func() { stop() })
	return stop
}

// A webhook forbids removing the finalizer: the Job waits, names the webhook, and continues when it may.
func TestWebhookThatKeepsOurFinalizerIsNamedAndWaitedFor(t *testing.T) {
	t.Parallel()
	const completions = 4
	p, ledger := shared(t).Space(t), harness.NewLedger(t)
	gate := t.TempDir() + "/go"
	p.Apply(harness.Shell("watched", ledger.Script("0", "until [ -e '"+gate+"' ]; do sleep 0.2; done"), harness.Size(completions, completions, 0)))
	p.Await("watched", time.Minute, "to run", func(j *batchv1.Job) bool { return j.Status.Ready != nil && *j.Status.Ready == completions })

	webhook := p.Webhook("finalizers.example.com")
	const why = "finalizers belong to the platform team"
	webhook.Forbid(func(old, now *corev1.Pod) string {
		if slices.Contains(old.Finalizers, batchv1.JobTrackingFinalizer) && !slices.Contains(now.Finalizers, batchv1.JobTrackingFinalizer) {
			return why
		}
		return ""
	})
	webhook.AwaitForce(t, p, p.Pods("watched")[0].Name)
	began := time.Now()
	touch(t, gate)
	j := p.Await("watched", time.Minute, "to report that it is refused", func(j *batchv1.Job) bool { return harness.Is(j, v1alpha1.RefusedCondition) })
	if c := harness.Condition(j, v1alpha1.RefusedCondition); !hasAll(c.Message, []string{webhook.Name, why}) {
		t.Errorf("the condition is %s: %s", c.Reason, c.Message)
	}
	harness.Until(t, timeout, "kubectl describe to name what blocks", func(context.Context) error {
		text := p.Describe("watched")
		_, events, _ := strings.Cut(text, "\nEvents:")
		if !hasAll(events, []string{"Warning", webhook.Name, why}) {
			return fmt.Errorf("it shows:\n%s", text)
		}
		return nil
	})
	harness.Pass(t, watchedFor)
	// The first rounds request all, one by one as they end, and each attempt after 1, 2, 4, … seconds at most all of them again.
	took := time.Since(began)
	if n := webhook.Refused(); n > (2+bits.Len(uint(took.Seconds())))*completions {
		t.Errorf("a busy loop: %d refusals in %v", n, took)
	}
	if j := p.Job("watched"); harness.Is(j, batchv1.JobComplete) || len(harness.Held(p.Pods("watched"))) != completions {
		t.Errorf("it did not wait: %s", harness.Brief(j.Status))
	}

	webhook.Forbid(nil)
	end := p.AwaitEnd("watched", batchv1.JobComplete, 2*time.Minute)
	if sum := ledger.Read(t); sum.Succeeded != completions || len(sum.Codes) != completions || end.Status.Succeeded != completions || end.Status.Failed != 0 {
		t.Errorf("%d Pods have run: %s", len(sum.Codes), harness.Brief(end.Status))
	}
	if harness.Is(end, v1alpha1.RefusedCondition) {
		t.Errorf("a complete Job is refused: %s", harness.Brief(end.Status))
	}
	awaitHeldNone(t, p)
}

// An API server that answers everything with 429 and 500 for a while, as an overloaded one does: work resumes, and nothing is
// done twice.
func TestAPIServerThatAnswers429And500MiscountsNothing(t *testing.T) {
	t.Parallel()
	s := own(t, harness.Config{Proxied: true})
	eachMode(t, func(t *testing.T, indexed bool) {
		b := startBatch(t, s, 300, 50, indexed)
		b.awaitDone(60)
		s.Proxy.Begin(inTurn(tooManyRequests, internalError))
		harness.Pass(t, size.OutageTime)
		at := b.Job(b.job.Name).Status
		t.Logf("%d requests were answered with 429 or 500; then the Job was %s", s.Proxy.End(), harness.Brief(at))
		if int(at.Succeeded) >= b.completions {
			t.Fatal("the run was over before the trouble was: this test would prove nothing")
		}
		b.finish(t)
		for _, p := range append(s.Triggers, s.Reconcilers...) {
			if !p.Running() {
				t.Errorf("%s did not survive: %s", p.Name, harness.Tail(p.Printed(), 5))
			}
		}
	})
	t.Run("WhoeverDescribesTheJobLearnsOfIt", func(t *testing.T) { failingCreationsAreTold(t, s) })
}

// failingCreationsAreTold: if the API server cannot create Pods, but can do all else, that is reported where users look.
func failingCreationsAreTold(t *testing.T, s *harness.System) {
	p, ledger := s.Space(t), harness.NewLedger(t)
	s.Proxy.Begin(func(out http.ResponseWriter, in *http.Request) bool {
		return in.Method == http.MethodPost && strings.HasSuffix(in.URL.Path, "/pods") && internalError(out, in)
	})
	t.Cleanup(func() { s.Proxy.End() })
	p.Apply(harness.Shell("stuck", ledger.Script("0", ""), harness.Size(3, 3, 0)))
	harness.Until(t, time.Minute, "kubectl describe to name what blocks", func(context.Context) error {
		text := p.Describe("stuck")
		_, events, _ := strings.Cut(text, "\nEvents:")
		if !hasAll(events, []string{"Warning", "FailedCreate", "500"}) {
			return fmt.Errorf("it shows:\n%s", text)
		}
		return nil
	})
	s.Proxy.End()
	end := p.AwaitEnd("stuck", batchv1.JobComplete, 2*time.Minute)
	if sum := ledger.Read(t); sum.Succeeded != 3 || len(sum.Codes) != 3 || end.Status.Succeeded != 3 || end.Status.Failed != 0 {
		t.Errorf("%d Pods have run: %s", len(sum.Codes), harness.Brief(end.Status))
	}
	awaitHeldNone(t, p)
}

// inTurn gives the answers in turn.
func inTurn(answers ...harness.Answer) harness.Answer {
	var mu sync.Mutex
	n := 0
	return func(out http.ResponseWriter, in *http.Request) bool {
		mu.Lock()
		n++
		answer := answers[n%len(answers)]
		mu.Unlock()
		return answer(out, in)
	}
}

func tooManyRequests(out http.ResponseWriter, _ *http.Request) bool {
	out.Header().Set("Retry-After", "1")
	return say(out, metav1.Status{Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests, Message: "too many requests, please try again later"})
}

func internalError(out http.ResponseWriter, _ *http.Request) bool {
	return say(out, metav1.Status{Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: "etcdserver: request timed out"})
}

func say(out http.ResponseWriter, s metav1.Status) bool {
	s.TypeMeta, s.Status = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, metav1.StatusFailure
	out.Header().Set("Content-Type", "application/json")
	out.WriteHeader(int(s.Code))
	_ = json.NewEncoder(out).Encode(s) // fails if the client has closed the connection, and then has no reader
	return true
}
