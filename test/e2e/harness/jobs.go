package harness

import (
	"context"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

// Space is a namespace for one test.
type Space struct {
	*System
	testing.TB
	// Namespace is its name.
	Namespace string
}

// Space creates a namespace that is deleted with the test. If the test fails, the logs of the System since now are shown.
func (s *System) Space(t testing.TB) *Space {
	t.Helper()
	ns, err := s.Client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p := &Space{System: s, TB: t, Namespace: ns.Name}
	t.Cleanup(p.clear)
	s.Watch(t)
	return p
}

// clear empties the namespace with few requests, so that the next test has the machine to itself. It asks again, since the API server ends a
// request after a minute, and hundreds of Pods may take longer.
func (p *Space) clear() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // a thousand Jobs are deleted one after another
	defer cancel()
	for _, part := range []struct {
		what   string
		remove func(context.Context) error
	}{
		{"Jobs", func(ctx context.Context) error {
			return p.Client.BatchV1().Jobs(p.Namespace).DeleteCollection(ctx,
				metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}, metav1.ListOptions{})
		}},
		{"Pods", func(ctx context.Context) error {
			return p.Client.CoreV1().Pods(p.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}, metav1.ListOptions{})
		}},
		{"namespace", func(ctx context.Context) error {
			err := p.Client.CoreV1().Namespaces().Delete(ctx, p.Namespace, metav1.DeleteOptions{})
			if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // an earlier request has deleted it
				return nil
			}
			return err
		}},
	} {
		if err := Poll(ctx, part.remove); err != nil {
			p.Errorf("clear %s of %s: %v", part.what, p.Namespace, err)
		}
	}
}

// Shell returns a Job for jobstream whose Pods run a script. Every Pod has its UID as $POD_UID.
func Shell(name, script string, change ...func(*batchv1.JobSpec)) *batchv1.Job {
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{
			ManagedBy: ptr.To(v1alpha1.DefaultManagedBy),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers: []corev1.Container{{
					Name: "main", Image: "busybox", Command: []string{"sh", "-c", script},
					Env: []corev1.EnvVar{{Name: "POD_UID", ValueFrom: &corev1.EnvVarSource{
						FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.uid"}}}},
				}},
			}},
		},
	}
	for _, c := range change {
		c(&j.Spec)
	}
	return j
}

// Size sets completions, parallelism and backoffLimit.
func Size(completions, parallelism, backoffLimit int32) func(*batchv1.JobSpec) {
	return func(s *batchv1.JobSpec) {
		s.Completions, s.Parallelism, s.BackoffLimit = &completions, &parallelism, &backoffLimit
	}
}

// Indexed makes the Job an Indexed one.
func Indexed(s *batchv1.JobSpec) { s.CompletionMode = ptr.To(batchv1.IndexedCompletion) }

// Apply creates the Job.
func (p *Space) Apply(j *batchv1.Job) *batchv1.Job {
	p.Helper()
	j, err := p.Client.BatchV1().Jobs(p.Namespace).Create(p.Context(), j, metav1.CreateOptions{})
	if err != nil {
		p.Fatal(err)
	}
	return j
}

// Job reads the Job.
func (p *Space) Job(name string) *batchv1.Job {
	p.Helper()
	j, err := p.Client.BatchV1().Jobs(p.Namespace).Get(p.Context(), name, metav1.GetOptions{})
	if err != nil {
		p.Fatal(err)
	}
	return j
}

// Await waits until the Job is as the test wants it.
func (p *Space) Await(name string, within time.Duration, what string, is func(*batchv1.Job) bool) (found *batchv1.Job) {
	p.Helper()
	Until(p, within, "Job "+name+" "+what, func(ctx context.Context) error {
		j, err := p.Client.BatchV1().Jobs(p.Namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case err != nil:
			return err
		case !is(j):
			return fmt.Errorf("its status is %s", Brief(j.Status))
		}
		found = j
		return nil
	})
	return found
}

// AwaitEnd waits until the Job is Complete or Failed, as the test wants; the other one fails the test at once.
func (p *Space) AwaitEnd(name string, want batchv1.JobConditionType, within time.Duration) *batchv1.Job {
	p.Helper()
	j := p.Await(name, within, "to be "+string(want), func(j *batchv1.Job) bool {
		return Is(j, batchv1.JobComplete) || Is(j, batchv1.JobFailed)
	})
	if !Is(j, want) {
		p.Fatalf("Job %s is not %s: %s", name, want, Brief(j.Status))
	}
	return j
}

// Is reports whether the condition is True.
func Is(j *batchv1.Job, t batchv1.JobConditionType) bool {
	c := Condition(j, t)
	return c != nil && c.Status == corev1.ConditionTrue
}

// Condition returns the Job's condition of that type, or nil.
func Condition(j *batchv1.Job, t batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range j.Status.Conditions {
		if j.Status.Conditions[i].Type == t {
			return &j.Status.Conditions[i]
		}
	}
	return nil
}

// Brief formats a status in one line.
func Brief(s batchv1.JobStatus) string {
	u := ptr.Deref(s.UncountedTerminatedPods, batchv1.UncountedTerminatedPods{})
	line := fmt.Sprintf("active=%d ready=%d terminating=%d succeeded=%d+%d failed=%d+%d completedIndexes=%q", s.Active, ptr.Deref(s.Ready, -1),
		ptr.Deref(s.Terminating, -1), s.Succeeded, len(u.Succeeded), s.Failed, len(u.Failed), s.CompletedIndexes)
	for _, c := range s.Conditions {
		line += fmt.Sprintf(" %s=%s(%s: %s)", c.Type, c.Status, c.Reason, c.Message)
	}
	return line
}

// Pods lists the Pods of the Job; those of the namespace if job is "".
func (p *Space) Pods(job string) []corev1.Pod {
	p.Helper()
	o := metav1.ListOptions{}
	if job != "" {
		o.LabelSelector = batchv1.JobNameLabel + "=" + job
	}
	list, err := p.Client.CoreV1().Pods(p.Namespace).List(p.Context(), o)
	if err != nil {
		p.Fatal(err)
	}
	return list.Items
}

// Held returns the names of the Pods that have the tracking finalizer.
func Held(pods []corev1.Pod) (names []string) {
	for _, pod := range pods {
		for _, f := range pod.Finalizers {
			if f == batchv1.JobTrackingFinalizer {
				names = append(names, pod.Name)
			}
		}
	}
	return names
}

// Events lists the Events about the Job.
func (p *Space) Events(job string) []corev1.Event {
	p.Helper()
	list, err := p.Client.CoreV1().Events(p.Namespace).List(p.Context(), metav1.ListOptions{FieldSelector: fields.Set{
		"involvedObject.kind": "Job", "involvedObject.name": job}.String()})
	if err != nil {
		p.Fatal(err)
	}
	return list.Items
}

// Delete deletes the Job as kubectl does: its Pods follow in the background.
func (p *Space) Delete(job string) {
	p.Helper()
	err := p.Client.BatchV1().Jobs(p.Namespace).Delete(p.Context(), job, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)})
	if err != nil {
		p.Fatal(err)
	}
}
