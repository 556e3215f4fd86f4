package cluster

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
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
	client kubernetes.Interface
	claim  events.Claim
}

// rosters are two lists, the Pods' begun after the Jobs' was complete, sorted by the UID of the Job.
type rosters struct {
	jobsVersion, podsVersion uint64
	jobs                     map[types.UID]*events.Job
	pods                     map[types.UID][]events.Pod
	// namespaces of the owners of pods.
	namespaces map[types.UID]string
}

// roster is what the lists say about one Job.
func (r *rosters) roster(id string, uid types.UID) events.JobListed {
	out := events.JobListed{ID: id, Job: r.jobs[uid], JobsVersion: r.jobsVersion, Version: r.podsVersion, Pods: r.pods[uid]}
	switch {
	case out.Job != nil:
		out.Name = out.Job.Name
	case len(out.Pods) > 0:
		out.Name = out.Pods[0].Owner
	}
	return out
}

// rosters lists Jobs and then Pods of all namespaces and keeps those that are wanted; of Pods those that somebody still
// has to do something about. It begins again where the server forgets the version it is reading.
func (l lister) rosters(ctx context.Context, wantJob func(*batchv1.Job) bool, wantPod func(*corev1.Pod) bool) (r rosters, err error) {
	for range listTries {
		if r, err = l.rostersOnce(ctx, wantJob, wantPod); err == nil || !expired(err) {
			break
		}
	}
	return r, err
}

func (l lister) rostersOnce(ctx context.Context, wantJob func(*batchv1.Job) bool, wantPod func(*corev1.Pod) bool) (rosters, error) {
	r := rosters{jobs: map[types.UID]*events.Job{}, pods: map[types.UID][]events.Pod{}, namespaces: map[types.UID]string{}}
	var err error
	r.jobsVersion, err = pages(ctx, l.client.BatchV1().Jobs("").List, "", func(page *batchv1.JobList) {
		for i := range page.Items {
			if j := &page.Items[i]; wantJob(j) {
				p := events.ProjectJob(j, l.claim)
				r.jobs[j.UID] = &p
			}
		}
	})
	if err != nil {
		return r, fmt.Errorf("list Jobs: %w", err)
	}
	r.podsVersion, err = pages(ctx, l.client.CoreV1().Pods("").List, v1alpha1.ManagedLabel, func(page *corev1.PodList) {
		for i := range page.Items {
			p := &page.Items[i]
			owner := events.OwnerUID(p)
			if owner == "" || !wantPod(p) {
				continue
			}
			if s := events.ProjectPod(p); s.Held || !s.Terminal() {
				r.pods[owner] = append(r.pods[owner], s)
				r.namespaces[owner] = p.Namespace
			}
		}
	})
	if err != nil {
		return r, fmt.Errorf("list Pods: %w", err)
	}
	return r, nil
}

// pages visits all pages of a list, which are all of one version, and returns that. The read is consistent: it shows
// every write that was answered before it began.
func pages[L metav1.ListInterface](ctx context.Context, list func(context.Context, metav1.ListOptions) (L, error), selector string, visit func(L)) (uint64, error) {
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
		visit(page)
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return versionOf(page.GetResourceVersion()), nil
		}
	}
}
