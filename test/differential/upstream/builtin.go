package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/job"
	clocktesting "k8s.io/utils/clock/testing"
)

// maxSyncs is how many syncs may follow each other.
const maxSyncs = 200

// Builtin is the built-in Job controller in a world of one Job, whose API server is this struct: the next sync sees what a sync
// has done. One Builtin serves many worlds, one after the other.
type Builtin struct {
	// Job is the current Job.
	Job *batchv1.Job
	// Pods are the existing Pods, by name.
	Pods map[string]*corev1.Pod
	// Refuses, if not nil, validates each status write as an API server does.
	Refuses func(before, after *batchv1.Job) error
	// Refused is its first refusal.
	Refused error

	mu      sync.Mutex // the controller creates and deletes in parallel
	made    int
	control *job.Controller
	clock   *clocktesting.FakeClock
	jobs    cache.Indexer
	pods    cache.Indexer
	ctx     context.Context
}

var _ controller.PodControlInterface = &Builtin{}

// NewBuiltin returns the controller. Its clock begins at that time: a fake clock ticks all the way to where it is set.
func NewBuiltin(begin time.Time) (*Builtin, error) {
	b := &Builtin{ctx: klog.NewContext(context.Background(), klog.Logger{}), clock: clocktesting.NewFakeClock(begin)}
	client := fake.NewClientset()
	shared := informers.NewSharedInformerFactory(client, 0)
	podInformer, jobInformer := shared.Core().V1().Pods(), shared.Batch().V1().Jobs()
	var err error
	if b.control, err = NewControllerWithClock(b.ctx, client, b.clock, podInformer, jobInformer, nil, nil); err != nil {
		return nil, err
	}
	b.jobs, b.pods = jobInformer.Informer().GetIndexer(), podInformer.Informer().GetIndexer()
	set[controller.PodControlInterface](b.control, "podControl", b)
	set[record.EventRecorder](b.control, "recorder", &record.FakeRecorder{})
	set(b.control, "updateStatusHandler", b.writeStatus)
	return b, nil
}

// Begin puts a Job and its Pods into an empty world.
func (b *Builtin) Begin(j *batchv1.Job, pods []*corev1.Pod) {
	b.Job, b.Pods, b.Refused = j.DeepCopy(), map[string]*corev1.Pod{}, nil
	b.Job.Spec.ManagedBy = nil
	for _, p := range pods {
		b.Pods[p.Name] = p.DeepCopy()
	}
	set(b.control, "podBackoffStore", NewBackoffStore())
	(*sync.Map)(field(b.control, "finishedJobExpectations")).Clear()
}

// Settle syncs the Job at that time until a sync changes nothing.
func (b *Builtin) Settle(now time.Time) error {
	b.clock.SetTime(now)
	for range maxSyncs {
		before, pods := b.Job.DeepCopy(), maps.Clone(b.Pods)
		if err := b.sync(); err != nil {
			return err
		}
		if apiequality.Semantic.DeepEqual(before, b.Job) && maps.Equal(pods, b.Pods) {
			return nil
		}
	}
	return fmt.Errorf("after %d syncs it is not at rest", maxSyncs)
}

// sync is one sync, with up-to-date caches.
func (b *Builtin) sync() error {
	if err := b.jobs.Replace([]any{b.Job.DeepCopy()}, ""); err != nil {
		return err
	}
	var listed []any
	for _, name := range slices.Sorted(maps.Keys(b.Pods)) {
		listed = append(listed, b.Pods[name].DeepCopy())
	}
	if err := b.pods.Replace(listed, ""); err != nil {
		return err
	}
	set[controller.ControllerExpectationsInterface](b.control, "expectations", controller.NewControllerExpectations())
	set(b.control, "finalizerExpectations", NewUIDExpectations())
	return SyncJob(b.control, b.ctx, b.Job.Namespace+"/"+b.Job.Name)
}

func (b *Builtin) writeStatus(_ context.Context, j *batchv1.Job) (*batchv1.Job, error) {
	if b.Refuses != nil {
		if err := b.Refuses(b.Job, j); err != nil {
			b.Refused = err
			return nil, err
		}
	}
	b.Job = j.DeepCopy()
	return b.Job.DeepCopy(), nil
}

// Change changes a Pod, and removes it if it is deleted, has ended and has no finalizer. Pods are replaced, never changed in
// place, so that a change can be detected.
func (b *Builtin) Change(name string, change func(*corev1.Pod)) {
	p := b.Pods[name].DeepCopy()
	change(p)
	b.Pods[name] = p
	ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	if p.DeletionTimestamp != nil && len(p.Finalizers) == 0 && ended {
		delete(b.Pods, name)
	}
}

// CreatePods implements controller.PodControlInterface.
func (b *Builtin) CreatePods(ctx context.Context, namespace string, t *corev1.PodTemplateSpec, o runtime.Object, ref *metav1.OwnerReference) error {
	return b.CreatePodsWithGenerateName(ctx, namespace, t, o, ref, "")
}

// CreatePodsWithGenerateName implements controller.PodControlInterface.
func (b *Builtin) CreatePodsWithGenerateName(_ context.Context, namespace string, t *corev1.PodTemplateSpec, _ runtime.Object, ref *metav1.OwnerReference, _ string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.made++
	p := &corev1.Pod{ObjectMeta: *t.ObjectMeta.DeepCopy(), Spec: *t.Spec.DeepCopy(), Status: corev1.PodStatus{Phase: corev1.PodPending}}
	p.Namespace, p.Name, p.UID = namespace, fmt.Sprintf("builtin-%04d", b.made), types.UID(fmt.Sprintf("builtin-%d", b.made))
	p.CreationTimestamp = metav1.NewTime(b.clock.Now())
	p.OwnerReferences = append(p.OwnerReferences, *ref)
	b.Pods[p.Name] = p
	return nil
}

// DeletePod implements controller.PodControlInterface: the Pod gets its grace period.
func (b *Builtin) DeletePod(_ context.Context, _, name string, _ runtime.Object) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Pods[name] == nil || b.Pods[name].DeletionTimestamp != nil {
		return nil
	}
	b.Change(name, func(p *corev1.Pod) {
		p.DeletionTimestamp = new(metav1.NewTime(b.clock.Now().Add(30 * time.Second)))
		p.DeletionGracePeriodSeconds = new(int64(30))
	})
	return nil
}

// PatchPod implements controller.PodControlInterface.
func (b *Builtin) PatchPod(_ context.Context, _, name string, patch []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Pods[name] == nil {
		return nil
	}
	old, err := json.Marshal(b.Pods[name])
	if err != nil {
		return err
	}
	patched, err := strategicpatch.StrategicMergePatch(old, patch, corev1.Pod{})
	if err != nil {
		return err
	}
	next := &corev1.Pod{}
	if err := json.Unmarshal(patched, next); err != nil {
		return err
	}
	b.Change(name, func(p *corev1.Pod) { p.Finalizers, p.OwnerReferences = next.Finalizers, next.OwnerReferences })
	return nil
}

// Made reports whether the controller created the Pod.
func Made(p *corev1.Pod) bool { return strings.HasPrefix(p.Name, "builtin-") }

// field returns the address of an unexported field of the controller.
func field(c *job.Controller, name string) unsafe.Pointer {
	return unsafe.Pointer(reflect.ValueOf(c).Elem().FieldByName(name).UnsafeAddr())
}

// set changes an unexported field of the controller. T is its type, or a pointer type if the field's is one.
func set[T any](c *job.Controller, name string, value T) {
	have := reflect.ValueOf(c).Elem().FieldByName(name).Type()
	if want := reflect.TypeFor[T](); have != want && (have.Kind() != reflect.Pointer || want.Kind() != reflect.Pointer) {
		panic(fmt.Sprintf("the controller's %s is a %v, not a %v", name, have, want))
	}
	*(*T)(field(c, name)) = value
}
