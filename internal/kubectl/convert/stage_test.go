package convert_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/cluster"
	"github.com/jobstream/jobstream/internal/dev/controlplane"
	"github.com/jobstream/jobstream/internal/dev/controlplane/controlplanetest"
	"github.com/jobstream/jobstream/internal/kubectl/convert"
)

// The tests of a cut-over play the controllers themselves: each case lists exactly what the controllers have done to a CronJob.
// test/e2e runs the cut-over with both controllers alive.

const soon = 5 * time.Minute

// stage is an API server with ScheduledJobs, and a Cutover whose messages are recorded.
type stage struct {
	*testing.T
	kubernetes.Interface
	convert.Cutover
	ns string

	mu   sync.Mutex
	said []string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	cp := controlplanetest.Start(t, controlplane.Config{})
	if err := cluster.InstallScheduledJobs(t.Context(), cp.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	s := &stage{T: t, Interface: kubernetes.NewForConfigOrDie(cp.RESTConfig())}
	s.Cutover = convert.Cutover{Client: s.Interface, Dynamic: dynamic.NewForConfigOrDie(cp.RESTConfig()), Settle: time.Millisecond,
		Options: convert.Options{Now: time.Now().AddDate(0, 0, 1), TimeZone: "Etc/UTC"}, Say: func(format string, args ...any) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.said = append(s.said, fmt.Sprintf(format, args...))
		}}
	return s
}

// namespace starts a case in a namespace of its own.
func (s *stage) namespace(t *testing.T, name string) *stage {
	t.Helper()
	c := &stage{T: t, Interface: s.Interface, Cutover: s.Cutover, ns: name}
	c.Say = func(format string, args ...any) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.said = append(c.said, fmt.Sprintf(format, args...))
	}
	if _, err := s.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return c
}

func (s *stage) printed(words string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(strings.Join(s.said, "\n"), words)
}

// await waits until the condition holds.
func (s *stage) await(what string, so func() bool) {
	s.Helper()
	late, again := time.After(soon), time.NewTicker(5*time.Millisecond)
	defer again.Stop()
	for !so() {
		select {
		case <-late:
			s.Fatalf("there is no %s", what)
		case <-again.C:
		}
	}
}

func podTemplate() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "true"}}}}
}

// cronJob creates a CronJob with the status that its controller would have written.
func (s *stage) cronJob(name string, status batchv1.CronJobStatus, change func(*batchv1.CronJob)) *batchv1.CronJob {
	s.Helper()
	c := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.CronJobSpec{Schedule: "* * * * *", TimeZone: ptr.To("Etc/UTC"),
		JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: podTemplate()}}}}
	if change != nil {
		change(c)
	}
	c, err := s.BatchV1().CronJobs(s.ns).Create(s.Context(), c, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
	c.Status = status
	if c, err = s.BatchV1().CronJobs(s.ns).UpdateStatus(s.Context(), c, metav1.UpdateOptions{}); err != nil {
		s.Fatal(err)
	}
	return c
}

// job creates a Job of the CronJob for a nominal time.
func (s *stage) job(of *batchv1.CronJob, nominal time.Time) *batchv1.Job {
	s.Helper()
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", of.Name, nominal.Unix()/60),
		Annotations:     map[string]string{batchv1.CronJobScheduledTimestampAnnotation: nominal.Format(time.RFC3339)},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(of, batchv1.SchemeGroupVersion.WithKind("CronJob"))}},
		Spec: batchv1.JobSpec{Template: podTemplate()}}
	j, err := s.BatchV1().Jobs(s.ns).Create(s.Context(), j, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return j
}

func (s *stage) scheduledJobs() dynamic.ResourceInterface {
	return s.Dynamic.Resource(v1alpha1.GroupVersion.WithResource(v1alpha1.ScheduledJobResource)).Namespace(s.ns)
}

func (s *stage) scheduledJob(name string) *v1alpha1.ScheduledJob {
	s.Helper()
	o, err := s.scheduledJobs().Get(s.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	j := &v1alpha1.ScheduledJob{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, j); err != nil {
		s.Fatal(err)
	}
	return j
}

func (s *stage) live(name string) *batchv1.CronJob {
	s.Helper()
	c, err := s.BatchV1().CronJobs(s.ns).Get(s.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return c
}

var (
	ten    = time.Now().Add(time.Hour).UTC().Truncate(time.Minute) // later than the creation of any object
	ten01  = ten.Add(time.Minute)
	atTen  = batchv1.CronJobStatus{LastScheduleTime: &metav1.Time{Time: ten}}
	noTime = batchv1.CronJobStatus{}
)

func suspended(c *batchv1.CronJob)  { c.Spec.Suspend = ptr.To(true) }
func forbidding(c *batchv1.CronJob) { c.Spec.ConcurrencyPolicy = batchv1.ForbidConcurrent }

// suspendedByConvert is a CronJob after an attempt that ended right after its suspension.
func suspendedByConvert(c *batchv1.CronJob) {
	suspended(c)
	c.Labels = map[string]string{v1alpha1.SuspendedByLabel: v1alpha1.SuspendedByConvert}
}
