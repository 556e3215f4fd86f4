package events

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/jobstream/jobstream/api/v1alpha1"
	_ "github.com/jobstream/jobstream/internal/dev/replay"
)

// hostile draws a text as an attacker may write it: empty, with characters that a subject cannot have, or limited only by the
// size of a whole object.
func hostile(t *rapid.T, label string) string {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", ".", "*", ">", "a b", "\r\nPUB x 0\r\n\r\n", "0b5e7a10-0000-4000-8000-000000000001"})).Draw(t, label)
	return strings.Repeat(text, rapid.SampledFrom([]int{1, 2, 100, 5000}).Draw(t, label+" times"))
}

// Kubernetes accepts almost anything as the owner, the labels, the annotations and the status of an object. Whatever they
// contain, the key of a fact is valid or absent, and the fact's size is limited apart from what Kubernetes itself limits.
func TestLawWhatIsTakenFromAnObjectIsBounded(t *testing.T) {
	const most = 64 << 10 // bytes of a Pod's fact: 128 labels, 128 exits, 64 conditions
	rapid.Check(t, func(t *rapid.T) {
		controller := true
		kind := rapid.SampledFrom([][2]string{{"batch/v1", "Job"}, {v1alpha1.GroupVersion.String(), v1alpha1.ScheduledJobKind}, {"apps/v1", "ReplicaSet"}}).Draw(t, "owner")
		meta := metav1.ObjectMeta{Name: "x", Namespace: "evil", UID: "5ef034e0-1890-11e6-8935-42010af0003e",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: kind[0], Kind: kind[1], Controller: &controller,
				Name: hostile(t, "owner's name"), UID: types.UID(hostile(t, "owner's UID"))}},
			Labels: map[string]string{batchv1.ControllerUidLabel: cutTo(hostile(t, "label"), 63)},
			Annotations: map[string]string{
				v1alpha1.SerialAnnotation: hostile(t, "serial"), batchv1.JobCompletionIndexAnnotation: hostile(t, "index"),
				v1alpha1.NextSerialAnnotation: hostile(t, "next"), v1alpha1.BackoffAnnotation: hostile(t, "backoff"),
				v1alpha1.PerCompletionEnvAnnotation: hostile(t, "parameters"), v1alpha1.TraceparentAnnotation: hostile(t, "trace"),
				v1alpha1.BackoffSecondsAnnotation: hostile(t, "seconds"), batchv1.CronJobScheduledTimestampAnnotation: hostile(t, "nominal"),
			}}
		if rapid.Bool().Draw(t, "orphan") {
			meta.OwnerReferences = nil
		}
		for i := range rapid.SampledFrom([]int{0, 10, 10_000}).Draw(t, "labels") {
			meta.Labels["l"+strings.Repeat("0", i%60)+string(rune('a'+i%26))] = strings.Repeat("v", 63)
		}
		pod := &corev1.Pod{ObjectMeta: meta, Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: hostile(t, "reason")}}
		for range rapid.SampledFrom([]int{0, 1, 1000}).Draw(t, "containers") {
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: "c", RestartCount: math.MaxInt32,
				State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}}})
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodConditionType(strings.Repeat("c", 317))})
		}
		pod.Finalizers = []string{hostile(t, "finalizer")}
		if rapid.Bool().Draw(t, "pending") {
			pod.Status.Phase, pod.DeletionTimestamp = corev1.PodPending, &metav1.Time{}
		}
		p := ProjectPod(pod)
		checkOwner(t, OwnerUID(pod))
		if data, err := json.Marshal(p); err != nil || len(data) > most {
			t.Errorf("a Pod's fact has %d bytes, more than %d: %v", len(data), most, err)
		}
		if p.Serial < NoSerial || p.Serial+1 > math.MaxInt32+1 || p.Index < NoIndex || p.Restarts < 0 {
			t.Errorf("serial %d, index %d, %d restarts", p.Serial, p.Index, p.Restarts)
		}
		meta.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: hostile(t, "manager"),
			FieldsV1: metav1.NewFieldsV1(rapid.SampledFrom([]string{`{"f:spec":{"f:suspend":{}}}`, hostile(t, "fields")}).Draw(t, "owned"))}}
		job := &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Suspend: new(true), CompletionMode: new(batchv1.IndexedCompletion)}, Status: batchv1.JobStatus{StartTime: &metav1.Time{}}}
		if uid, _, ok := ProjectRun(job); ok {
			checkOwner(t, uid)
		}
		if data, err := json.Marshal(ProjectJob(job, Claim{ManagedBy: "us"})); err != nil || len(data) > most {
			t.Errorf("a Job's fact has %d bytes, more than %d: %v", len(data), most, err)
		}
	})
}

func cutTo(s string, most int) string { return s[:min(most, len(s))] }

func checkOwner(t *rapid.T, uid types.UID) {
	if err := (Key{Function: "job", Namespace: "evil", UID: uid}).Valid(); uid != "" && err != nil {
		t.Errorf("the owner is one whose %v", err)
	}
}

// Objects of two namespaces may name the same UID: facts about it in one are no repetitions of facts in the other.
func TestFactsOfTwoNamespacesAreTwo(t *testing.T) {
	seen := map[string]bool{}
	for _, namespace := range []string{"shop", "evil"} {
		f := Fact{Cluster: "c", Key: Key{Function: "job", Namespace: namespace, UID: "u"}, Event: JobListed{ID: "relist/1/2"}}
		if seen[f.ID()] {
			t.Errorf("the bus would take %q for a repetition", f.ID())
		}
		seen[f.ID()] = true
	}
}
