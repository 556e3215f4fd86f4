package act

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/cluster"
)

// weighed are Jobs as users write them, and as they write them if they want much memory for few bytes.
var weighed = []struct {
	name string
	job  *batchv1.Job
}{
	{"one container", jobOf(1, 0)},
	{"ten variables", jobOf(1, 10)},
	{"a thousand variables", jobOf(1, 1000)},
	{"ten containers", jobOf(10, 10)},
	{"empty node selector terms", crafted(func(p *corev1.PodSpec) {
		p.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: make([]corev1.NodeSelectorTerm, 2000)}}}
	})},
	{"affinity terms", crafted(func(p *corev1.PodSpec) {
		p.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: make([]corev1.PodAffinityTerm, 2000)}}
	})},
	{"empty projected sources", crafted(func(p *corev1.PodSpec) {
		p.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: make([]corev1.VolumeProjection, 2000)}}}}
	})},
	{"many labels", crafted(func(p *corev1.PodSpec) {
		p.NodeSelector = map[string]string{}
		for i := range 2000 {
			p.NodeSelector[fmt.Sprint(i)] = ""
		}
	})},
	{"limits", crafted(func(p *corev1.PodSpec) {
		for range 1000 {
			p.Containers = append(p.Containers, corev1.Container{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}}})
		}
	})},
}

// TestWeighsWhatItTakes: what the API server sends takes no more memory than its weight and a tenth, which is for what
// else happens in this process, and no less than half of it.
func TestWeighsWhatItTakes(t *testing.T) {
	for _, c := range weighed {
		t.Run(c.name, func(t *testing.T) {
			isWeighed(t, c.job, func() any { return &batchv1.Job{} })
			sj := &v1alpha1.ScheduledJob{ObjectMeta: c.job.ObjectMeta, Spec: v1alpha1.ScheduledJobSpec{JobTemplate: batchv1.JobTemplateSpec{Spec: c.job.Spec}}}
			now := metav1.Now()
			for range 100 {
				sj.Status.Recent = append(sj.Status.Recent, v1alpha1.TickVerdict{Time: now, Until: &now, Verdict: "Created", JobName: "nightly-29388241", Message: strings.Repeat("m", 100)})
				sj.Spec.Exclude = append(sj.Spec.Exclude, strings.Repeat("x", 100))
			}
			isWeighed(t, sj, func() any { return &cluster.ScheduledJob{} })
		})
	}
}

func isWeighed(t *testing.T, sent any, empty func() any) {
	t.Helper()
	data, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	held := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	received := make([]any, 1+1<<20/len(data))
	before := held()
	for i := range received {
		received[i] = empty()
		if err := json.Unmarshal(data, received[i]); err != nil {
			t.Fatal(err)
		}
	}
	takes, weight := (held()-before)/len(received), weigh(received[0])
	if takes > weight+weight/10 || takes < weight/2 {
		t.Errorf("a %T of %d bytes takes %d, and weighs %d", sent, len(data), takes, weight)
	}
	runtime.KeepAlive(received)
}

func TestWhatAllObjectsShareWeighsNothing(t *testing.T) {
	zone := time.FixedZone(strings.Repeat("z", 1<<20), 0)
	if w := weigh(&metav1.Time{Time: time.Now().In(zone)}); w > 2*slot {
		t.Errorf("a time weighs %d", w)
	}
}

// BenchmarkWeigh prints what a Job takes in a cache, and how long it takes to find that out.
func BenchmarkWeigh(b *testing.B) {
	for _, c := range weighed {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				weigh(c.job)
			}
			b.ReportMetric(float64(weigh(c.job)), "B/Job")
			b.ReportMetric(float64(c.job.Size()), "encoded-B/Job")
		})
	}
}

func crafted(change func(*corev1.PodSpec)) *batchv1.Job {
	j := jobOf(1, 0)
	change(&j.Spec.Template.Spec)
	return j
}

// jobOf is a Job of a ScheduledJob with that many containers, and that many variables in each.
func jobOf(containers, variables int) *batchv1.Job {
	const uid, owner = "5ef034e0-1890-11e6-8935-000000000001", "5ef034e0-1890-11e6-8935-000000000002"
	labels := map[string]string{batchv1.ControllerUidLabel: uid, batchv1.JobNameLabel: "nightly-29388241", "controller-uid": uid, "job-name": "nightly-29388241"}
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Name: "nightly-29388241", Namespace: "reports", UID: uid, ResourceVersion: "123456", Labels: labels,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "jobstream.dev/v1alpha1", Kind: "ScheduledJob", Name: "nightly", UID: owner, Controller: new(true)}},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "jobstream-reconciler", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "batch/v1",
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":"` + strings.Repeat("f", 900) + `"}`)}},
	}}
	j.Spec.Parallelism, j.Spec.Completions, j.Spec.BackoffLimit, j.Spec.ManagedBy = new(int32(1)), new(int32(1)), new(int32(6)), new("jobstream.dev/job")
	j.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{batchv1.ControllerUidLabel: uid}}
	j.Spec.Template.Labels = labels
	for c := range containers {
		container := corev1.Container{Name: fmt.Sprintf("step-%d", c), Image: "registry.example.com/report:v1", Command: []string{"report", "--all"}, ImagePullPolicy: corev1.PullIfNotPresent,
			TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageReadFile}
		for v := range variables {
			container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", v), Value: "some value of it"})
		}
		j.Spec.Template.Spec.Containers = append(j.Spec.Template.Spec.Containers, container)
	}
	return j
}
