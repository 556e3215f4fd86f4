package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/job"
)

const (
	// pageSize is client-go's: large enough that pages cost little, small enough that one is soon garbage again.
	pageSize = 500
	// pageTimeout bounds one page on a busy server.
	pageTimeout = time.Minute
	// listTries is how often a list is begun again because the server forgot its version between two pages, which takes
	// a list that lasts longer than etcd keeps history (5 minutes).
	listTries = 3
)

// lister reads complete, consistent lists page by page, and keeps projections only.
type lister struct {
	client    kubernetes.Interface
	schedules *ScheduledJobs // nil where nobody wants them
	claim     events.Claim
	namespace string // "" for all
	// schedulesTimeout bounds a page of ScheduledJobs; 0 means pageTimeout.
	schedulesTimeout time.Duration
}

// wants says what somebody asks for.
type wants struct {
	// schedule is asked of ScheduledJobs, and of the owners of Jobs that one controls; nil where nobody wants them.
	schedule func(identity) bool
	job      func(*batchv1.Job) bool
	// podsOf is asked when all Jobs have been listed; nil where nobody wants Pods.
	podsOf func(identity) bool
}

// snapshots are lists, each begun after the one before was complete, sorted by what they belong to:
//
//	LIST ScheduledJobs ----> LIST Jobs ----> LIST Pods
type snapshots struct {
	schedulesVersion uint64
	// unlisted is why there are no ScheduledJobs: the server does not know the kind, does not let us see them, or fails.
	unlisted  error
	schedules map[identity]*events.ScheduledJob
	// runs are the Jobs of each ScheduledJob.
	runs        map[identity][]events.Run
	jobsVersion uint64
	// podsVersion is the version of the oldest list of Pods: what was there at that version, and is on no list, is gone.
	podsVersion uint64
	// marked and builtIn are the versions of the lists of these selections, 0 where it was not made.
	marked, builtIn uint64
	jobs            map[identity]*events.Job
	pods            map[identity][]events.Pod
	claimants       claimants
	// unseen is why the unmarked Pods of these namespaces could not be listed.
	unseen map[string]error
	// early are the Pods of the lists before the last.
	early map[types.UID]struct{}
}

// snapshot is what the lists say about one Job.
func (r *snapshots) snapshot(id string, of identity) events.JobListed {
	out := events.JobListed{ID: id, Job: r.jobs[of], JobsVersion: r.jobsVersion, Version: r.podsVersion, Pods: r.pods[of],
		AdoptsNone: r.claimants.tooMany(of)}
	switch {
	case out.Job != nil:
		out.Name = out.Job.Name
	case len(out.Pods) > 0:
		out.Name = out.Pods[0].Owner
	}
	return out
}

// scheduleSnapshot is what the lists say about one ScheduledJob.
func (r *snapshots) scheduleSnapshot(id string, of identity) events.ScheduleListed {
	out := events.ScheduleListed{ID: id, ScheduledJob: r.schedules[of], SchedulesVersion: r.schedulesVersion, Version: r.jobsVersion, Runs: r.runs[of]}
	if out.ScheduledJob != nil {
		out.Name = out.ScheduledJob.Name
	}
	return out
}

// hidden is why nothing can be said of a Job's Pods: it may adopt some that could not be listed.
func (r *snapshots) hidden(of identity) error {
	is := func(one claimant) bool { return one.uid == of.uid }
	if err := r.unseen[of.namespace]; err != nil && slices.ContainsFunc(r.claimants.may(of.namespace), is) {
		return err
	}
	return nil
}

// snapshots lists what is wanted; of Pods those that somebody still has to do something about. It begins again where the server forgets the version it is reading.
func (l lister) snapshots(ctx context.Context, w wants) (r snapshots, err error) {
	for range listTries {
		if r, err = l.snapshotsOnce(ctx, w); err == nil || !expired(err) {
			break
		}
	}
	return r, err
}

func (l lister) snapshotsOnce(ctx context.Context, w wants) (snapshots, error) {
	r := snapshots{schedules: map[identity]*events.ScheduledJob{}, runs: map[identity][]events.Run{},
		jobs: map[identity]*events.Job{}, pods: map[identity][]events.Pod{}, claimants: claimants{}, unseen: map[string]error{}, early: map[types.UID]struct{}{}}
	if err := l.listSchedules(ctx, &r, w.schedule); err != nil {
		return r, fmt.Errorf("list ScheduledJobs: %w", err)
	}
	var err error
	r.jobsVersion, err = pages(ctx, l.client.BatchV1().Jobs(l.namespace).List, "", func(page *batchv1.JobList) error {
		for i := range page.Items {
			j := &page.Items[i]
			if uid, run, ok := events.ProjectRun(j); ok && w.schedule != nil {
				if owner := (identity{j.Namespace, uid}); w.schedule(owner) {
					r.runs[owner] = append(r.runs[owner], run)
				}
			}
			wanted := w.job(j)
			if claims := l.claim.Ours(j) && deref(j.Spec.ManualSelector); !wanted && !claims {
				continue
			}
			p := events.ProjectJob(j, l.claim)
			r.claimants.put(p) // also of those that nobody asks for: how many there are decides who may adopt
			if wanted {
				r.jobs[identityOf(j)] = &p
			}
		}
		return nil
	})
	if err != nil {
		return r, fmt.Errorf("list Jobs: %w", err)
	}
	if w.podsOf == nil {
		return r, nil
	}
	if err := l.listPods(ctx, &r, w.podsOf); err != nil {
		return r, fmt.Errorf("list Pods: %w", err)
	}
	return r, nil
}

// listSchedules lists ScheduledJobs. A cluster where they are not installed, or not for us, or where their list fails, has Jobs
// all the same.
func (l lister) listSchedules(ctx context.Context, r *snapshots, wanted func(identity) bool) (err error) {
	if wanted == nil || l.schedules == nil {
		return nil
	}
	list := func(ctx context.Context, o metav1.ListOptions) (*wireScheduledJobList, error) {
		ctx, cancel := context.WithTimeout(ctx, or(l.schedulesTimeout, pageTimeout))
		defer cancel()
		return l.schedules.in(l.namespace).list(ctx, o)
	}
	r.schedulesVersion, err = pages(ctx, list, "", func(page *wireScheduledJobList) error {
		for i := range page.Items {
			if j := &page.Items[i]; wanted(identityOf(j)) {
				p := j.project()
				r.schedules[identityOf(j)] = &p
			}
		}
		return nil
	})
	if err == nil || ended(ctx) || expired(err) {
		return err
	}
	r.unlisted, r.schedules = err, nil
	return nil
}

// listPods lists the Pods that carry our mark last: one that is adopted meanwhile gets the mark, and is on one list at
// least. Where it is on two, the later one counts. A namespace whose unmarked Pods cannot be listed is hidden from those who may
// adopt them, and from nobody else.
func (l lister) listPods(ctx context.Context, r *snapshots, wanted func(identity) bool) error {
	list := func(namespace, selector string, last bool, whose func(*corev1.Pod) []types.UID) (uint64, error) {
		version, err := pages(ctx, l.client.CoreV1().Pods(namespace).List, selector, func(page *corev1.PodList) error {
			for i := range page.Items {
				p := &page.Items[i]
				r.add(p, slices.DeleteFunc(whose(p), func(uid types.UID) bool { return !wanted(identity{p.Namespace, uid}) }), last)
			}
			return nil
		})
		if err == nil && (r.podsVersion == 0 || version < r.podsVersion) {
			r.podsVersion = version
		}
		return version, err
	}
	var err error
	if l.claim.Unmanaged {
		if r.builtIn, err = list(l.namespace, builtIn, false, r.claimants.recipients); err != nil {
			return err
		}
	}
	for namespace := range r.claimants {
		asked := func(one claimant) bool { return r.jobs[identity{namespace, one.uid}] != nil }
		if !slices.ContainsFunc(r.claimants.may(namespace), asked) {
			continue
		}
		if _, err = list(namespace, unmarkedIn(l.claim), false, r.claimants.of); ended(ctx) || expired(err) {
			return err
		} else if err != nil {
			r.unseen[namespace] = err
		}
	}
	r.marked, err = list(l.namespace, marked, true, r.claimants.recipients)
	return err
}

// add puts the Pod into the snapshots of these Jobs of its namespace, from the last list or an earlier one.
func (r *snapshots) add(p *corev1.Pod, jobs []types.UID, last bool) {
	if _, twice := r.early[p.UID]; twice && last {
		for of, pods := range r.pods {
			r.pods[of] = slices.DeleteFunc(pods, func(old events.Pod) bool { return old.UID == p.UID })
		}
	}
	if len(jobs) == 0 {
		return
	}
	s := events.ProjectPod(p)
	s.End = nil // a snapshot may have 20,000 Pods, and the release of each answers with all of it
	for _, uid := range jobs {
		of := identity{p.Namespace, uid}
		if !job.Concerns(r.jobs[of], s) {
			continue
		}
		r.pods[of] = append(r.pods[of], s)
		if !last {
			r.early[p.UID] = struct{}{}
		}
	}
}

// pages visits all pages of a list, which are all of one version, and returns that. The read is consistent: it shows
// every write that was answered before it began. An error of visit ends it.
func pages[L metav1.ListInterface](ctx context.Context, list func(context.Context, metav1.ListOptions) (L, error), selector string, visit func(L) error) (uint64, error) {
	options := metav1.ListOptions{Limit: pageSize, LabelSelector: selector}
	for {
		page, err := func() (L, error) {
			ctx, cancel := context.WithTimeout(ctx, pageTimeout)
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
