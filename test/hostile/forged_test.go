package hostile

import (
	"context"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// A tenant creates Pods that name another namespace's Job as their owner, with everything that the reconciler itself would have
// written, and lets them succeed. All programs list the cluster anew. The Job counts only its own Pods, and keeps them.
func TestPodsOfOneNamespaceCountForNoJobOfAnother(t *testing.T) {
	s := system(t)
	p, m := newPeace(t, s), newTenant(t, s)
	gate := t.TempDir() + "/go"
	target := p.Apply(harness.Shell("target", "until [ -e '"+gate+"' ]; do sleep 0.2; done", harness.Size(3, 3, 0), harness.Indexed))
	p.Await("target", timeout, "to run", func(j *batchv1.Job) bool { return ptr.Deref(j.Status.Ready, 0) == 3 })
	for index := range 3 {
		m.pod(asBuilt(target, 10+index, index), held)
		m.pod(held, func(p *corev1.Pod) { // an orphan whose label names the Job
			p.Labels[batchv1.ControllerUidLabel] = string(target.UID)
			p.Annotations[batchv1.JobCompletionIndexAnnotation] = fmt.Sprint(index)
		})
	}
	harness.Until(t, timeout, "forged Pods to succeed", func(context.Context) error {
		for _, pod := range m.Pods("") {
			if pod.Status.Phase == corev1.PodSucceeded {
				return nil
			}
		}
		return fmt.Errorf("none has: %d Pods", len(m.Pods("")))
	})
	relistAll(t, s)
	own := p.Pods("target")
	harness.Holds(t, 3*time.Second, "the Job to be left alone", func(context.Context) error {
		j := p.Job("target")
		if st := j.Status; st.Succeeded+st.Failed > 0 || st.CompletedIndexes != "" || st.UncountedTerminatedPods != nil && len(st.UncountedTerminatedPods.Succeeded)+len(st.UncountedTerminatedPods.Failed) > 0 {
			return fmt.Errorf("it is %s", harness.Brief(st))
		}
		for _, pod := range p.Pods("target") {
			if pod.DeletionTimestamp != nil {
				return fmt.Errorf("its own Pod %s is being deleted", pod.Name)
			}
		}
		return nil
	})
	open(t, gate)
	end := p.AwaitEnd("target", batchv1.JobComplete, timeout)
	if end.Status.Succeeded != 3 || len(own) != 3 {
		t.Errorf("it had %d Pods and is %s", len(own), harness.Brief(end.Status))
	}
	p.round(t)
	unharmed(t, s)
}

// The same with Jobs that claim to be runs of another namespace's ScheduledJob: it does not wait for them, count them or delete
// them.
func TestJobsOfOneNamespaceAreNoRunsOfAnother(t *testing.T) {
	s := system(t)
	p, m := newPeace(t, s), newTenant(t, s)
	owner := p.Schedule(harness.Every("tick", "* * * * *", "true", harness.KeepAll, func(s *v1alpha1.ScheduledJobSpec) {
		s.ConcurrencyPolicy, s.Suspend = v1alpha1.ForbidConcurrent, ptr.To(true)
	}))
	for n := range 5 {
		m.job(harness.Shell(fmt.Sprintf("tick-%d", n), "sleep 1000"), func(j *batchv1.Job) {
			j.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ScheduledJobKind,
				Name: owner.Name, UID: owner.UID, Controller: ptr.To(true)}}
			j.Annotations = map[string]string{batchv1.CronJobScheduledTimestampAnnotation: time.Now().UTC().Truncate(time.Minute).Format(time.RFC3339)}
			j.Finalizers = []string{"example.com/stays"} // otherwise the garbage collector deletes it for its invalid owner
		})
	}
	t.Cleanup(func() {
		for n := range 5 {
			_, _ = s.Client.BatchV1().Jobs(m.Namespace).Patch(context.Background(), fmt.Sprintf("tick-%d", n), "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		}
	})
	relistAll(t, s)
	p.Reschedule("tick", `{"suspend":false,"schedule":"* * * * * *"}`)
	harness.Until(t, timeout, "the ScheduledJob to run despite them", func(context.Context) error {
		if st := p.Scheduled("tick").Status; st.Successful < 2 || st.Failed > st.Missed { // a second may be missed on a busy machine
			return fmt.Errorf("its status is %+v", st)
		}
		return nil
	})
	unharmed(t, s)
}

// relistAll makes all programs list the cluster: the triggers because they are new, the reconcilers because their memory is
// gone.
func relistAll(t *testing.T, s *harness.System) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	if err := s.NATS.Wipe(); err != nil {
		t.Fatal(err)
	}
	if err := s.NATS.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	relist(t, s)
}
