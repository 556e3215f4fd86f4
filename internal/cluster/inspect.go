package cluster

import (
	"context"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/apiserver"
	"github.com/jobstream/jobstream/internal/finding"
)

const (
	// rivalAge is how long ago another controller may have written a Job's status and still count as active.
	rivalAge = 10 * time.Minute
	// rivalJobs is the number of Jobs inspected for it: one page.
	rivalJobs = 500
	// rivalCheck is the name of the finding about it.
	rivalCheck = "built-in controller"
)

// Inspection configures what to look at.
type Inspection struct {
	Client kubernetes.Interface
	// Config is the rest.Config of Client.
	Config *rest.Config
	// Claim decides which Jobs are jobstream's.
	Claim events.Claim
	// Namespaces are those to which the programs are limited; none means everywhere.
	Namespaces []string
	// Roles are the manifests of the ClusterRoles that the programs need, and Grant describes how to get them.
	Roles [][]byte
	Grant string
	// Now is this program's clock.
	Now func() time.Time
}

// Findings inspects the API server, what it serves of ScheduledJobs, the permissions of this program's user, and whether another
// controller manages the same Jobs. It writes nothing but reviews of its own permissions, which the API server does not store.
func (i Inspection) Findings(ctx context.Context) []finding.Finding {
	server := apiserver.Inspection{Client: i.Client, Config: i.Config, Now: i.Now}
	all, ok := server.Server(ctx)
	if !ok {
		return all
	}
	all = append(all, server.Definition(ctx))
	all = append(all, i.permissions(ctx)...)
	return append(all, i.rival(ctx))
}

// builtInManager is the field manager of kube-controller-manager's writes.
const builtInManager = "kube-controller-manager"

// rival looks for Kubernetes' own controller at work on claimed Jobs. No API shows which controllers a kube-controller-manager
// runs, but its field manager marks the statuses that it writes.
func (i Inspection) rival(ctx context.Context) finding.Finding {
	const check = rivalCheck
	if !i.Claim.Unmanaged {
		return finding.Good(check, "no conflict: only Jobs that say managedBy: %s are jobstream's", i.Claim.ManagedBy)
	}
	since, looked := i.Now().Add(-rivalAge), 0
	for _, namespace := range NamespacesOrAll(i.Namespaces) {
		list, err := i.Client.BatchV1().Jobs(namespace).List(ctx, metav1.ListOptions{Limit: rivalJobs})
		if err != nil {
			return finding.Worry(check, finding.Warn, "see the line about permissions", "cannot be told: %v", err)
		}
		looked += len(list.Items)
		if f, found := i.hand(list.Items, since); found {
			return f
		}
	}
	return finding.Good(check, "no trace of it within %v on the first %d Jobs; make sure that kube-controller-manager runs with --controllers=-job-controller,*", rivalAge, looked)
}

// hand looks for a claimed Job whose status kube-controller-manager has written since then.
func (i Inspection) hand(jobs []batchv1.Job, since time.Time) (finding.Finding, bool) {
	for n := range jobs {
		j := &jobs[n]
		if when := signed(j); i.Claim.Matches(j) && when.After(since) {
			return finding.Worry(rivalCheck, finding.Fail, "run kube-controller-manager with --controllers=-job-controller,*, or do without --claim-unmanaged",
				"kube-controller-manager wrote the status of Job %s/%s, which jobstream claims, at %s", j.Namespace, j.Name, when.UTC().Format(time.RFC3339)), true
		}
	}
	return finding.Finding{}, false
}

// signed returns when kube-controller-manager last wrote the Job's status, the zero time if never.
func signed(j *batchv1.Job) (last time.Time) {
	for _, m := range j.ManagedFields {
		if strings.HasPrefix(m.Manager, builtInManager) && m.Subresource == "status" && m.Time != nil && m.Time.After(last) {
			last = m.Time.Time
		}
	}
	return last
}
