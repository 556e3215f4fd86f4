package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/job"
)

const (
	// PageSize is client-go's: large enough that pages cost little, small enough that each is soon garbage.
	PageSize = 500
	// PageTimeout bounds one page on a busy server.
	PageTimeout = time.Minute
	// listTries is how often a list is started again because the server dropped its version between two pages. That happens to a
	// list that takes longer than etcd keeps history (5 minutes).
	listTries = 3
)

// Lister reads complete, consistent lists page by page, and keeps projections only.
type Lister struct {
	Client kubernetes.Interface
	// ScheduledJobs may be nil: then none are listed.
	ScheduledJobs *ScheduledJobs
	// Claim decides which Jobs are jobstream's.
	Claim events.Claim
	// Namespace is the one to list; "" means all.
	Namespace string
	// SchedulesTimeout bounds a page of ScheduledJobs; 0 means PageTimeout.
	SchedulesTimeout time.Duration
}

// Wants selects what a list keeps: each function reports whether to keep the object.
type Wants struct {
	// Schedule is called for ScheduledJobs, and for the owners of Jobs that one controls; nil lists none.
	Schedule func(Identity) bool
	// Job is called for every Job. Required.
	Job func(*batchv1.Job) bool
	// PodsOf is called, when all Jobs have been listed, for each Job that a Pod concerns; nil lists no Pods.
	PodsOf func(Identity) bool
}

// WantJobs keeps the given Jobs and their Pods.
func WantJobs(asked func(Identity) bool) Wants {
	return Wants{Job: func(j *batchv1.Job) bool { return asked(IdentityOf(j)) }, PodsOf: asked}
}

// WantSchedules keeps the given ScheduledJobs and the Jobs that they own.
func WantSchedules(asked func(Identity) bool) Wants {
	return Wants{Job: func(*batchv1.Job) bool { return false }, Schedule: asked}
}

// NamespacesOrAll returns the namespaces to list for a program that is limited to these: all, if there are none.
func NamespacesOrAll(namespaces []string) []string {
	if len(namespaces) == 0 {
		return []string{metav1.NamespaceAll}
	}
	return namespaces
}

// Lists are what a Lister has read, each list begun after the one before was complete. Both programs make snapshots of them: a
// trigger for all Jobs, a reconciler for those whose state is empty.
//
//	LIST ScheduledJobs ----> LIST Jobs ----> LIST Pods
type Lists struct {
	SchedulesVersion uint64
	// Unlisted is why there are no ScheduledJobs: the server does not serve the kind, denies the list, or fails.
	Unlisted  error
	Schedules map[Identity]*events.ScheduledJob
	// Runs are the Jobs of each ScheduledJob.
	Runs        map[Identity][]events.Run
	JobsVersion uint64
	// PodsVersion is the version of the oldest list of Pods: a Pod that existed at that version, and is on no list, is gone.
	PodsVersion uint64
	// Marked and BuiltIn are the versions of the lists of these selections, 0 if a list was not made.
	Marked, BuiltIn uint64
	Jobs            map[Identity]*events.Job
	Pods            map[Identity][]events.Pod
	AdoptingJobs    AdoptingJobs
	// Unseen is why the unmarked Pods of these namespaces could not be listed.
	Unseen map[string]error
	// early are the Pods of the lists before the last.
	early map[types.UID]struct{}
}

// JobListed returns the snapshot of one Job, with that ID.
func (r *Lists) JobListed(id string, of Identity) events.JobListed {
	out := events.JobListed{ID: id, Job: r.Jobs[of], JobsVersion: r.JobsVersion, Version: r.PodsVersion, Pods: r.Pods[of],
		AdoptsNone: r.AdoptingJobs.tooMany(of)}
	switch {
	case out.Job != nil:
		out.Name = out.Job.Name
	case len(out.Pods) > 0:
		out.Name = out.Pods[0].Owner
	}
	return out
}

// ScheduleListed returns the snapshot of one ScheduledJob, with that ID.
func (r *Lists) ScheduleListed(id string, of Identity) events.ScheduleListed {
	out := events.ScheduleListed{ID: id, ScheduledJob: r.Schedules[of], SchedulesVersion: r.SchedulesVersion, Version: r.JobsVersion, Runs: r.Runs[of]}
	if out.ScheduledJob != nil {
		out.Name = out.ScheduledJob.Name
	}
	return out
}

// Hidden returns why a Job's Pods are unknown: it may adopt Pods that could not be listed.
func (r *Lists) Hidden(of Identity) error {
	is := func(one adoptingJob) bool { return one.uid == of.UID }
	if err := r.Unseen[of.Namespace]; err != nil && slices.ContainsFunc(r.AdoptingJobs.may(of.Namespace), is) {
		return err
	}
	return nil
}

// List reads what is wanted; of Pods, those that still concern their Job (functions/job.Concerns). If the API server drops the
// version that is being read, List begins again, three times at most.
func (l Lister) List(ctx context.Context, w Wants) (r Lists, err error) {
	for range listTries {
		if r, err = l.listOnce(ctx, w); err == nil || !Expired(err) {
			break
		}
	}
	return r, err
}

func (l Lister) listOnce(ctx context.Context, w Wants) (Lists, error) {
	r := Lists{Schedules: map[Identity]*events.ScheduledJob{}, Runs: map[Identity][]events.Run{},
		Jobs: map[Identity]*events.Job{}, Pods: map[Identity][]events.Pod{}, AdoptingJobs: AdoptingJobs{}, Unseen: map[string]error{}, early: map[types.UID]struct{}{}}
	if err := l.listSchedules(ctx, &r, w.Schedule); err != nil {
		return r, fmt.Errorf("list ScheduledJobs: %w", err)
	}
	var err error
	r.JobsVersion, err = Pages(ctx, l.Client.BatchV1().Jobs(l.Namespace).List, "", func(page *batchv1.JobList) error {
		for i := range page.Items {
			j := &page.Items[i]
			if uid, run, ok := events.ProjectRun(j); ok && w.Schedule != nil {
				if owner := (Identity{j.Namespace, uid}); w.Schedule(owner) {
					r.Runs[owner] = append(r.Runs[owner], run)
				}
			}
			wanted := w.Job(j)
			if claims := l.Claim.Matches(j) && ptr.Deref(j.Spec.ManualSelector, false); !wanted && !claims {
				continue
			}
			p := events.ProjectJob(j, l.Claim)
			r.AdoptingJobs.Put(p) // also unwanted ones: their number decides which Jobs may adopt
			if wanted {
				r.Jobs[IdentityOf(j)] = &p
			}
		}
		return nil
	})
	if err != nil {
		return r, fmt.Errorf("list Jobs: %w", err)
	}
	if w.PodsOf == nil {
		return r, nil
	}
	if err := l.listPods(ctx, &r, w.PodsOf); err != nil {
		return r, fmt.Errorf("list Pods: %w", err)
	}
	return r, nil
}

// listSchedules lists ScheduledJobs. A cluster that does not serve them, denies them or fails to list them still has Jobs.
func (l Lister) listSchedules(ctx context.Context, r *Lists, wanted func(Identity) bool) (err error) {
	if wanted == nil || l.ScheduledJobs == nil {
		return nil
	}
	list := func(ctx context.Context, o metav1.ListOptions) (*ScheduledJobList, error) {
		ctx, cancel := context.WithTimeout(ctx, cmp.Or(l.SchedulesTimeout, PageTimeout))
		defer cancel()
		return l.ScheduledJobs.In(l.Namespace).List(ctx, o)
	}
	r.SchedulesVersion, err = Pages(ctx, list, "", func(page *ScheduledJobList) error {
		for i := range page.Items {
			if j := &page.Items[i]; wanted(IdentityOf(j)) {
				p := j.Project()
				r.Schedules[IdentityOf(j)] = &p
			}
		}
		return nil
	})
	if err == nil || ctx.Err() != nil || Expired(err) {
		return err
	}
	r.Unlisted, r.Schedules = err, nil
	return nil
}

// listPods lists the Pods that carry the managed label last: one that is adopted meanwhile gets the label, and is on at least one
// list. If it is on two, the later one counts. A namespace whose unmarked Pods cannot be listed is hidden only from Jobs that may
// adopt them.
func (l Lister) listPods(ctx context.Context, r *Lists, wanted func(Identity) bool) error {
	list := func(namespace, selector string, last bool, whose func(*corev1.Pod) []types.UID) (uint64, error) {
		version, err := Pages(ctx, l.Client.CoreV1().Pods(namespace).List, selector, func(page *corev1.PodList) error {
			for i := range page.Items {
				p := &page.Items[i]
				r.add(p, slices.DeleteFunc(whose(p), func(uid types.UID) bool { return !wanted(Identity{p.Namespace, uid}) }), last)
			}
			return nil
		})
		if err == nil && (r.PodsVersion == 0 || version < r.PodsVersion) {
			r.PodsVersion = version
		}
		return version, err
	}
	var err error
	if l.Claim.Unmanaged {
		if r.BuiltIn, err = list(l.Namespace, BuiltInPods, false, r.AdoptingJobs.Recipients); err != nil {
			return err
		}
	}
	for namespace := range r.AdoptingJobs {
		asked := func(one adoptingJob) bool { return r.Jobs[Identity{namespace, one.uid}] != nil }
		if !slices.ContainsFunc(r.AdoptingJobs.may(namespace), asked) {
			continue
		}
		if _, err = list(namespace, UnmarkedPods(l.Claim), false, r.AdoptingJobs.Of); ctx.Err() != nil || Expired(err) {
			return err
		} else if err != nil {
			r.Unseen[namespace] = err
		}
	}
	r.Marked, err = list(l.Namespace, MarkedPods, true, r.AdoptingJobs.Recipients)
	return err
}

// add puts the Pod into the snapshots of these Jobs of its namespace, from the last list or an earlier one.
func (r *Lists) add(p *corev1.Pod, jobs []types.UID, last bool) {
	if _, twice := r.early[p.UID]; twice && last {
		for of, pods := range r.Pods {
			r.Pods[of] = slices.DeleteFunc(pods, func(old events.Pod) bool { return old.UID == p.UID })
		}
	}
	if len(jobs) == 0 {
		return
	}
	s := events.ProjectPod(p)
	s.End = nil // a snapshot may have 20,000 Pods, and the answer to each RemoveFinalizer has all of it
	for _, uid := range jobs {
		of := Identity{p.Namespace, uid}
		if !job.Concerns(r.Jobs[of], s) {
			continue
		}
		r.Pods[of] = append(r.Pods[of], s)
		if !last {
			r.early[p.UID] = struct{}{}
		}
	}
}

// Pages visits all pages of a list, which have one version, and returns that version. The read is consistent: it contains every
// write that was answered before it began. An error of visit ends it.
func Pages[L metav1.ListInterface](ctx context.Context, list func(context.Context, metav1.ListOptions) (L, error), selector string, visit func(L) error) (uint64, error) {
	options := metav1.ListOptions{Limit: PageSize, LabelSelector: selector}
	for {
		page, err := func() (L, error) {
			ctx, cancel := context.WithTimeout(ctx, PageTimeout)
			defer cancel()
			return list(ctx, options)
		}()
		if err != nil {
			return 0, err
		}
		if err := visit(page); err != nil {
			return 0, err
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return events.Version(page.GetResourceVersion()), nil
		}
	}
}
