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
//	MarkedPods     carries our label
//	BuiltInPods    does not, but the label that the API server gives to Pods of Jobs: such as Kubernetes' own controller makes
//	UnmarkedPods   of one namespace, what is in neither of those that are watched everywhere
const (
	MarkedPods  = v1alpha1.ManagedLabel
	BuiltInPods = batchv1.ControllerUidLabel + ",!" + v1alpha1.ManagedLabel
)

// UnmarkedPods selects the Pods of a namespace that only a Job with a selector of its user's own can adopt.
func UnmarkedPods(c events.Claim) string {
	if c.Unmanaged { // then the others are watched everywhere
		return "!" + v1alpha1.ManagedLabel + ",!" + batchv1.ControllerUidLabel
	}
	return "!" + v1alpha1.ManagedLabel
}

// AdoptingJobs are the Jobs of ours that ask to adopt any Pod of their namespace, the oldest first: those with a selector of their
// user's own (manualSelector) that are neither finished nor being deleted. Of each namespace the first events.MaxAdoptingJobs may;
// else one Pod would be told of as often as somebody has made such Jobs.
type AdoptingJobs map[string][]adoptingJob

type adoptingJob struct {
	uid      types.UID
	created  time.Time
	selector labels.Selector
}

// maxSelector is how many keys and values a selector may have with which Pods are looked at: beyond it, a Job adopts none.
const maxSelector = 256

// Put adds the Job, or removes it where it can adopt nothing any more.
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

// older orders by age. Two of one second are ordered by their UIDs, the same way for everybody.
func older(a, b adoptingJob) int {
	return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.uid, b.uid))
}

// Remove forgets the Job.
func (c AdoptingJobs) Remove(namespace string, uid types.UID) {
	c[namespace] = slices.DeleteFunc(c[namespace], func(one adoptingJob) bool { return one.uid == uid })
	if len(c[namespace]) == 0 {
		delete(c, namespace)
	}
}

// may are those of the namespace that adopt.
func (c AdoptingJobs) may(namespace string) []adoptingJob {
	all := c[namespace]
	return all[:min(len(all), events.MaxAdoptingJobs)]
}

// tooMany says that the Job would adopt, and comes too late.
func (c AdoptingJobs) tooMany(of Identity) bool {
	is := func(one adoptingJob) bool { return one.uid == of.UID }
	return slices.ContainsFunc(c[of.Namespace], is) && !slices.ContainsFunc(c.may(of.Namespace), is)
}

// Of are the adoptingJobs that the Pod concerns: the one that owns it, or all whose selector matches an orphan.
func (c AdoptingJobs) Of(p *corev1.Pod) (out []types.UID) {
	owned := metav1.GetControllerOf(p) != nil
	for _, one := range c.may(p.Namespace) {
		if owned && one.uid == events.OwnerUID(p) || !owned && one.selector.Matches(labels.Set(p.Labels)) {
			out = append(out, one.uid)
		}
	}
	return out
}

// Recipients are all Jobs that the Pod concerns: its owner, or the one that an orphan's generated label remembers, and the
// adoptingJobs.
func (c AdoptingJobs) Recipients(p *corev1.Pod) []types.UID {
	out := c.Of(p)
	if owner := events.OwnerUID(p); owner != "" && !slices.Contains(out, owner) {
		out = append(out, owner)
	}
	return out
}
