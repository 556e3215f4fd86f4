package upstream

import (
	"context"
	_ "unsafe" // for go:linkname

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	batchinformers "k8s.io/client-go/informers/batch/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	schedulinginformers "k8s.io/client-go/informers/scheduling/v1alpha2"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/utils/clock"
)

// UncountedTerminatedPods is job.uncountedTerminatedPods.
type UncountedTerminatedPods struct {
	Succeeded sets.Set[types.UID]
	Failed    sets.Set[types.UID]
}

// SyncJobCtx is job.syncJobCtx: what one sync knows of a Job.
type SyncJobCtx struct {
	Job                             *batchv1.Job
	Pods                            []*corev1.Pod
	FinishedCondition               *batchv1.JobCondition
	ActivePods                      []*corev1.Pod
	Succeeded                       int32
	Failed                          int32
	PrevSucceededIndexes            Intervals
	SucceededIndexes                Intervals
	FailedIndexes                   *Intervals
	NewBackoffRecord                BackoffRecord
	ExpectedRmFinalizers            sets.Set[types.UID]
	Uncounted                       *UncountedTerminatedPods
	PodsWithDelayedDeletionPerIndex map[int]*corev1.Pod
	Terminating                     *int32
	Ready                           int32
	PodGroup                        *schedulingv1alpha2.PodGroup
}

// FirstPendingIndexes is firstPendingIndexes.
//
//go:linkname FirstPendingIndexes k8s.io/kubernetes/pkg/controller/job.firstPendingIndexes
func FirstPendingIndexes(c *SyncJobCtx, count, completions int) []int

// NewControllerWithClock is newControllerWithClock.
//
//go:linkname NewControllerWithClock k8s.io/kubernetes/pkg/controller/job.newControllerWithClock
func NewControllerWithClock(ctx context.Context, kubeClient clientset.Interface, clock clock.WithTicker,
	podInformer coreinformers.PodInformer, jobInformer batchinformers.JobInformer,
	workloadInformer schedulinginformers.WorkloadInformer,
	podGroupInformer schedulinginformers.PodGroupInformer) (*job.Controller, error)

// SyncJob is Controller.syncJob: one turn of the built-in controller for the Job of that key.
//
//go:linkname SyncJob k8s.io/kubernetes/pkg/controller/job.(*Controller).syncJob
func SyncJob(jm *job.Controller, ctx context.Context, key string) error

// UIDExpectations is job.uidTrackingExpectations; only its pointer is handled here.
type UIDExpectations struct{ _ any }

// NewUIDExpectations is newUIDTrackingExpectations.
//
//go:linkname NewUIDExpectations k8s.io/kubernetes/pkg/controller/job.newUIDTrackingExpectations
func NewUIDExpectations() *UIDExpectations
