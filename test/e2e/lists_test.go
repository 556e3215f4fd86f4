package e2e

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

const fruits = "fruits"

// fruitJob prints one word per index, from a list, by a program that is no shell: the value is in the argument.
func fruitJob(completions int32) *batchv1.Job {
	j := harness.Shell("fruit", "", harness.Size(completions, completions, 0), harness.Indexed)
	c := &j.Spec.Template.Spec.Containers[0]
	c.Command, c.Args = []string{"printf"}, []string{"%s %s", "$(COLOR)", "$(FRUIT)"}
	c.Env = append(c.Env, corev1.EnvVar{Name: "SENTENCE", Value: "a $(COLOR) $(FRUIT)"})
	return annotated(j, v1alpha1.PerCompletionEnvAnnotation, fruits)
}

// printed checks what the Pods of each index have printed.
func printed(t *testing.T, p *harness.Space, want ...string) {
	t.Helper()
	pods := p.Pods("fruit")
	if len(pods) != len(want) {
		t.Errorf("%d Pods, want %d", len(pods), len(want))
	}
	for _, pod := range pods {
		log, err := p.Client.CoreV1().Pods(p.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var i int
		if _, err := fmt.Sscan(pod.Annotations[batchv1.JobCompletionIndexAnnotation], &i); err != nil || string(log) != want[i] {
			t.Errorf("index %d has printed %q (%v), want %v", i, log, err, want)
		}
	}
}

// per-completion-env gives each index its own values (proposal indexed-job.md), which args can use without a shell.
func TestEachIndexHasItsOwnValues(t *testing.T) {
	t.Parallel()
	p := shared(t).Space(t)
	putLists(t, p, fruits, map[string]string{"FRUIT": "apple\nbanana\ncherry\n", "COLOR": "green\n$(FRUIT)\nred $$"}, true)
	p.Apply(fruitJob(3))
	p.AwaitEnd("fruit", batchv1.JobComplete, time.Minute)
	printed(t, p, "green apple", "$(FRUIT) banana", "red $$ cherry")
}

// Lists that are missing, mutable or too short start no Pod. The Job reports what is wrong with them, and runs as soon as it is
// fixed.
func TestListsThatCannotBeUsedAreReportedAndWaitedFor(t *testing.T) {
	good := map[string]string{"FRUIT": "apple\nbanana", "COLOR": "green\nyellow"}
	for _, tt := range []struct {
		name string
		bad  func(t *testing.T, p *harness.Space)
		says string
	}{
		{"missing", nothing, "does not exist"},
		{"mutable", func(t *testing.T, p *harness.Space) { putLists(t, p, fruits, good, false) }, "not immutable"},
		{"too short", func(t *testing.T, p *harness.Space) {
			putLists(t, p, fruits, map[string]string{"FRUIT": "apple", "COLOR": "green"}, true)
		}, "has values for 1 completions, the Job has 2"},
		{"of two lengths", func(t *testing.T, p *harness.Space) {
			putLists(t, p, fruits, map[string]string{"FRUIT": "apple\nbanana", "COLOR": "green"}, true)
		}, "differ in length"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := shared(t).Space(t)
			tt.bad(t, p)
			p.Apply(fruitJob(2))
			j := p.Await("fruit", time.Minute, "to report what it waits for", func(j *batchv1.Job) bool { return harness.Is(j, v1alpha1.RefusedCondition) })
			if c := harness.Condition(j, v1alpha1.RefusedCondition); !hasAll(c.Message, []string{fruits, v1alpha1.PerCompletionEnvAnnotation, tt.says}) {
				t.Errorf("the condition is %s: %s", c.Reason, c.Message)
			}
			awaitTold(t, p, "fruit", []string{"Warning", fruits, tt.says})
			if n := len(p.Pods("")); n > 0 || ptr.Deref(j.Status.Ready, 0) > 0 || j.Status.Active > 0 {
				t.Errorf("%d Pods exist: %s", n, harness.Brief(j.Status))
			}
			putLists(t, p, fruits, good, true)
			end := p.AwaitEnd("fruit", batchv1.JobComplete, 2*time.Minute)
			if harness.Is(end, v1alpha1.RefusedCondition) {
				t.Errorf("a complete Job is refused: %s", harness.Brief(end.Status))
			}
			printed(t, p, "green apple", "yellow banana")
		})
	}
}
