package harness

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

// Every returns a ScheduledJob whose Jobs run one Pod with a script. The Pod has the nominal time of its run as $RUN and the
// name of its ScheduledJob as $SCHEDULE, by the downward API.
func Every(name, schedule, script string, change ...func(*v1alpha1.ScheduledJobSpec)) *v1alpha1.ScheduledJob {
	job := Shell(name, script)
	env := &job.Spec.Template.Spec.Containers[0].Env
	for key, annotation := range map[string]string{"RUN": v1alpha1.NominalTimeAnnotation, "SCHEDULE": v1alpha1.ScheduledJobAnnotation} {
		*env = append(*env, corev1.EnvVar{Name: key, ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + annotation + "']"}}})
	}
	job.Spec.ManagedBy = nil // the reconciler sets it
	s := &v1alpha1.ScheduledJob{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ScheduledJobSpec{Schedule: schedule,
		JobTemplate: batchv1.JobTemplateSpec{Spec: job.Spec}}}
	for _, c := range change {
		c(&s.Spec)
	}
	return s
}

// KeepAll keeps every finished Job.
func KeepAll(s *v1alpha1.ScheduledJobSpec) {
	s.SuccessfulJobsHistoryLimit, s.FailedJobsHistoryLimit = ptr.To[int32](10000), ptr.To[int32](10000)
}

func (p *Space) schedules() dynamic.ResourceInterface {
	p.Helper()
	config := rest.CopyConfig(p.REST)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		p.Fatal(err)
	}
	return client.Resource(v1alpha1.GroupVersion.WithResource(v1alpha1.ScheduledJobResource)).Namespace(p.Namespace)
}

func (p *Space) typed(u *unstructured.Unstructured, err error) *v1alpha1.ScheduledJob {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
	s := &v1alpha1.ScheduledJob{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, s); err != nil {
		p.Fatal(err)
	}
	return s
}

// Schedule creates the ScheduledJob.
func (p *Space) Schedule(s *v1alpha1.ScheduledJob) *v1alpha1.ScheduledJob {
	p.Helper()
	s.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ScheduledJobKind}
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s)
	if err != nil {
		p.Fatal(err)
	}
	delete(m, "status")
	return p.typed(p.schedules().Create(p.Context(), &unstructured.Unstructured{Object: m}, metav1.CreateOptions{}))
}

// Scheduled reads the ScheduledJob.
func (p *Space) Scheduled(name string) *v1alpha1.ScheduledJob {
	p.Helper()
	return p.typed(p.schedules().Get(p.Context(), name, metav1.GetOptions{}))
}

// Reschedule patches the ScheduledJob's spec with JSON, such as `{"suspend":true}`.
func (p *Space) Reschedule(name, spec string) *v1alpha1.ScheduledJob {
	p.Helper()
	return p.typed(p.schedules().Patch(p.Context(), name, types.MergePatchType, []byte(`{"spec":`+spec+`}`), metav1.PatchOptions{}))
}

// Unschedule deletes the ScheduledJob. Its Jobs are deleted or stay, by the policy.
func (p *Space) Unschedule(name string, policy metav1.DeletionPropagation) {
	p.Helper()
	if err := p.schedules().Delete(p.Context(), name, metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
		p.Fatal(err)
	}
}

// Unscheduled returns no error once the ScheduledJob is gone.
func (p *Space) Unscheduled(name string) error {
	_, err := p.schedules().Get(p.Context(), name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	return errors.New("it is there")
}

// AwaitSchedule waits until the ScheduledJob is as the test wants it.
func (p *Space) AwaitSchedule(name string, within time.Duration, what string, is func(*v1alpha1.ScheduledJob) bool) (found *v1alpha1.ScheduledJob) {
	p.Helper()
	Until(p, within, "ScheduledJob "+name+" "+what, func(ctx context.Context) error {
		u, err := p.schedules().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if found = p.typed(u, nil); !is(found) {
			return fmt.Errorf("its status is %+v", found.Status)
		}
		return nil
	})
	return found
}

// Runs lists the Jobs that the ScheduledJob owns, by their nominal times.
func (p *Space) Runs(uid types.UID) map[string][]batchv1.Job {
	p.Helper()
	list, err := p.Client.BatchV1().Jobs(p.Namespace).List(p.Context(), metav1.ListOptions{})
	if err != nil {
		p.Fatal(err)
	}
	runs := map[string][]batchv1.Job{}
	for _, j := range list.Items {
		if ref := metav1.GetControllerOf(&j); ref != nil && ref.UID == uid {
			at := j.Annotations[v1alpha1.NominalTimeAnnotation]
			runs[at] = append(runs[at], j)
		}
	}
	return runs
}
