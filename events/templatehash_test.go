package events_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

// piJob is a Job as the API server returns it.
func piJob() *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pi", UID: "8d0c3a52-77a4-4a38-9c51-3f6b1f0a2c11", ResourceVersion: "123", Generation: 1},
		Spec: batchv1.JobSpec{
			ManagedBy: new(v1alpha1.DefaultManagedBy), Parallelism: new(int32(1)), Completions: new(int32(1)), BackoffLimit: new(int32(6)),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "pi", "controller-uid": "8d0c", "batch.kubernetes.io/controller-uid": "8d0c", "job-name": "pi",
					"batch.kubernetes.io/job-name": "pi"}},
				Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever, DNSPolicy: corev1.DNSClusterFirst, SchedulerName: corev1.DefaultSchedulerName,
					TerminationGracePeriodSeconds: new(int64(30)), SecurityContext: &corev1.PodSecurityContext{},
					Containers: []corev1.Container{{
						Name: "pi", Image: "perl:5.34", Command: []string{"perl", "-Mbignum=bpi", "-wle", "print bpi(2000)"},
						Env:                    []corev1.EnvVar{{Name: "LANG", Value: "C"}, {Name: "TZ", Value: "UTC"}},
						Resources:              corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("128Mi")}},
						TerminationMessagePath: corev1.TerminationMessagePathDefault, TerminationMessagePolicy: corev1.TerminationMessageReadFile, ImagePullPolicy: corev1.PullIfNotPresent,
						VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
					}},
					Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
				},
			},
		},
		Status: batchv1.JobStatus{StartTime: &metav1.Time{Time: at(1)}, Active: 1, UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{}},
	}
}

// TestTemplateHash: Jobs have the same hash if their users have written the same template.
func TestTemplateHash(t *testing.T) {
	const want = "227f72aa0f" // a new one is a new version for each subscriber: mention it in the changelog
	if got := events.TemplateHash(&piJob().Spec.Template); got != want {
		t.Errorf("the hash of this template was %s, now it is %s", want, got)
	}
	for _, c := range []struct {
		name   string
		change func(*batchv1.Job)
		same   bool
	}{
		{"another Job of the template", func(j *batchv1.Job) {
			j.UID, j.Name = "other", "pi-2"
			maps.Copy(j.Spec.Template.Labels, map[string]string{"controller-uid": "other", "batch.kubernetes.io/controller-uid": "other", "job-name": "pi-2", "batch.kubernetes.io/job-name": "pi-2"})
		}, true},
		{"a run of a ScheduledJob", func(j *batchv1.Job) {
			j.Spec.Template.Annotations = map[string]string{v1alpha1.ScheduledJobAnnotation: "nightly", v1alpha1.NominalTimeAnnotation: at(0).Format(time.RFC3339),
				batchv1.CronJobScheduledTimestampAnnotation: at(0).Format(time.RFC3339)}
		}, true},
		{"another parallelism", func(j *batchv1.Job) { j.Spec.Parallelism = new(int32(9)) }, true},
		{"another image", func(j *batchv1.Job) { j.Spec.Template.Spec.Containers[0].Image = "perl:5.36" }, false},
		{"another value", func(j *batchv1.Job) { j.Spec.Template.Spec.Containers[0].Env[1].Value = "Europe/Berlin" }, false},
		{"a label of the user's", func(j *batchv1.Job) { j.Spec.Template.Labels["team"] = "finance" }, false},
		{"an annotation of the user's", func(j *batchv1.Job) { j.Spec.Template.Annotations = map[string]string{"team": "finance"} }, false},
	} {
		j := piJob()
		c.change(j)
		before := j.DeepCopy()
		if got := events.ProjectJob(j, events.Claim{}).TemplateHash; (got == want) != c.same || len(got) != 10 {
			t.Errorf("%s: %s, and before %s", c.name, got, want)
		}
		if !equality.Semantic.DeepEqual(j, before) {
			t.Errorf("%s: the object, which others read, has changed", c.name)
		}
	}
}

// Public events of a Job have its hash, and nothing else of the template.
func TestNothingElseOfTheTemplateIsPublished(t *testing.T) {
	j := piJob()
	j.Spec.Template.Spec.Containers[0].Env[0].Value = "s3cret"
	j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: at(2)}}}
	p := events.ProjectJob(j, events.Claim{})
	start, _ := p.Started()
	end, _ := p.Ended()
	for _, e := range []events.Public{start, end} {
		b, err := events.EncodePublic("prod", e)
		if err != nil || strings.Contains(string(b), "s3cret") || strings.Contains(string(b), "perl") || !strings.Contains(string(b), `"templateHash":"`+p.TemplateHash+`"`) {
			t.Errorf("%s, %v", b, err)
		}
	}
	j.Status = batchv1.JobStatus{}
	if got := events.ProjectJob(j, events.Claim{}).TemplateHash; got != "" {
		t.Errorf("a Job that has not started has the hash %s, which no event needs", got)
	}
}

// BenchmarkProjectJob compares the hash of a template with all else that an observation of a Job costs a trigger, before the fact is sent.
func BenchmarkProjectJob(b *testing.B) {
	started, fresh := piJob(), piJob()
	fresh.Status.StartTime = nil
	claim := events.Claim{ManagedBy: v1alpha1.DefaultManagedBy}
	wire, err := started.Marshal()
	if err != nil {
		b.Fatal(err)
	}
	fact := events.Fact{Cluster: "prod", Key: events.Key{Function: "job", Namespace: "shop", UID: started.UID}, Event: events.JobObserved{Job: events.ProjectJob(started, claim)}}
	for _, part := range []struct {
		name string
		do   func()
	}{
		{"decode the Job", func() { _ = new(batchv1.Job).Unmarshal(wire) }},
		{"project without the hash", func() { events.ProjectJob(fresh, claim) }},
		{"project with the hash", func() { events.ProjectJob(started, claim) }},
		{"encode the fact", func() { _, _ = events.Encode(fact) }},
	} {
		b.Run(part.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				part.do()
			}
		})
	}
}
