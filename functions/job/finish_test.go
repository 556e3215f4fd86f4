package job

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

// A condition changes its probe time with whatever changes in it, its transition time only with its status, and nothing if nothing
// has changed. One that has never been True is not added as False.
func TestSetCondition(t *testing.T) {
	const kind = v1alpha1.RefusedCondition
	is := func(status corev1.ConditionStatus, reason, message string) batchv1.JobCondition {
		return batchv1.JobCondition{Type: kind, Status: status, Reason: reason, Message: message}
	}
	for _, c := range []struct {
		name                 string
		set                  batchv1.JobCondition
		probed, transitioned bool
	}{
		{"nothing", is("True", "Quota", "full"), false, false},
		{"the message", is("True", "Quota", "fuller"), true, false},
		{"the reason", is("True", "Webhook", "full"), true, false},
		{"the status", is("False", "Quota", "full"), true, true},
		{"all of it", is("False", "Accepted", ""), true, true},
	} {
		old := is("True", "Quota", "full")
		old.LastProbeTime, old.LastTransitionTime = metav1.NewTime(noon), metav1.NewTime(noon)
		st := batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: "example.com/Other"}, old}}
		setCondition(&st, kind, c.set.Status, c.set.Reason, c.set.Message, noon.Add(time.Minute+time.Millisecond))
		got := st.Conditions[1]
		if len(st.Conditions) != 2 || got.Status != c.set.Status || got.Reason != c.set.Reason || got.Message != c.set.Message {
			t.Errorf("%s changes: %+v", c.name, st.Conditions)
		}
		at := map[bool]time.Time{false: noon, true: noon.Add(time.Minute)}
		if !got.LastProbeTime.Time.Equal(at[c.probed]) || !got.LastTransitionTime.Time.Equal(at[c.transitioned]) {
			t.Errorf("%s changes: probed %s, transitioned %s", c.name, got.LastProbeTime, got.LastTransitionTime)
		}
	}
	var none batchv1.JobStatus
	if setCondition(&none, kind, corev1.ConditionFalse, "Accepted", "", noon); len(none.Conditions) > 0 {
		t.Errorf("never True: %+v", none.Conditions)
	}
}

// Messages of refusals differ each time: one a minute is enough, unless the reason is another.
func TestARefusalIsWrittenOnceAMinute(t *testing.T) {
	for _, c := range []struct {
		name, kind string
		status     corev1.ConditionStatus
		reason     string
		after      time.Duration
		written    bool
	}{
		{"at once", v1alpha1.RefusedCondition, "True", "Forbidden", time.Second, false},
		{"just before the minute is over", v1alpha1.RefusedCondition, "True", "Forbidden", time.Minute - time.Second, false},
		{"after a minute", v1alpha1.RefusedCondition, "True", "Forbidden", time.Minute, true},
		{"another reason", v1alpha1.RefusedCondition, "True", "Invalid", time.Second, true},
		{"it was accepted meanwhile", v1alpha1.RefusedCondition, "False", "Forbidden", time.Second, true},
		{"another condition", v1alpha1.IgnoredCondition, "True", "Forbidden", time.Second, true},
	} {
		st := batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobConditionType(c.kind), Status: c.status, Reason: c.reason, Message: "used 4", LastProbeTime: metav1.NewTime(noon)}}}
		refusal(&st, "Forbidden", "used 5", noon.Add(c.after))
		got := st.Conditions[len(st.Conditions)-1]
		if (got.Message == "used 5") != c.written {
			t.Errorf("%s: %+v", c.name, st.Conditions)
		}
	}
}
