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
)

// Hundreds of Jobs may select the same Pods. Only the oldest receive each Pod, whatever order they were observed in; when one of
// them ends, the next moves up.
func TestOldestJobsAdopt(t *testing.T) {
	c := AdoptingJobs{}
	job := func(n int) events.Job {
		return events.Job{Namespace: "evil", UID: types.UID(fmt.Sprintf("u%03d", n)), Created: time.Unix(int64(n/2), 0), // two in a second
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}}
	}
	const jobs = 150
	for n := range jobs {
		c.Put(job((n * 37) % jobs))
		c.Put(job((n * 37) % jobs)) // seen once more
	}
	orphan := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "evil", Labels: map[string]string{"app": "x"}}}
	var oldest []types.UID
	for n := range events.MaxAdoptingJobs {
		oldest = append(oldest, job(n).UID)
	}
	if got := c.Of(orphan); !slices.Equal(got, oldest) {
		t.Errorf("told are %v", got)
	}
	if c.tooMany(Identity{"evil", oldest[0]}) || !c.tooMany(Identity{"evil", job(events.MaxAdoptingJobs).UID}) || c.tooMany(Identity{"shop", "u149"}) || c.tooMany(Identity{"evil", "unknown"}) {
		t.Error("who comes too late?")
	}
	c.Remove("evil", oldest[3])
	if got := c.Of(orphan); len(got) != events.MaxAdoptingJobs || !slices.Contains(got, job(events.MaxAdoptingJobs).UID) || slices.Contains(got, oldest[3]) {
		t.Errorf("when one has gone, told are %v", got)
	}
	orphan.Namespace = "shop"
	if got := c.Of(orphan); len(got) != 0 {
		t.Errorf("in another namespace, told are %v", got)
	}
}

// A selector is matched against every orphan: one with thousands of values selects none.
func TestSelectorOfThousandsOfValuesSelectsNothing(t *testing.T) {
	c := AdoptingJobs{}
	values := []string{"x"}
	for n := range maxSelector {
		values = append(values, fmt.Sprintf("v%d", n))
	}
	c.Put(events.Job{Namespace: "evil", UID: "u", Selector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: values}}}})
	if got := c.Of(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "evil", Labels: map[string]string{"app": "x"}}}); len(got) != 0 {
		t.Errorf("told are %v", got)
	}
}
