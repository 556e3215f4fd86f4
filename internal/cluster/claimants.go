package cluster

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

// Every Pod is in one of three selections, and no two of them share one:
//
//	marked       carries our label
//	builtIn      does not, but the label that the API server gives to Pods of Jobs: such as Kubernetes' own controller makes
//	unmarkedIn   of one namespace, what is in neither of those that are watched everywhere
const (
	marked  = v1alpha1.ManagedLabel
	builtIn = batchv1.ControllerUidLabel + ",!" + v1alpha1.ManagedLabel
)

// unmarkedIn selects the Pods of a namespace that only a Job with a selector of its user's own can adopt.
func unmarkedIn(c events.Claim) string {
	if c.Unmanaged { // then the others are watched everywhere
		return "!" + v1alpha1.ManagedLabel + ",!" + batchv1.ControllerUidLabel
	}
	return "!" + v1alpha1.ManagedLabel
}

// claimants are the Jobs of ours that may adopt any Pod of their namespace, by namespace and UID: those with a selector of
// their user's own (manualSelector) that are neither finished nor being deleted.
type claimants map[string]map[types.UID]labels.Selector

// put adds the Job, or removes it where it can adopt nothing any more.
func (c claimants) put(j events.Job) {
	if j.Foreign || j.Deleting || j.Selector == nil || j.Finished() {
		c.remove(j.Namespace, j.UID)
		return
	}
	s, err := metav1.LabelSelectorAsSelector(j.Selector)
	if err != nil { // the API server accepts no such selector
		return
	}
	if c[j.Namespace] == nil {
		c[j.Namespace] = map[types.UID]labels.Selector{}
	}
	c[j.Namespace][j.UID] = s
}

func (c claimants) remove(namespace string, uid types.UID) {
	delete(c[namespace], uid)
	if len(c[namespace]) == 0 {
		delete(c, namespace)
	}
}

// of are the claimants that the Pod concerns: the one that owns it, or all whose selector matches an orphan.
func (c claimants) of(p *corev1.Pod) (out []types.UID) {
	all := c[p.Namespace]
	if len(all) == 0 {
		return nil
	}
	if metav1.GetControllerOf(p) != nil {
		if owner := events.OwnerUID(p); all[owner] != nil {
			out = append(out, owner)
		}
		return out
	}
	for uid, s := range all {
		if s.Matches(labels.Set(p.Labels)) {
			out = append(out, uid)
		}
	}
	return out
}

// recipients are all Jobs that the Pod concerns: its owner, or the one that an orphan's generated label remembers, and the
// claimants.
func (c claimants) recipients(p *corev1.Pod) []types.UID {
	out := c.of(p)
	if owner := events.OwnerUID(p); owner != "" && !slices.Contains(out, owner) {
		out = append(out, owner)
	}
	return out
}
