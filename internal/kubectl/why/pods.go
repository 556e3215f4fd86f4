package why

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/finding"
)

// mostGroups is the largest number of reasons that are reported of Pods: what the others wait for usually has the same cause.
const mostGroups = 5

// severity orders what Pods wait for: what a user has to correct comes before what the cluster lacks.
var severity = []string{"image pull", "container", "container restarts", "container start", "scheduling gate", "unschedulable", "scheduler", "kubelet", "scheduling"}

// group are Pods that wait for the same.
type group struct {
	wait
	pods   int
	oldest string // the Pod that has waited longest
}

// waitingPods reports what the Job's Pods wait for. Pods that are being deleted are leaving's.
func (x *jobCauses) waitingPods() {
	var groups []*group
	byWhat := map[string]*group{}
	for i := range x.Pods {
		p := &x.Pods[i]
		if p.DeletionTimestamp != nil {
			continue
		}
		w, waits := waitOf(p, x.Events, x.now)
		if !waits {
			continue
		}
		key := w.check + "\x00" + strings.ReplaceAll(w.what, p.Name, "POD")
		g := byWhat[key]
		if g == nil {
			g = &group{wait: w, oldest: p.Name}
			byWhat[key], groups = g, append(groups, g)
		}
		if g.pods++; w.since.Before(g.since) {
			g.wait, g.oldest = w, p.Name
		}
	}
	slices.SortStableFunc(groups, func(a, b *group) int {
		if n := slices.Index(severity, a.check) - slices.Index(severity, b.check); n != 0 {
			return n
		}
		return b.pods - a.pods
	})
	for i, g := range groups {
		if i == mostGroups {
			x.warn("more pods", fmt.Sprintf("list them with: kubectl get pods -n %s -l batch.kubernetes.io/job-name=%s", x.namespace, x.name),
				"Pods wait for %d other reasons", len(groups)-mostGroups)
			return
		}
		x.reportGroup(g)
	}
}

func (x *jobCauses) reportGroup(g *group) {
	who := fmt.Sprintf("the Pod %s", g.oldest)
	if g.pods > 1 {
		who = fmt.Sprintf("%d Pods, %s the longest,", g.pods, g.oldest)
	}
	found := fmt.Sprintf("%s (%s, for %s)", g.what, strings.TrimSuffix(who, ","), x.ago(g.since))
	if limit := x.Object.Annotations[v1alpha1.PendingDeadlineSecondsAnnotation]; limit != "" && g.check != "container restarts" {
		found += fmt.Sprintf("; it is deleted and counts as failed once it has been Pending for %s seconds", clean(limit))
	}
	advice := strings.ReplaceAll(g.advice, "POD", g.oldest+" -n "+x.namespace)
	x.add(finding.Worry(g.check, g.level, advice, "%s", found))
}
