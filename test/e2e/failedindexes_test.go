package e2e

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// A subscriber can alert and run again from a JobFinish alone: it has the exits of failed indexes, though all memory is lost and their
// Pods are deleted before the Job ends; the hash of the template, equal for the same template only; and values if the Job asks for that, and
// only then.
func TestSubscriberReceivesHowIndexesFailed(t *testing.T) {
	t.Parallel()
	s := own(t, harness.Config{Reconcilers: 2})
	p := s.Space(t)
	subscriber := p.Subscribe()
	putLists(t, p, fruits, map[string]string{"CODE": "3\n0\n42\n0", "REST": "0\n8\n0\n0", "FRUIT": "apple\nbanana\n" + strings.Repeat("cherry", 100) + "\nb4n4n4"}, true)

	picky := func(name, script string) *batchv1.Job {
		j := harness.Shell(name, script, harness.Size(4, 4, 0), harness.Indexed, func(s *batchv1.JobSpec) {
			s.BackoffLimit, s.BackoffLimitPerIndex = nil, new(int32)
		})
		return annotated(j, v1alpha1.PerCompletionEnvAnnotation, fruits)
	}
	const script = "sleep $REST; exit $CODE"
	p.Apply(annotated(picky("told", script), v1alpha1.PublishFailedValuesAnnotation, "true"))
	p.Apply(picky("silent", script))
	p.Apply(picky("changed", script+" # version 2"))
	both := func(j *batchv1.Job) bool {
		return ptr.Deref(j.Status.FailedIndexes, "") == "0,2" && len(j.Status.UncountedTerminatedPods.Failed) == 0
	}
	for _, name := range []string{"told", "silent", "changed"} {
		p.Await(name, timeout, "to have failed indexes", both)
	}
	for _, pod := range p.Pods("told") {
		if pod.Status.Phase == "Failed" {
			if err := p.Client.CoreV1().Pods(p.Namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	replaceBus(t, s, 0)
	for _, name := range []string{"told", "silent", "changed"} {
		p.AwaitEnd(name, batchv1.JobFailed, timeout)
	}

	starts, ends := map[string]events.JobStarted{}, map[string]events.JobFinished{}
	harness.Until(t, timeout, "the ends to be announced", func(context.Context) error {
		for _, r := range subscriber.Received() {
			switch e := r.Event.(type) {
			case events.JobStarted:
				starts[e.Job.Name] = e
			case events.JobFinished:
				ends[e.Job.Name] = e
			}
		}
		if len(starts) < 3 || len(ends) < 3 {
			return fmt.Errorf("%d starts and %d ends of 3", len(starts), len(ends))
		}
		return nil
	})
	for name, e := range ends {
		want := []events.IndexExit{{Index: 0, ExitCode: 3, Reason: "Error"}, {Index: 2, ExitCode: 42, Reason: "Error"}}
		if !reflect.DeepEqual(e.FailedIndexExits, want) || e.FailedIndexes != "0,2" || e.CompletedIndexes != "1,3" {
			t.Errorf("%s: %+v", name, e)
		}
		if len(e.TemplateHash) != 10 || e.TemplateHash != starts[name].TemplateHash || (e.TemplateHash == ends["told"].TemplateHash) != (name != "changed") {
			t.Errorf("%s: the hash of the template is %q at its start and %q at its end, that of told is %q", name, starts[name].TemplateHash, e.TemplateHash, ends["told"].TemplateHash)
		}
		if err := values(e, name == "told"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// values returns what is wrong with the values of the failed indexes in the event.
func values(e events.JobFinished, told bool) error {
	v := e.FailedValues
	switch {
	case !told && v == nil:
		return nil
	case !told:
		return fmt.Errorf("the Job has not asked for values: %+v", v)
	case v == nil || v.ConfigMap != fruits || len(v.Indexes) != 2:
		return fmt.Errorf("values %+v", v)
	}
	first, second := v.Indexes[0], v.Indexes[1]
	if !reflect.DeepEqual(first, events.IndexValues{Index: 0, Values: map[string]string{"CODE": "3", "REST": "0", "FRUIT": "apple"}}) {
		return fmt.Errorf("of the first %+v", first)
	}
	if fruit := second.Values["FRUIT"]; second.Index != 2 || !strings.HasPrefix(fruit, "cherrycherry") || !strings.HasSuffix(fruit, "…") || len(fruit) > 256 {
		return errors.New("of the second " + fruit)
	}
	return nil
}
