package differential_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/test/differential/upstream"
	"github.com/jobstream/jobstream/test/oracle"
	"github.com/jobstream/jobstream/test/oracle/draw"
	"github.com/jobstream/jobstream/test/oracle/stage"
)

// TestSync shows both controllers the same Job, Pods and time, lets each work until nothing changes any more, and compares the
// Pods and the status. The tables in intended_test.go are left out.
func TestSync(t *testing.T) {
	builtin, err := upstream.NewBuiltin(draw.Epoch)
	if err != nil {
		t.Fatal(err)
	}
	compared, skipped := 0, map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		j := draw.Job(t)
		j.Status = draw.Status(t, j)
		metav1.SetMetaDataAnnotation(&j.ObjectMeta, v1alpha1.NextSerialAnnotation, strconv.Itoa(draw.MaxPods))
		j = draw.Edited(t, j)
		asWritten(j)
		pods := draw.Pods(t, j)
		tellApart(t, pods)
		hold(pods)
		for _, table := range []map[string]difference{intended, unreachable} {
			for why, differs := range table {
				if differs(j, pods) {
					skipped[why]++
					t.Skip(why)
				}
			}
		}
		builtin.Begin(j, pods)
		builtin.Refuses = oracle.StatusUpdate
		ours := stage.New(draw.Now, events.ProjectJob(j, claim), complete(pods))
		ours.Wake()
		if err := ours.Turns(); err != nil {
			t.Fatalf("ours: %v", err)
		}
		if err := ours.Advance(2300 * time.Millisecond); err != nil {
			t.Fatalf("ours: %v", err)
		}
		if err := builtin.Settle(draw.Now); err != nil {
			if builtin.Refused != nil {
				skipped["the built-in controller is stuck: its status is refused"]++
				t.Skip(builtin.Refused)
			}
			t.Fatalf("the built-in controller returns: %v", err)
		}
		compared++
		if a, b := ourPicture(ours), theirPicture(builtin); !slices.Equal(a, b) {
			t.Fatalf("given\n%v\n\nours\n%v\n\nthe built-in controller's\n%v\n\nours has done %v", given(j, pods), a, b, ours.Effects)
		}
	})
	t.Logf("%d compared, left out: %v", compared, skipped)
}

// asWritten makes the status one that a controller may have left behind. The API server stores more than that, and test/oracle
// begins with any of it.
func asWritten(j *batchv1.Job) {
	st := &j.Status
	if st.StartTime == nil && !is(j, batchv1.JobSuspended) {
		*st = batchv1.JobStatus{} // no controller writes the status of a Job that has not started, unless it is suspended
	}
	if j.Spec.PodFailurePolicy != nil {
		st.Terminating = nil // so that the built-in controller must write: after an ignored failure without a write it forgets to wait
	}
	st.Conditions = slices.DeleteFunc(st.Conditions, func(c batchv1.JobCondition) bool {
		return c.Status != corev1.ConditionTrue && c.Type != batchv1.JobSuspended // they are added as True and stay so
	})
	for i := range st.Conditions {
		switch c := &st.Conditions[i]; {
		case c.Type != batchv1.JobSuspended:
		case c.Status == corev1.ConditionTrue:
			c.Reason, c.Message = "JobSuspended", "Job suspended"
			if st.StartTime = nil; is(j, batchv1.JobSuccessCriteriaMet) || is(j, batchv1.JobFailureTarget) {
				st.StartTime = &c.LastTransitionTime // it was resumed, and ended at once
			}
		default:
			c.Status, c.Reason, c.Message = corev1.ConditionFalse, "JobResumed", "Job resumed"
		}
	}
}

// hold adds the finalizer to running Pods. jobstream restores a lost finalizer; the built-in controller would never count the
// end of such a Pod (docs/conformance.md).
func hold(pods []*corev1.Pod) {
	for _, p := range pods {
		if p.DeletionTimestamp == nil && !events.ProjectPod(p).Terminal() {
			p.Finalizers = []string{batchv1.JobTrackingFinalizer}
		}
	}
}

// complete returns the projected Pods, with the fields that jobstream sees only once a Pod ends: the stage shows them from the
// beginning.
func complete(pods []*corev1.Pod) []events.Pod {
	out := projected(pods)
	for i, p := range pods {
		going := p.DeepCopy()
		going.DeletionTimestamp = &going.CreationTimestamp
		seen := events.ProjectPod(going)
		out[i].Exits, out[i].Conditions = seen.Exits, seen.Conditions
	}
	return out
}
