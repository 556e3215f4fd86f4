package kubectl

import (
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

// TestTrigger: the Job has the template's spec and belongs to the ScheduledJob; a policy that allows one Job at a time is
// respected.
func TestTrigger(t *testing.T) {
	w := newWorld(t)
	sj := w.newScheduled("nightly", func(s *v1alpha1.ScheduledJob) {
		s.Spec.ConcurrencyPolicy, s.Spec.Suspend = v1alpha1.ForbidConcurrent, ptr.To(true)
		c := s.Spec.JobTemplate.Spec.Template.Spec.DeepCopy()
		c.Containers[0].Env = []corev1.EnvVar{{Name: "DAY", Value: "today"}, {Name: "FILE", Value: "$(DAY).csv"}}
		s.Spec.JobTemplate.Spec.Template.Spec = *c
	})
	const made = "nightly-x7k2p"
	for _, tt := range []struct {
		args, out, says string
		code            int
		requests        string
		then            func()
	}{
		{"nightly --dry-run=client", "job.batch/nightly-x7k2p created (dry run)\n", "", 0, "", nil},
		{"nightly --dry-run=server", "job.batch/nightly-x7k2p created (server dry run)\n", "", 0, "POST jobs", nil},
		{"scheduledjob/nightly --env=DAY=friday --env=MORE=", "job.batch/nightly-x7k2p created\n", "warning: jobstream has not processed the Job", 0, "POST jobs", nil},
		{"nightly", "", "error: not started, because the Job nightly-x7k2p still runs and concurrencyPolicy of the ScheduledJob nightly is Forbid: wait for it with: kubectl jobstream wait nightly-x7k2p -n " + w.ns, ExitFailed, "", nil},
		{"nightly --force", "", "error: a Job nightly-x7k2p exists already", ExitFailed, "POST jobs", func() { w.end(made, batchv1.JobSuccessCriteriaMet, batchv1.JobComplete) }},
		{"nightly -o name --dry-run=client", "job.batch/nightly-x7k2p\n", "", 0, "", nil},
		{"weekly", "", "error: there is no ScheduledJob weekly in the namespace " + w.ns, ExitFailed, "", nil},
	} {
		w.requests = nil
		got := w.call(append([]string{"trigger"}, strings.Fields(tt.args)...)...)
		if got.code != tt.code || got.out != tt.out || !strings.HasPrefix(got.err, tt.says) || tt.says == "" && got.err != "" || strings.Join(w.requests, ", ") != tt.requests {
			t.Errorf("%s: %q: want %q and %q, got %s", tt.args, w.requests, tt.out, tt.says, got)
		}
		if tt.then != nil {
			tt.then()
		}
	}
	j := w.job(made)
	if j == nil || !metav1.IsControlledBy(j, sj) || *j.Spec.ManagedBy != v1alpha1.DefaultManagedBy || j.Annotations[v1alpha1.InstantiateAnnotation] != "manual" {
		t.Fatalf("the Job is %+v", j)
	}
	env := ""
	for _, e := range j.Spec.Template.Spec.Containers[0].Env {
		env += e.Name + "=" + e.Value + " "
	}
	if want := "MORE= DAY=friday FILE=$(DAY).csv "; env != want {
		t.Errorf("its variables are %q, want %q", env, want)
	}
}

// TestTriggerBesideAJobWithoutTheLabel: a Job that the ScheduledJob lists as active blocks the trigger even without the label.
func TestTriggerBesideAJobWithoutTheLabel(t *testing.T) {
	w := newWorld(t)
	sj := w.newScheduled("nightly", func(s *v1alpha1.ScheduledJob) { s.Spec.ConcurrencyPolicy = v1alpha1.ForbidConcurrent })
	stray := w.newJob("stray", nil)
	status := fmt.Sprintf(`{"status":{"active":[{"kind":"Job","name":"gone","uid":"1"},{"kind":"Job","name":"stray","uid":%q}]}}`, stray.UID)
	if err := w.schedules().rest.Patch(types.MergePatchType).Namespace(w.ns).Resource(v1alpha1.ScheduledJobResource).Name(sj.Name).SubResource("status").
		Body([]byte(status)).Do(w.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	if got, want := w.call("trigger", "nightly"), "error: not started, because the Job stray still runs"; got.code != ExitFailed || !strings.HasPrefix(got.err, want) {
		t.Errorf("want %q, got %s", want, got)
	}
	w.end("stray", batchv1.JobSuccessCriteriaMet, batchv1.JobComplete)
	if got := w.call("trigger", "nightly"); got.code != 0 {
		t.Errorf("got %s", got)
	}
}
