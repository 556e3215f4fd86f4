package cluster

import (
	"cmp"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

// Label selectors of Pods. Every Pod is in one of three selections, and no two of them share one:
//
//	MarkedPods     carry the managed label
//	BuiltInPods    do not, but carry the label that the API server gives to Pods of Jobs, as Kubernetes' own controller makes them
//	UnmarkedPods   of one namespace: all Pods in neither of the selections that are watched everywhere
const (
	MarkedPods  = v1alpha1.ManagedLabel
	BuiltInPods = batchv1.ControllerUidLabel + ",!" + v1alpha1.ManagedLabel
)

// UnmarkedPods selects the Pods of a namespace that only a Job with its user's own selector can adopt.
func UnmarkedPods(c events.Claim) string {
	if c.Unmanaged { // then BuiltInPods are watched everywhere
		return "!" + v1alpha1.ManagedLabel + ",!" + batchv1.ControllerUidLabel
	}
	return "!" + v1alpha1.ManagedLabel
}

// AdoptingJobs are the claimed Jobs that may adopt any matching Pod of their namespace, the oldest first: those with a selector
// of their user's own (manualSelector) that are neither finished nor being deleted. The first events.MaxAdoptingJobs of each
// namespace may; without a limit, each Pod would be reported once for every such Job that users have created.
type AdoptingJobs map[string][]adoptingJob

type adoptingJob struct {
	uid      types.UID
	created  time.Time
	selector labels.Selector
}

// maxSelector bounds the keys and values of a selector that is matched against Pods: a Job with a larger one adopts none.
const maxSelector = 256

// Put adds the Job, or removes it if it can adopt no Pod any more.
func (c AdoptingJobs) Put(j events.Job) {
	c.Remove(j.Namespace, j.UID)
	if j.Foreign || j.Deleting || j.Selector == nil || j.Finished() {
		return
	}
	s, err := metav1.LabelSelectorAsSelector(j.Selector)
	if err != nil { // the API server accepts no such selector
		return
	}
	size := len(j.Selector.MatchLabels)
	for _, e := range j.Selector.MatchExpressions {
		size += 1 + len(e.Values)
	}
	if size > maxSelector {
		s = labels.Nothing()
	}
	one := adoptingJob{j.UID, j.Created, s}
	at, _ := slices.BinarySearchFunc(c[j.Namespace], one, older)
	c[j.Namespace] = slices.Insert(c[j.Namespace], at, one)
}

// older orders by age. Jobs of the same second are ordered by their UIDs, the same way in all programs.
func older(a, b adoptingJob) int {
	return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.uid, b.uid))
}

// Remove removes the Job.
func (c AdoptingJobs) Remove(namespace string, uid types.UID) {
	c[namespace] = slices.DeleteFunc(c[namespace], func(one adoptingJob) bool { return one.uid == uid })
	if len(c[namespace]) == 0 {
		delete(c, namespace)
	}
}

// may returns the Jobs of the namespace that may adopt.
func (c AdoptingJobs) may(namespace string) []adoptingJob {
	all := c[namespace]
	return all[:min(len(all), events.MaxAdoptingJobs)]
}

// tooMany reports whether the Job would adopt but is beyond the limit.
func (c AdoptingJobs) tooMany(of Identity) bool {
	is := func(one adoptingJob) bool { return one.uid == of.UID }
	return slices.ContainsFunc(c[of.Namespace], is) && !slices.ContainsFunc(c.may(of.Namespace), is)
}

// Of returns the Jobs that the Pod concerns: the one that owns it, or all whose selector matches an orphan.
func (c AdoptingJobs) Of(p *corev1.Pod) (out []types.UID) {
	owned := metav1.GetControllerOf(p) != nil
	for _, one := range c.may(p.Namespace) {
		if owned && one.uid == events.OwnerUID(p) || !owned && one.selector.Matches(labels.Set(p.Labels)) {
			out = append(out, one.uid)
		}
	}
	return out
}

// Recipients returns all Jobs that the Pod concerns: its owner, or the one that an orphan's generated label names, and those that
// may adopt it.
func (c AdoptingJobs) Recipients(p *corev1.Pod) []types.UID {
	out := c.Of(p)
	if owner := events.OwnerUID(p); owner != "" && !slices.Contains(out, owner) {
		out = append(out, owner)
	}
	return out
}
