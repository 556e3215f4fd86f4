package hostile

import (
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// impossible are the lengths of UIDs that no object has: just beyond jobstream's limit, too long for the subject of a state
// though that of a fact still fits, and too long for any line that a NATS server reads.
var impossible = []int{65, 3900, 4000, 4005, 4010, 4015, 5000, 200_000}

// attacks are objects that the API server accepts from a user who may write in one namespace.
var attacks = []struct {
	name string
	do   func(*tenant)
}{
	{"a Pod whose owner's UID no object can have", func(m *tenant) {
		for _, length := range impossible {
			m.pod(held, controlled("x", types.UID(strings.Repeat("u", length))))
		}
	}},
	{"a Pod whose owner's UID is a line of the protocol", func(m *tenant) {
		for _, uid := range []types.UID{"a\r\nPUB x 0\r\n\r\n", ">", "*", "..", "$JS.API.STREAM.DELETE.x", "=", "=4", "\x00", "ü"} {
			m.pod(held, controlled("x", uid))
		}
	}},
	{"a Job whose ScheduledJob has a UID that no object can have", func(m *tenant) {
		for i, length := range impossible {
			m.job(harness.Shell(fmt.Sprintf("forged-%d", i), "true"), func(j *batchv1.Job) {
				j.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ScheduledJobKind, Name: "x",
					UID: types.UID(strings.Repeat("u", length)), Controller: ptr.To(true)}}
			})
		}
	}},
	{"an owner's name of 200 KB", func(m *tenant) {
		m.pod(held, controlled(strings.Repeat("n", 200_000), "0b5e7a10-0000-4000-8000-000000000001"))
		m.job(harness.Shell("named", "true"), func(j *batchv1.Job) {
			j.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ScheduledJobKind,
				Name: strings.Repeat("n", 200_000), UID: "0b5e7a10-0000-4000-8000-000000000002", Controller: ptr.To(true)}}
		})
	}},
	{"a thousand labels on Pods that a Job selects", func(m *tenant) {
		labels := map[string]string{"app": "x", v1alpha1.ManagedLabel: "true"}
		for n := range 1000 {
			labels[fmt.Sprintf("a%d.example.com/%s", n, strings.Repeat("l", 60))] = strings.Repeat("v", 63)
		}
		m.job(harness.Shell("picky", "true", selecting("x")))
		for range 20 {
			m.pod(func(p *corev1.Pod) { p.Labels = labels })
		}
	}},
	{"a selector of thousands of values", func(m *tenant) {
		values := []string{"x"}
		for n := range 5000 {
			values = append(values, fmt.Sprintf("v%d", n))
		}
		m.job(harness.Shell("choosy", "true", selecting("x"), func(s *batchv1.JobSpec) {
			s.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: values}}
		}))
		m.pod(func(p *corev1.Pod) { p.Labels["app"] = "x" })
	}},
	{"jobstream's annotations with 100 KB, and numbers that overflow", func(m *tenant) {
		for i, value := range []string{strings.Repeat("9", 100_000), "9223372036854775807", "-1", "1e9", strings.Repeat("x", 100_000), "\x00"} {
			m.job(harness.Shell(fmt.Sprintf("annotated-%d", i), "true", harness.Indexed), func(j *batchv1.Job) {
				j.Annotations = map[string]string{}
				for _, name := range []string{v1alpha1.BackoffSecondsAnnotation, v1alpha1.FailedPodsLimitAnnotation, v1alpha1.PendingDeadlineSecondsAnnotation,
					v1alpha1.TraceparentAnnotation, v1alpha1.NextSerialAnnotation, v1alpha1.BackoffAnnotation} {
					j.Annotations[name] = value[:min(len(value), 40_000)]
				}
			})
			m.job(harness.Shell(fmt.Sprintf("parameters-%d", i), "true", harness.Indexed), func(j *batchv1.Job) {
				j.Annotations = map[string]string{v1alpha1.PerCompletionEnvAnnotation: value}
			})
		}
	}},
	{"serials and indexes of Pods that overflow", func(m *tenant) {
		j := m.job(harness.Shell("numbered", "sleep 2", harness.Size(2, 2, 0), harness.Indexed))
		for i, number := range []string{"2147483647", "2147483648", "9223372036854775807", "-9223372036854775808", strings.Repeat("9", 100)} {
			m.pod(held, controlled(j.Name, j.UID), func(p *corev1.Pod) {
				p.Name = fmt.Sprintf("numbered-%d", i)
				p.Labels[batchv1.ControllerUidLabel] = string(j.UID)
				p.Annotations[v1alpha1.SerialAnnotation], p.Annotations[batchv1.JobCompletionIndexAnnotation] = number, number
				p.Annotations[batchv1.JobIndexFailureCountAnnotation] = number
			})
		}
	}},
	{"Jobs whose Pods a quota refuses", func(m *tenant) {
		_, err := m.System.Client.CoreV1().ResourceQuotas(m.Namespace).Create(m.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none"},
			Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}}, metav1.CreateOptions{})
		if err != nil {
			m.Fatal(err)
		}
		for n := range 40 {
			m.job(harness.Shell(fmt.Sprintf("refused-%d", n), "true", harness.Size(50, 50, 0)))
		}
	}},
	{"one name, created and deleted again and again", func(m *tenant) {
		for range 60 {
			m.job(harness.Shell("phoenix", "sleep 100"))
			if err := m.Interface.BatchV1().Jobs(m.Namespace).Delete(m.Context(), "phoenix", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}); err != nil {
				m.Fatal(err)
			}
		}
	}},
	{"a Job that is suspended and resumed without end", func(m *tenant) {
		j := m.job(harness.Shell("flicker", "sleep 1", harness.Size(100, 10, 0)))
		for n := range 60 {
			if _, err := m.Interface.BatchV1().Jobs(m.Namespace).Patch(m.Context(), j.Name, types.MergePatchType,
				fmt.Appendf(nil, `{"spec":{"suspend":%v,"parallelism":%d}}`, n%2 == 0, 1+n%10), metav1.PatchOptions{}); err != nil {
				m.Fatal(err)
			}
		}
	}},
	{"finalizers and owners removed and added again", func(m *tenant) {
		j := m.job(harness.Shell("robbed", "sleep 3", harness.Size(6, 3, 6)))
		for n := range 30 {
			for _, p := range m.Pods(j.Name) {
				patch := []string{`{"metadata":{"finalizers":null}}`, `{"metadata":{"ownerReferences":null}}`, `{"metadata":{"labels":{"jobstream.dev/managed":null}}}`,
					`{"metadata":{"labels":{"batch.kubernetes.io/controller-uid":"x"}}}`, `{"metadata":{"annotations":{"jobstream.dev/serial":"999"}}}`}[n%5]
				_, _ = m.Interface.CoreV1().Pods(m.Namespace).Patch(m.Context(), p.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}) // it may be gone
			}
		}
	}},
	{"parameters of a megabyte, deleted and recreated", func(m *tenant) {
		for n := range 5 {
			values := strings.Repeat(strings.Repeat("v", 99)+"\n", 9_000)
			c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "big"}, Immutable: ptr.To(true), Data: map[string]string{"V": values}}
			if _, err := m.Interface.CoreV1().ConfigMaps(m.Namespace).Create(m.Context(), c, metav1.CreateOptions{}); err != nil {
				m.Fatal(err)
			}
			m.job(harness.Shell(fmt.Sprintf("big-%d", n), "true", harness.Size(3, 3, 0), harness.Indexed), func(j *batchv1.Job) {
				j.Annotations = map[string]string{v1alpha1.PerCompletionEnvAnnotation: "big"}
			})
			if err := m.Interface.CoreV1().ConfigMaps(m.Namespace).Delete(m.Context(), "big", metav1.DeleteOptions{}); err != nil {
				m.Fatal(err)
			}
		}
	}},
	{"Jobs of ten thousand completions at once", func(m *tenant) {
		for n := range 3 {
			m.job(harness.Shell(fmt.Sprintf("wide-%d", n), "sleep 1000", harness.Size(10_000, 10_000, 0), harness.Indexed), func(j *batchv1.Job) { // the node has no room for them
				j.Spec.Suspend = ptr.To(n > 0)
				j.Spec.ActiveDeadlineSeconds = ptr.To[int64](1)
			})
		}
	}},
	{"schedules that never rest, and one that cannot be parsed", func(m *tenant) {
		for n := range 5 {
			if err := m.scheduled(harness.Every(fmt.Sprintf("busy-%d", n), "@every 1s", "true")); err != nil {
				m.Logf("refused at admission: %.200v", err)
			}
		}
		unreadable := harness.Every("leap", "", "true", func(s *v1alpha1.ScheduledJobSpec) { s.Schedule = "0 0 30 2 *" })
		if err := m.scheduled(unreadable); err != nil {
			m.Logf("refused at admission: %.200v", err)
		}
	}},
	{"Pods of unknown Jobs, each of which causes an inventory", func(m *tenant) {
		for n := range 150 {
			m.pod(held, controlled("unknown", types.UID(fmt.Sprintf("0b5e7a10-0000-4000-8000-%012d", n))))
		}
	}},
}

// selecting gives a Job a selector of the user's own.
func selecting(app string) func(*batchv1.JobSpec) {
	return func(s *batchv1.JobSpec) {
		s.ManualSelector = ptr.To(true)
		s.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
		s.Template.Labels = map[string]string{"app": app}
	}
}

// Whatever a tenant creates, the neighbour's Jobs end with exact counts, and no program ends.
func TestAttacks(t *testing.T) {
	t.Parallel() // attacks one after another, beside tests that wait
	s := system(t)
	p := newPeace(t, s)
	p.round(t) // for comparison, without an attack
	for _, attack := range attacks {
		t.Run(strings.ReplaceAll(attack.name, " ", "_"), func(t *testing.T) {
			m := newTenant(t, s)
			attack.do(m)
			p.round(t)
			unharmed(t, s)
		})
	}
}
