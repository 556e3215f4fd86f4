package upstream

import (
	"time"
	_ "unsafe" // for go:linkname

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	_ "k8s.io/kubernetes/pkg/apis/batch/validation" // linked to
	_ "k8s.io/kubernetes/pkg/controller/job"        // linked to
	"k8s.io/utils/clock"
)

// Interval is job.interval.
type Interval struct{ First, Last int }

// Intervals is job.orderedIntervals.
type Intervals []Interval

// ParseIntervals is parseIndexesFromString.
//
//go:linkname ParseIntervals k8s.io/kubernetes/pkg/controller/job.parseIndexesFromString
func ParseIntervals(logger klog.Logger, text string, completions int) Intervals

// Merge is orderedIntervals.merge.
//
//go:linkname Merge k8s.io/kubernetes/pkg/controller/job.orderedIntervals.merge
func Merge(a, b Intervals) Intervals

// WithIndexes is orderedIntervals.withOrderedIndexes.
//
//go:linkname WithIndexes k8s.io/kubernetes/pkg/controller/job.orderedIntervals.withOrderedIndexes
func WithIndexes(a Intervals, ordered []int) Intervals

// Has is orderedIntervals.has.
//
//go:linkname Has k8s.io/kubernetes/pkg/controller/job.orderedIntervals.has
func Has(a Intervals, index int) bool

// Total is orderedIntervals.total.
//
//go:linkname Total k8s.io/kubernetes/pkg/controller/job.orderedIntervals.total
func Total(a Intervals) int

// Text is orderedIntervals.String.
//
//go:linkname Text k8s.io/kubernetes/pkg/controller/job.orderedIntervals.String
func Text(a Intervals) string

// ValidateIndexes parses a set of indexes as the API server does.
//
//go:linkname ValidateIndexes k8s.io/kubernetes/pkg/apis/batch/validation.validateIndexesFormat
func ValidateIndexes(text string, completions int32) (total int32, err error)

// MatchPodFailurePolicy is matchPodFailurePolicy.
//
//go:linkname MatchPodFailurePolicy k8s.io/kubernetes/pkg/controller/job.matchPodFailurePolicy
func MatchPodFailurePolicy(p *batchv1.PodFailurePolicy, failed *corev1.Pod) (message *string, counts bool, action *batchv1.PodFailurePolicyAction)

// MatchSuccessPolicy is matchSuccessPolicy.
//
//go:linkname MatchSuccessPolicy k8s.io/kubernetes/pkg/controller/job.matchSuccessPolicy
func MatchSuccessPolicy(logger klog.Logger, p *batchv1.SuccessPolicy, completions int32, succeeded Intervals) (message string, met bool)

// FinishedTime is getFinishedTime.
//
//go:linkname FinishedTime k8s.io/kubernetes/pkg/controller/job.getFinishedTime
func FinishedTime(p *corev1.Pod) time.Time

// BackoffRecord is job.backoffRecord.
type BackoffRecord struct {
	Key                      string
	FailuresAfterLastSuccess int32
	LastFailureTime          *time.Time
}

// BackoffStore is job.backoffStore; only its pointer is handled here.
type BackoffStore struct{ _ any }

// NewBackoffStore is newBackoffStore.
//
//go:linkname NewBackoffStore k8s.io/kubernetes/pkg/controller/job.newBackoffStore
func NewBackoffStore() *BackoffStore

// UpdateBackoffRecord is backoffStore.updateBackoffRecord.
//
//go:linkname UpdateBackoffRecord k8s.io/kubernetes/pkg/controller/job.(*backoffStore).updateBackoffRecord
func UpdateBackoffRecord(s *BackoffStore, r BackoffRecord) error

// NewBackoffRecord is backoffStore.newBackoffRecord.
//
//go:linkname NewBackoffRecord k8s.io/kubernetes/pkg/controller/job.(*backoffStore).newBackoffRecord
func NewBackoffRecord(s *BackoffStore, key string, succeeded, failed []*corev1.Pod) BackoffRecord

// RemainingTime is backoffRecord.getRemainingTime.
//
//go:linkname RemainingTime k8s.io/kubernetes/pkg/controller/job.backoffRecord.getRemainingTime
func RemainingTime(r BackoffRecord, now clock.WithTicker, base, most time.Duration) time.Duration

// RemainingTimePerIndex is getRemainingTimePerIndex.
//
//go:linkname RemainingTimePerIndex k8s.io/kubernetes/pkg/controller/job.getRemainingTimePerIndex
func RemainingTimePerIndex(logger klog.Logger, now clock.WithTicker, base, most time.Duration, lastFailed *corev1.Pod) time.Duration

// NewIndexFailureCounts is getNewIndexFailureCounts.
//
//go:linkname NewIndexFailureCounts k8s.io/kubernetes/pkg/controller/job.getNewIndexFailureCounts
func NewIndexFailureCounts(logger klog.Logger, j *batchv1.Job, replaced *corev1.Pod) (failures, ignored int32)

// ActivePodsForRemoval is activePodsForRemoval.
//
//go:linkname ActivePodsForRemoval k8s.io/kubernetes/pkg/controller/job.activePodsForRemoval
func ActivePodsForRemoval(j *batchv1.Job, active []*corev1.Pod, atLeast int) []*corev1.Pod
