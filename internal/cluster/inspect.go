package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/finding"
)

const (
	// dateStep is how exact an HTTP server's Date is.
	dateStep = time.Second
	// skewWarn is beyond what NTP allows and the Date cannot explain; from skewFail on, schedules are visibly early or late.
	skewWarn, skewFail = 2 * time.Second, 30 * time.Second
	// rivalAge is how old the hand of another controller on a Job may be and still mean that it is at work.
	rivalAge = 10 * time.Minute
	// rivalJobs is how many Jobs are looked at for it: one page.
	rivalJobs = 500
	// rivalCheck is what the finding about it is called.
	rivalCheck = "built-in controller"
)

// Inspection says what to look at.
type Inspection struct {
	Client kubernetes.Interface
	// Config is the one that Client was made of.
	Config *rest.Config
	// Claim says which Jobs are ours.
	Claim events.Claim
	// Namespaces are those that the programs are limited to; none means everywhere.
	Namespaces []string
	// Roles are the manifests of the ClusterRoles that we need, and Grant says how to get them.
	Roles [][]byte
	Grant string
	// Now is the clock of this program.
	Now func() time.Time
}

// Findings looks at the API server, at what it knows of ScheduledJobs, at what we may do, and for another controller that
// does our work. It writes nothing but reviews of our own permissions, which nobody keeps.
func (i Inspection) Findings(ctx context.Context) []finding.Finding {
	all, ok := i.server(ctx)
	if !ok {
		return all
	}
	all = append(all, i.definition(ctx))
	all = append(all, i.permissions(ctx)...)
	return append(all, i.rival(ctx))
}

// server asks for the version, and reads the clock in the answer's header.
func (i Inspection) server(ctx context.Context) (all []finding.Finding, ok bool) {
	const check = "api server"
	fail := func(err error) ([]finding.Finding, bool) {
		return []finding.Finding{finding.Worry(check, finding.Fail, `try "kubectl version" with the same kubeconfig`, "cannot be asked at %s: %v", i.Config.Host, err)}, false
	}
	client, err := rest.HTTPClientFor(i.Config)
	if err != nil {
		return fail(err)
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	url := i.Client.Discovery().RESTClient().Get().AbsPath("/version").URL().String()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fail(err)
	}
	if warm, err := client.Do(q.Clone(ctx)); err == nil { // the handshakes are no part of the way to the clock
		warm.Body.Close()
	}
	sent := i.Now()
	answer, err := client.Do(q)
	came := i.Now()
	if err != nil {
		return fail(err)
	}
	defer answer.Body.Close()
	var v version.Info
	if err := json.NewDecoder(answer.Body).Decode(&v); answer.StatusCode != http.StatusOK || err != nil {
		return fail(fmt.Errorf("it answers %s: wrong credentials, or no API server", answer.Status))
	}
	if w := versionWarning(v); w != "" {
		all = append(all, finding.Worry(check, finding.Warn, "upgrade it, or switch the feature gate JobManagedBy on", "%s at %s: %s", v.GitVersion, i.Config.Host, w))
	} else {
		all = append(all, finding.Good(check, "%s at %s", v.GitVersion, i.Config.Host))
	}
	return append(all, skew(answer.Header.Get("Date"), sent, came)), true
}

// skew reads the clock out of a Date header: its second had begun when the answer was made, and not ended.
func skew(date string, sent, came time.Time) finding.Finding {
	const check = "clock of the api server"
	theirs, err := http.ParseTime(date)
	if err != nil {
		return finding.Good(check, "not visible: the answer has no Date")
	}
	doubt := came.Sub(sent)/2 + dateStep/2
	ahead := theirs.Add(dateStep / 2).Sub(sent.Add(came.Sub(sent) / 2))
	return finding.Skew(check, ahead, doubt, skewWarn, skewFail)
}

// builtInManager is what kube-controller-manager signs its writes with.
const builtInManager = "kube-controller-manager"

// rival looks for the hand of Kubernetes' own controller on Jobs that we claim from it. No API says which controllers a
// kube-controller-manager runs, but it signs the statuses that it writes.
func (i Inspection) rival(ctx context.Context) finding.Finding {
	const check = rivalCheck
	if !i.Claim.Unmanaged {
		return finding.Good(check, "no conflict: only Jobs that say managedBy: %s are ours", i.Claim.ManagedBy)
	}
	since, looked := i.Now().Add(-rivalAge), 0
	for _, namespace := range everywhereIfNone(i.Namespaces) {
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

// hand looks for a status that kube-controller-manager has written since then, of a Job that we claim.
func (i Inspection) hand(jobs []batchv1.Job, since time.Time) (finding.Finding, bool) {
	for n := range jobs {
		j := &jobs[n]
		if when := signed(j); i.Claim.Ours(j) && when.After(since) {
			return finding.Worry(rivalCheck, finding.Fail, "run kube-controller-manager with --controllers=-job-controller,*, or do without --claim-unmanaged",
				"kube-controller-manager wrote the status of Job %s/%s, which we claim, at %s", j.Namespace, j.Name, when.UTC().Format(time.RFC3339)), true
		}
	}
	return finding.Finding{}, false
}

// signed is when kube-controller-manager last wrote the Job's status, the zero time if never.
func signed(j *batchv1.Job) (last time.Time) {
	for _, m := range j.ManagedFields {
		if strings.HasPrefix(m.Manager, builtInManager) && m.Subresource == "status" && m.Time != nil && m.Time.After(last) {
			last = m.Time.Time
		}
	}
	return last
}
