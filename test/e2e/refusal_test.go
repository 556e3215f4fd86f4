package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// refusal is a reason for which the API server accepts a Job but not its Pods.
type refusal struct {
	name string
	// forbid sets it up, and allow removes it.
	forbid, allow func(t *testing.T, p *harness.Space)
	// change makes the Job one that is refused.
	change func(*batchv1.JobSpec)
	// reason and says are of the condition; says also of the Event.
	reason string
	says   []string
}

// A Job whose Pods are refused reports it where its user looks, retries rarely, and continues as soon as it may.
func TestRefusedPodsAreReportedAndRetried(t *testing.T) {
	for _, r := range []refusal{
		{"quota", setQuota("0"), setQuota("10"), func(*batchv1.JobSpec) {}, "Forbidden", []string{"exceeded quota: few", "pods=0"}},
		{"priority class that does not exist", nothing, makePriorityClass, usePriorityClass, "Forbidden", []string{"PriorityClass", "e2e-urgent"}},
		{"limit below the request", setLimit, dropLimit, requestMuch, "Invalid", []string{"spec.containers[0].resources.requests"}},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel() // they mostly wait
			tellsAndGoesOn(t, r)
		})
	}
}

const (
	refusedCompletions = 4
	// watchedFor is how long a refused Job is watched: it includes attempts after 1, 2 and 4 seconds.
	watchedFor = 8 * time.Second
	// podRequestsMax is the first round, which requests all Pods at once, and three more with one each.
	podRequestsMax = refusedCompletions + 3
	// statusWritesRefusedMax is the start, the refusal, and a change for each attempt.
	statusWritesRefusedMax = 6
	// turnsMax are four rounds of an attempt, its answer and its timer, and a few for the start.
	turnsMax = 25
)

func tellsAndGoesOn(t *testing.T, r refusal) {
	s := shared(t)
	p, ledger := s.Space(t), harness.NewLedger(t)
	r.forbid(t, p)
	j := harness.Shell("refused", ledger.Script("0", ""), harness.Size(refusedCompletions, refusedCompletions, 0), r.change)
	p.Apply(j)
	j = p.Await("refused", 30*time.Second, "to report that it is refused", func(j *batchv1.Job) bool { return harness.Is(j, v1alpha1.RefusedCondition) })
	c := harness.Condition(j, v1alpha1.RefusedCondition)
	if c.Reason != r.reason || !hasAll(c.Message, r.says) {
		t.Errorf("the condition is %s: %s; want %s: %v", c.Reason, c.Message, r.reason, r.says)
	}
	harness.Until(t, timeout, "a Warning Event on the Job", func(context.Context) error {
		for _, e := range p.Events("refused") {
			if e.Type == corev1.EventTypeWarning && e.Reason == "FailedCreate" && hasAll(e.Message, r.says) {
				return nil
			}
		}
		return fmt.Errorf("there are %v", told(p.Events("refused")))
	})
	harness.Pass(t, watchedFor)
	requests, err := s.Requests(p.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	pods, writes := harness.Count(requests, harness.PodCreation), harness.Count(requests, harness.StatusWrite)
	turns := strings.Count(s.Reconcilers[0].Printed(), `key="job `+p.Namespace+"/")
	if pods > podRequestsMax || writes > statusWritesRefusedMax || turns > turnsMax {
		t.Errorf("it spins: %d requests for Pods, %d status writes and %d turns in %v", pods, writes, turns, watchedFor)
	}
	if n := len(p.Pods("")); n != 0 {
		t.Errorf("%d Pods exist: nothing was refused", n)
	}
	t.Logf("refused: %s: %s; %d requests for Pods, %d status writes, %d turns in %v", c.Reason, c.Message, pods, writes, turns, watchedFor)

	r.allow(t, p)
	j = p.AwaitEnd("refused", batchv1.JobComplete, 2*time.Minute)
	if harness.Is(j, v1alpha1.RefusedCondition) {
		t.Errorf("a complete Job is refused: %s", harness.Brief(j.Status))
	}
	if sum := ledger.Read(t); sum.Succeeded != refusedCompletions || j.Status.Succeeded != refusedCompletions || j.Status.Failed != 0 {
		t.Errorf("%d Pods have run: %s", sum.Succeeded, harness.Brief(j.Status))
	}
	awaitHeldNone(t, p)
}

func hasAll(text string, parts []string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
}

// told lists Events for a person.
func told(events []corev1.Event) (out []string) {
	for _, e := range events {
		out = append(out, fmt.Sprintf("%s %s x%d: %s", e.Type, e.Reason, max(1, e.Count), e.Message))
	}
	return out
}

func nothing(*testing.T, *harness.Space) {}

// setQuota allows so many Pods in the namespace, and waits until the API server knows it: a controller copies the quota into its
// status, which admission uses.
func setQuota(pods string) func(*testing.T, *harness.Space) {
	return func(t *testing.T, p *harness.Space) {
		t.Helper()
		quotas := p.Client.CoreV1().ResourceQuotas(p.Namespace)
		want := corev1.ResourceList{corev1.ResourcePods: resource.MustParse(pods)}
		q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "few"}, Spec: corev1.ResourceQuotaSpec{Hard: want}}
		if _, err := quotas.Create(t.Context(), q, metav1.CreateOptions{}); err != nil {
			harness.Until(t, time.Minute, "the quota to be changed", func(ctx context.Context) error {
				old, err := quotas.Get(ctx, "few", metav1.GetOptions{})
				if err == nil {
					old.Spec.Hard = want
					_, err = quotas.Update(ctx, old, metav1.UpdateOptions{})
				}
				return err
			})
		}
		harness.Until(t, time.Minute, "the quota to be in force", func(ctx context.Context) error {
			q, err := quotas.Get(ctx, "few", metav1.GetOptions{})
			if have := q.Status.Hard[corev1.ResourcePods]; err == nil && !have.Equal(want[corev1.ResourcePods]) {
				err = fmt.Errorf("its status allows %s", have.String())
			}
			return err
		})
		harness.Until(t, time.Minute, "admission to know its use", func(ctx context.Context) error {
			probe := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}}}
			_, err := p.Client.CoreV1().Pods(p.Namespace).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil && strings.Contains(err.Error(), "exceeded quota") {
				return nil
			}
			return err
		})
	}
}

const priorityClass = "e2e-urgent"

func usePriorityClass(s *batchv1.JobSpec) { s.Template.Spec.PriorityClassName = priorityClass }

func makePriorityClass(t *testing.T, p *harness.Space) {
	t.Helper()
	classes := p.Client.SchedulingV1().PriorityClasses()
	if _, err := classes.Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: priorityClass}, Value: 7}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := classes.Delete(context.Background(), priorityClass, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// requestMuch requests two CPUs, and setLimit sets a default limit of one for every container: together they make an invalid Pod
// from a valid template.
func requestMuch(s *batchv1.JobSpec) {
	s.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
}

func setLimit(t *testing.T, p *harness.Space) {
	t.Helper()
	l := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "small"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
		Type: corev1.LimitTypeContainer, Default: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}}}
	if _, err := p.Client.CoreV1().LimitRanges(p.Namespace).Create(t.Context(), l, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func dropLimit(t *testing.T, p *harness.Space) {
	t.Helper()
	if err := p.Client.CoreV1().LimitRanges(p.Namespace).Delete(t.Context(), "small", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}
