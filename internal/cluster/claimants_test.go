package cluster

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// Hundreds of Jobs may select the same Pods. Only the oldest are told of each, whatever order they are heard of in; when one of
// them ends, the next comes up.
func TestOldestClaimantsAdopt(t *testing.T) {
	c := claimants{}
	job := func(n int) events.Job {
		return events.Job{Namespace: "evil", UID: types.UID(fmt.Sprintf("u%03d", n)), Created: time.Unix(int64(n/2), 0), // two in a second
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}}
	}
	const jobs = 150
	for n := range jobs {
		c.put(job((n * 37) % jobs))
		c.put(job((n * 37) % jobs)) // seen once more
	}
	orphan := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "evil", Labels: map[string]string{"app": "x"}}}
	var oldest []types.UID
	for n := range events.MaxClaimants {
		oldest = append(oldest, job(n).UID)
	}
	if got := c.of(orphan); !slices.Equal(got, oldest) {
		t.Errorf("told are %v", got)
	}
	if c.tooMany(identity{"evil", oldest[0]}) || !c.tooMany(identity{"evil", job(events.MaxClaimants).UID}) || c.tooMany(identity{"shop", "u149"}) || c.tooMany(identity{"evil", "unknown"}) {
		t.Error("who comes too late?")
	}
	c.remove("evil", oldest[3])
	if got := c.of(orphan); len(got) != events.MaxClaimants || !slices.Contains(got, job(events.MaxClaimants).UID) || slices.Contains(got, oldest[3]) {
		t.Errorf("when one has gone, told are %v", got)
	}
	orphan.Namespace = "shop"
	if got := c.of(orphan); len(got) != 0 {
		t.Errorf("in another namespace, told are %v", got)
	}
}

// A selector is tried on every orphan: one of thousands of values selects none.
func TestSelectorOfThousandsOfValuesSelectsNothing(t *testing.T) {
	c := claimants{}
	values := []string{"x"}
	for n := range maxSelector {
		values = append(values, fmt.Sprintf("v%d", n))
	}
	c.put(events.Job{Namespace: "evil", UID: "u", Selector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: values}}}})
	if got := c.of(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "evil", Labels: map[string]string{"app": "x"}}}); len(got) != 0 {
		t.Errorf("told are %v", got)
	}
}

// An inventory tells a Job that it comes too late to adopt, though it has been asked for by nobody else.
func TestInventoryOfOneClaimantTooMany(t *testing.T) {
	w := newWorld(t)
	keys := make([]events.Key, events.MaxClaimants+1)
	for n := range keys {
		_, keys[n] = w.createJob(fmt.Sprintf("j%02d", n), picky("pi"))
	}
	orphan := w.foreignPod("orphan", map[string]string{"app": "pi"})
	late := 0
	for _, key := range keys {
		r := only[events.JobListed](t, w.act(key, effect.TakeInventory{ID: "i"}))
		if r.AdoptsNone {
			late++
		}
		if shown := len(r.Pods) == 1 && r.Pods[0].UID == orphan.UID; shown == r.AdoptsNone {
			t.Errorf("%+v", r)
		}
	}
	if late != 1 {
		t.Errorf("%d come too late", late)
	}
}
