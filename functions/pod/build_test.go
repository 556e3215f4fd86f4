package pod

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

func testJob(change ...func(*batchv1.Job)) *batchv1.Job {
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pi", UID: "job-uid", Labels: map[string]string{"job": "only"}},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{
				Labels:      map[string]string{batchv1.JobNameLabel: "pi", batchv1.ControllerUidLabel: "job-uid"},
				Annotations: map[string]string{"note": "kept"},
			},
			Spec: corev1.PodSpec{
				RestartPolicy:  corev1.RestartPolicyNever,
				InitContainers: []corev1.Container{{Name: "init"}},
				Containers:     []corev1.Container{{Name: "c", Env: []corev1.EnvVar{{Name: "A", Value: "b"}}}, {Name: "d"}},
			},
		}},
	}
	for _, f := range change {
		f(j)
	}
	return j
}

func TestBuild(t *testing.T) {
	fieldRef := corev1.EnvVar{Name: "JOB_COMPLETION_INDEX", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['batch.kubernetes.io/job-completion-index']"}}}
	yes := true
	base := func(change ...func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "pi-x",
			Labels: map[string]string{"batch.kubernetes.io/job-name": "pi", "batch.kubernetes.io/controller-uid": "job-uid",
				"jobstream.dev/managed": "true"},
			Annotations: map[string]string{"note": "kept", "jobstream.dev/serial": "4"},
			Finalizers:  []string{"batch.kubernetes.io/job-tracking"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "pi", UID: "job-uid",
				Controller: &yes, BlockOwnerDeletion: &yes}},
		}, Spec: testJob().Spec.Template.Spec}
		for _, f := range change {
			f(p)
		}
		return p
	}
	indexed := func(p *corev1.Pod) {
		p.Labels["batch.kubernetes.io/job-completion-index"] = "2"
		p.Annotations["batch.kubernetes.io/job-completion-index"] = "2"
		p.Spec.Hostname = "pi-2"
		p.Spec.InitContainers[0].Env = append(p.Spec.InitContainers[0].Env, fieldRef)
		for i := range p.Spec.Containers {
			p.Spec.Containers[i].Env = append(p.Spec.Containers[i].Env, fieldRef)
		}
	}
	for _, c := range []struct {
		name  string
		job   *batchv1.Job
		index int
		want  *corev1.Pod
	}{
		{"plain", testJob(), events.NoIndex, base()},
		{"empty template metadata",
			testJob(func(j *batchv1.Job) { j.Spec.Template.ObjectMeta = metav1.ObjectMeta{} }), events.NoIndex,
			base(func(p *corev1.Pod) {
				p.Labels = map[string]string{"jobstream.dev/managed": "true"}
				p.Annotations = map[string]string{"jobstream.dev/serial": "4"}
			})},
		{"finalizers of the user stay, ours stands once",
			testJob(func(j *batchv1.Job) {
				j.Spec.Template.Finalizers = []string{"batch.kubernetes.io/job-tracking", "example.com/mine"}
			}), events.NoIndex,
			base(func(p *corev1.Pod) { p.Finalizers = []string{"batch.kubernetes.io/job-tracking", "example.com/mine"} })},
		{"our mark cannot be overridden by the template",
			testJob(func(j *batchv1.Job) {
				j.Spec.Template.Labels[v1alpha1.ManagedLabel] = "false"
				j.Spec.Template.Annotations[v1alpha1.SerialAnnotation] = "77"
			}), events.NoIndex, base()},
		{"indexed", testJob(), 2, base(indexed)},
		{"indexed, hostname of the template is overwritten",
			testJob(func(j *batchv1.Job) { j.Spec.Template.Spec.Hostname = "mine" }), 2, base(indexed)},
		{"indexed, variable of the user stays",
			testJob(func(j *batchv1.Job) {
				j.Spec.Template.Spec.Containers[1].Env = []corev1.EnvVar{{Name: "JOB_COMPLETION_INDEX", Value: "mine"}}
			}), 2,
			base(indexed, func(p *corev1.Pod) {
				p.Spec.Containers[1].Env = []corev1.EnvVar{{Name: "JOB_COMPLETION_INDEX", Value: "mine"}}
			})},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := c.job.DeepCopy()
			got := Build(c.job, effect.CreatePod{Job: "pi", Name: "pi-x", Serial: 4, Index: c.index}, nil)
			if !equality.Semantic.DeepEqual(got, c.want) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
			got.Labels["x"], got.Spec.Containers[0].Name = "changed", "changed"
			if !equality.Semantic.DeepEqual(c.job, before) {
				t.Error("the Job was changed, or shares memory with the Pod")
			}
			if s := events.ProjectPod(got); s.Serial != 4 || s.Index != c.index || !s.Held || s.Owner != "pi" {
				t.Errorf("the projection does not recognize it: %+v", s)
			}
			if events.OwnerUID(got) != "job-uid" {
				t.Errorf("owner %q", events.OwnerUID(got))
			}
		})
	}
}

// TestPodsCarryTheFailuresOfTheirIndex, if each index has a limit of its own.
func TestPodsCarryTheFailuresOfTheirIndex(t *testing.T) {
	for _, c := range []struct {
		name             string
		e                effect.CreatePod
		failures, excuse string
	}{
		{"no limit per index", effect.CreatePod{Index: 2, IndexFailures: 3}, "", ""},
		{"the first Pod", effect.CreatePod{Index: 2, PerIndex: true}, "0", ""},
		{"after failures", effect.CreatePod{Index: 2, PerIndex: true, IndexFailures: 3, IndexIgnoredFailures: 1}, "3", "1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := Build(testJob(), c.e, nil)
			if got := p.Annotations[batchv1.JobIndexFailureCountAnnotation]; got != c.failures {
				t.Errorf("failures %q, want %q", got, c.failures)
			}
			if got := p.Annotations[batchv1.JobIndexIgnoredFailureCountAnnotation]; got != c.excuse {
				t.Errorf("ignored failures %q, want %q", got, c.excuse)
			}
			if s := events.ProjectPod(p); c.e.PerIndex && (s.IndexFailures != c.e.IndexFailures || s.IndexIgnoredFailures != c.e.IndexIgnoredFailures) {
				t.Errorf("the projection reads %d and %d", s.IndexFailures, s.IndexIgnoredFailures)
			}
		})
	}
}

func TestHostnameIsALabel(t *testing.T) {
	for job, want := range map[string]string{
		"pi":                                   "pi-7",
		"pi.v1":                                "pi-v1-7",
		strings.Repeat("a", 63):                strings.Repeat("a", 61) + "-7",
		strings.Repeat("a", 60) + "-b":         strings.Repeat("a", 60) + "-7",
		strings.Repeat("a.", 40) + "end":       strings.TrimRight(strings.Repeat("a-", 30)+"a", "-") + "-7",
		strings.Repeat("a", 60) + ".b.c.d.e.f": strings.Repeat("a", 60) + "-7",
	} {
		got := hostname(job, "7")
		if got != want || len(utilvalidation.IsDNS1123Label(got)) > 0 {
			t.Errorf("hostname(%q) = %q, want the label %q", job, got, want)
		}
	}
	if slices.Contains([]byte(events.SuffixDigits), 'a') || len(events.SuffixDigits) != 27 {
		t.Error("the alphabet is not that of Kubernetes")
	}
}
