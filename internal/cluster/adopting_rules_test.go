package cluster

import (
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
)

// adopts is a Job that may adopt the Pods of its namespace with the label app=x.
func adopts(uid types.UID, change ...func(*events.Job)) events.Job {
	j := events.Job{Namespace: "shop", UID: uid, Created: time.Unix(1, 0), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}}
	for _, f := range change {
		f(&j)
	}
	return j
}

// TestWhichJobsMayAdopt: those with their user's own selector that are neither finished nor being deleted; one that is any of these later
// adopts no more.
func TestWhichJobsMayAdopt(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*events.Job)
		may    bool
	}{
		{"with a selector", func(*events.Job) {}, true},
		{"without a selector of its user's own", func(j *events.Job) { j.Selector = nil }, false},
		{"of another controller", func(j *events.Job) { j.Foreign = true }, false},
		{"being deleted", func(j *events.Job) { j.Deleting = true }, false},
		{"finished", func(j *events.Job) {
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: "True"}}
		}, false},
		{"with a selector that no API server accepts", func(j *events.Job) { j.Selector.MatchLabels = map[string]string{"app": "/ /"} }, false},
	} {
		a := AdoptingJobs{}
		a.Put(adopts("a"))
		a.Put(adopts("a", c.change))
		if got := len(a.may("shop")) == 1; got != c.may || (len(a) == 1) != c.may {
			t.Errorf("%s: %v, %d namespaces", c.name, got, len(a))
		}
	}
}

// TestTheLargestSelector: each label, each expression and each of its values counts.
func TestTheLargestSelector(t *testing.T) {
	for values, matches := range map[int]bool{maxSelector - 2: true, maxSelector - 1: false} {
		j := adopts("a")
		all := make([]string, values)
		for i := range all {
			all[i] = fmt.Sprint("v", i)
		}
		j.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "other", Operator: metav1.LabelSelectorOpNotIn, Values: all}}
		a := AdoptingJobs{}
		a.Put(j)
		if got := a.Of(orphan(nil)); (len(got) == 1) != matches {
			t.Errorf("a label and an expression with %d values: %v", values, got)
		}
	}
}

// orphan is a Pod with the label app=x, which a controller owns if there is one.
func orphan(controller *metav1.OwnerReference, labels ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Labels: map[string]string{"app": "x"}}}
	for i := 0; i+1 < len(labels); i += 2 {
		p.Labels[labels[i]] = labels[i+1]
	}
	if controller != nil {
		p.OwnerReferences = []metav1.OwnerReference{*controller}
	}
	return p
}

// TestWhomAPodConcerns: its owner; an orphan the Job that its generated label names, and those that may adopt it.
func TestWhomAPodConcerns(t *testing.T) {
	owner := func(uid types.UID) *metav1.OwnerReference {
		return &metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: "x", UID: uid, Controller: new(true)}
	}
	a := AdoptingJobs{}
	a.Put(adopts("a"))
	a.Put(adopts("b", func(j *events.Job) { j.Created = time.Unix(0, 0) }))
	a.Put(adopts("c", func(j *events.Job) { j.Selector.MatchLabels = map[string]string{"app": "y"} }))
	for _, c := range []struct {
		name       string
		pod        *corev1.Pod
		of         []types.UID
		recipients []types.UID
	}{
		{"an orphan", orphan(nil), []types.UID{"b", "a"}, []types.UID{"b", "a"}},
		{"an orphan of a Job with a generated selector", orphan(nil, batchv1.ControllerUidLabel, "d"), []types.UID{"b", "a"}, []types.UID{"b", "a", "d"}},
		{"an orphan of one that may adopt it", orphan(nil, batchv1.ControllerUidLabel, "a"), []types.UID{"b", "a"}, []types.UID{"b", "a"}},
		{"owned by one that may adopt", orphan(owner("a")), []types.UID{"a"}, []types.UID{"a"}},
		{"owned by another Job", orphan(owner("d")), nil, []types.UID{"d"}},
		{"owned by no Job", orphan(&metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", UID: "a", Controller: new(true)}), nil, nil},
	} {
		if of, all := a.Of(c.pod), a.Recipients(c.pod); !slices.Equal(of, c.of) || !slices.Equal(all, c.recipients) {
			t.Errorf("%s: of %v, recipients %v", c.name, of, all)
		}
	}
}

// TestSelectionsOfPods: every Pod is in one of the selections that are watched, and none is in two.
func TestSelectionsOfPods(t *testing.T) {
	for unmanaged, want := range map[bool]string{false: "!jobstream.dev/managed", true: "!jobstream.dev/managed,!batch.kubernetes.io/controller-uid"} {
		if got := UnmarkedPods(events.Claim{Unmanaged: unmanaged}); got != want {
			t.Errorf("unmanaged Jobs claimed: %v: %q", unmanaged, got)
		}
	}
}
