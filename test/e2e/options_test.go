package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// annotated adds an annotation of jobstream's to the Job.
func annotated(j *batchv1.Job, annotation, value string) *batchv1.Job {
	if j.Annotations == nil {
		j.Annotations = map[string]string{}
	}
	j.Annotations[annotation] = value
	return j
}

// backoff-seconds makes retries come sooner, and failed-pods-limit keeps only the newest failed Pods. All are counted.
func TestRetriesComeSoonerAndFewFailedPodsStay(t *testing.T) {
	t.Parallel()
	p, ledger := shared(t).Space(t), harness.NewLedger(t)
	j := harness.Shell("impatient", ledger.Script("0", "code=1"), harness.Size(1, 1, 3))
	p.Apply(annotated(annotated(j, v1alpha1.BackoffSecondsAnnotation, "1"), v1alpha1.FailedPodsLimitAnnotation, "1"))
	end := p.AwaitEnd("impatient", batchv1.JobFailed, time.Minute)
	if ran := ledger.Read(t); ran.Failed != 4 || end.Status.Failed != 4 {
		t.Errorf("%d Pods have failed: %s", ran.Failed, harness.Brief(end.Status))
	}
	gaps, sum := creationGaps(t, p), time.Duration(0)
	for i, least := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		if i >= len(gaps) || gaps[i] < least-apiSecond {
			t.Fatalf("Pods were created %v after one another, want 1, 2 and 4 s", gaps)
		}
		sum += gaps[i]
	}
	if byDefault := 70 * time.Second; sum >= byDefault {
		t.Errorf("Pods were created %v after one another, want 1, 2 and 4 s, not 10, 20 and 40", gaps)
	}
	harness.Until(t, 30*time.Second, "one failed Pod to be left", func(context.Context) error {
		if pods := p.Pods("impatient"); len(pods) != 1 || len(harness.Held(pods)) > 0 {
			return fmt.Errorf("%d are, held %v", len(pods), harness.Held(pods))
		}
		return nil
	})
}

// apiSecond is the error of times in the API server, which truncates them to seconds.
const apiSecond = time.Second

// creationGaps returns the times between the creations of Pods in the namespace.
func creationGaps(t *testing.T, p *harness.Space) (gaps []time.Duration) {
	t.Helper()
	requests, err := p.Requests(p.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	var last time.Time
	for _, r := range requests {
		if !harness.PodCreation(r) || r.Code != http.StatusCreated {
			continue
		}
		if !last.IsZero() {
			gaps = append(gaps, r.At.Sub(last).Round(time.Millisecond))
		}
		last = r.At
	}
	return gaps
}

// A Pod that cannot start fails in time, if its Job demands it: one that no node takes, and one whose configuration is missing.
func TestPodThatCannotStartFailsInTime(t *testing.T) {
	for name, change := range map[string]func(*corev1.PodSpec){
		"no node takes it": func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"example.com/none": "here"} },
		"its configuration is missing": func(s *corev1.PodSpec) {
			s.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "missing"}}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := shared(t).Space(t)
			j := harness.Shell("pending", "true", harness.Size(1, 1, 0))
			change(&j.Spec.Template.Spec)
			began := time.Now()
			p.Apply(annotated(j, v1alpha1.PendingDeadlineSecondsAnnotation, "3"))
			end := p.AwaitEnd("pending", batchv1.JobFailed, time.Minute)
			if took := time.Since(began); took < 3*time.Second-apiSecond || took > seconds {
				t.Errorf("it took %v, want 3 s", took)
			}
			if c := harness.Condition(end, batchv1.JobFailed); c.Reason != batchv1.JobReasonBackoffLimitExceeded || end.Status.Failed != 1 {
				t.Errorf("it is %s", harness.Brief(end.Status))
			}
			awaitTold(t, p, "pending", []string{"Warning", v1alpha1.PendingDeadlineSecondsAnnotation})
			awaitHeldNone(t, p)
		})
	}
}

// A Pod that could not start in time is replaced like any other failed Pod, and the next one may start.
func TestPodThatIsReplacedMayStart(t *testing.T) {
	t.Parallel()
	p := shared(t).Space(t)
	j := harness.Shell("pending", `[ "$WORD" = now ]`, harness.Size(1, 1, 3))
	j.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "WORD", ValueFrom: &corev1.EnvVarSource{
		ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "late"}, Key: "word"}}}}
	p.Apply(annotated(annotated(j, v1alpha1.PendingDeadlineSecondsAnnotation, "8"), v1alpha1.BackoffSecondsAnnotation, "1"))
	p.Await("pending", time.Minute, "to have failed once", func(j *batchv1.Job) bool { return j.Status.Failed >= 1 })
	putLists(t, p, "late", map[string]string{"word": "now"}, true)
	if end := p.AwaitEnd("pending", batchv1.JobComplete, time.Minute); end.Status.Succeeded != 1 {
		t.Errorf("it is %s", harness.Brief(end.Status))
	}
}

// An invalid annotation is ignored, and reported as ignored.
func TestOptionThatCannotBeReadIsIgnoredAndReported(t *testing.T) {
	for _, tt := range []struct{ name, annotation, value string }{
		{"restarted in place", v1alpha1.BackoffSecondsAnnotation, "1"},
		{"no number", v1alpha1.FailedPodsLimitAnnotation, "many"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := shared(t).Space(t)
			j := harness.Shell("optional", "true", harness.Size(1, 1, 0))
			j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
			p.Apply(annotated(j, tt.annotation, tt.value))
			end := p.AwaitEnd("optional", batchv1.JobComplete, time.Minute)
			if c := harness.Condition(end, v1alpha1.IgnoredCondition); c == nil || c.Status != corev1.ConditionTrue || !strings.Contains(c.Message, tt.annotation) {
				t.Errorf("it is %s", harness.Brief(end.Status))
			}
			awaitTold(t, p, "optional", []string{"Warning", "AnnotationIgnored", tt.annotation})
		})
	}
}

// awaitTold waits until the Events of "kubectl describe" have all these words in one line.
func awaitTold(t *testing.T, p *harness.Space, job string, words []string) {
	t.Helper()
	harness.Until(t, timeout, "kubectl describe to show "+strings.Join(words, " "), func(context.Context) error {
		text := p.Describe(job)
		_, events, _ := strings.Cut(text, "\nEvents:")
		for line := range strings.Lines(events) {
			if hasAll(line, words) {
				return nil
			}
		}
		return fmt.Errorf("it shows:\n%s", text)
	})
}

// putLists creates the ConfigMap, or replaces it.
func putLists(t *testing.T, p *harness.Space, name string, data map[string]string, immutable bool) {
	t.Helper()
	maps := p.Client.CoreV1().ConfigMaps(p.Namespace)
	_ = maps.Delete(t.Context(), name, metav1.DeleteOptions{}) // it may not exist
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data, Immutable: ptr.To(immutable)}
	if _, err := maps.Create(t.Context(), c, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
