package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

// Leaving looks for what would be left unfinished if all programs of jobstream stopped.
type Leaving struct {
	Client        kubernetes.Interface
	ScheduledJobs *ScheduledJobs
	// Claim decides which Jobs are jobstream's.
	Claim events.Claim
	// Namespaces are those to search; none means everywhere.
	Namespaces []string
}

// Remains is what would be left, each kind by namespace and name.
type Remains struct {
	// ScheduledJobs are those that may still create Jobs.
	ScheduledJobs []RemainingSchedule `json:"scheduledJobs"`
	// Jobs are those that are neither Complete nor Failed.
	Jobs []RemainingJob `json:"jobs"`
	// Pods are those that carry the finalizer and belong to none of Jobs: their Job has finished, or is gone.
	Pods []RemainingPod `json:"pods"`
}

// Empty reports whether nothing is left.
func (r Remains) Empty() bool { return len(r.ScheduledJobs)+len(r.Jobs)+len(r.Pods) == 0 }

// RemainingSchedule is a ScheduledJob that has not finished and is not suspended, or whose suspension no reconciler has observed
// yet.
type RemainingSchedule struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	// Suspended reports whether its spec suspends it, which no reconciler has observed yet.
	Suspended bool `json:"suspended"`
}

// RemainingJob is a Job that has not finished.
type RemainingJob struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	// Suspended and Deleting report what blocks it: its spec.suspend, or a deletion that waits for its Pods or a finalizer.
	Suspended bool `json:"suspended"`
	Deleting  bool `json:"deleting"`
	// Unmanaged reports whether Kubernetes' own controller continues it where that is switched on.
	Unmanaged bool `json:"unmanaged"`
	// Active, Succeeded and Failed are the counts of its status.
	Active    int32 `json:"active"`
	Succeeded int32 `json:"succeeded"`
	Failed    int32 `json:"failed"`
	// HeldPods is the number of its Pods with the finalizer.
	HeldPods int `json:"heldPods"`
}

// RemainingPod is a Pod that carries the finalizer although no unfinished Job of jobstream's owns it.
type RemainingPod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Remains lists page by page, ScheduledJobs first and Pods last: the list of Jobs contains each Job that a ScheduledJob has
// created before it was suspended. Where ScheduledJobs are not installed there are none. It changes nothing.
func (l Leaving) Remains(ctx context.Context) (Remains, error) {
	all := Remains{ScheduledJobs: []RemainingSchedule{}, Jobs: []RemainingJob{}, Pods: []RemainingPod{}} // [] in JSON, not null
	for _, namespace := range NamespacesOrAll(l.Namespaces) {
		var r Remains
		var err error
		for range listTries {
			if r, err = l.remainsIn(ctx, namespace); err == nil || !Expired(err) {
				break
			}
		}
		if err != nil {
			return all, err
		}
		all.ScheduledJobs = append(all.ScheduledJobs, r.ScheduledJobs...)
		all.Jobs = append(all.Jobs, r.Jobs...)
		all.Pods = append(all.Pods, r.Pods...)
	}
	return all, nil
}

func (l Leaving) remainsIn(ctx context.Context, namespace string) (r Remains, err error) {
	_, err = Pages(ctx, l.ScheduledJobs.In(namespace).List, "", func(page *ScheduledJobList) error {
		for i := range page.Items {
			if s, ok := remainingSchedule(&page.Items[i].ScheduledJob); ok {
				r.ScheduledJobs = append(r.ScheduledJobs, s)
			}
		}
		return nil
	})
	if err != nil && !Unserved(err) {
		return r, fmt.Errorf("list ScheduledJobs: %w", err)
	}
	unfinished := map[Identity]int{} // the index in r.Jobs
	_, err = Pages(ctx, l.Client.BatchV1().Jobs(namespace).List, "", func(page *batchv1.JobList) error {
		for i := range page.Items {
			if j := &page.Items[i]; l.Claim.Matches(j) && !finished(j) {
				unfinished[IdentityOf(j)] = len(r.Jobs)
				r.Jobs = append(r.Jobs, l.remainingJob(j))
			}
		}
		return nil
	})
	if err != nil {
		return r, fmt.Errorf("list Jobs: %w", err)
	}
	for _, selector := range l.selections() {
		_, err = Pages(ctx, l.Client.CoreV1().Pods(namespace).List, selector, func(page *corev1.PodList) error {
			for i := range page.Items {
				p := &page.Items[i]
				if !slices.Contains(p.Finalizers, batchv1.JobTrackingFinalizer) {
					continue
				}
				if n, ok := unfinished[Identity{p.Namespace, events.OwnerUID(p)}]; ok {
					r.Jobs[n].HeldPods++
				} else if selector == MarkedPods { // otherwise its owner is unknown
					r.Pods = append(r.Pods, RemainingPod{Namespace: p.Namespace, Name: p.Name})
				}
			}
			return nil
		})
		if err != nil {
			return r, fmt.Errorf("list Pods: %w", err)
		}
	}
	return r, nil
}

// selections returns the selections of Pods that may carry the finalizer.
func (l Leaving) selections() []string {
	if l.Claim.Unmanaged {
		return []string{BuiltInPods, MarkedPods}
	}
	return []string{MarkedPods}
}

// remainingSchedule reports whether the ScheduledJob may still create a Job: a suspended one may until a reconciler has observed
// that.
func remainingSchedule(s *v1alpha1.ScheduledJob) (r RemainingSchedule, remains bool) {
	r = RemainingSchedule{Namespace: s.Namespace, Name: s.Name, UID: s.UID, Suspended: s.Spec.Suspend != nil && *s.Spec.Suspend}
	rests := r.Suspended || meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.FinishedCondition)
	noticed := s.Status.ObservedGeneration >= s.Generation
	return r, s.DeletionTimestamp == nil && (!rests || !noticed)
}

func (l Leaving) remainingJob(j *batchv1.Job) RemainingJob {
	return RemainingJob{Namespace: j.Namespace, Name: j.Name, UID: j.UID,
		Suspended: j.Spec.Suspend != nil && *j.Spec.Suspend, Deleting: j.DeletionTimestamp != nil,
		Unmanaged: !events.Claim{ManagedBy: l.Claim.ManagedBy}.Matches(j),
		Active:    j.Status.Active, Succeeded: j.Status.Succeeded, Failed: j.Status.Failed}
}

func finished(j *batchv1.Job) bool {
	return slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue
	})
}

// suspendTimeout bounds one change of a ScheduledJob.
const suspendTimeout = 10 * time.Second

// Suspend suspends the ScheduledJob, and labels it so that a later installation finds those that Suspend has suspended. An object
// that was deleted and created again meanwhile is left alone: the API server refuses to change a UID.
func (l Leaving) Suspend(ctx context.Context, s RemainingSchedule) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": s.UID, "labels": map[string]string{v1alpha1.SuspendedByLabel: v1alpha1.SuspendedByDrain}},
		"spec":     map[string]any{"suspend": true},
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, suspendTimeout)
	defer cancel()
	return l.ScheduledJobs.RESTClient().Patch(types.MergePatchType).Namespace(s.Namespace).Resource(v1alpha1.ScheduledJobResource).Name(s.Name).
		VersionedParams(&metav1.PatchOptions{}, l.ScheduledJobs.parameters).Body(patch).Do(ctx).Error()
}
