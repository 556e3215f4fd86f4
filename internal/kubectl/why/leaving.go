package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/kubectl/doctor"
)

// lateEnd is how long after its grace period a Pod may be until its kubelet is suspected.
const lateEnd = 30 * time.Second

// leaving reports what the deletion of the Job waits for.
func (x *jobCauses) leaving() {
	o := x.Object
	if o.DeletionTimestamp == nil {
		return
	}
	x.heldBy(o.ObjectMeta, "job.batch")
	x.leavingPods()
	if x.holdUp() {
		return
	}
	x.warn("deletion", "wait until its Pods have ended: kubectl get pods -n "+x.namespace+" -l batch.kubernetes.io/job-name="+x.name,
		"its deletion began %s ago, and waits for %s", x.ago(o.DeletionTimestamp.Time), clean(strings.Join(o.Finalizers, ", ")))
}

// heldBy reports finalizers of other programs that hold the deletion of the object.
func (f *findings) heldBy(o metav1.ObjectMeta, resource string) {
	if foreign := events.ForeignFinalizers(o.Finalizers); len(foreign) > 0 {
		f.fail("finalizer", removeFinalizer(foreign, o, resource), "its deletion began %s ago, and the finalizer %s of another program holds it%s", f.ago(o.DeletionTimestamp.Time),
			clean(strings.Join(foreign, ", ")), setBy(o, foreign))
	}
}

func removeFinalizer(foreign []string, o metav1.ObjectMeta, resource string) string {
	return fmt.Sprintf("let the program that has set %s remove it; if that program is gone: kubectl edit %s %s -n %s, and delete it from metadata.finalizers", clean(strings.Join(foreign, ", ")), resource, o.Name, o.Namespace)
}

// setBy names the field manager that has set the first of the finalizers.
func setBy(o metav1.ObjectMeta, finalizers []string) string {
	if e := events.FieldManager(o.ManagedFields, "f:metadata", "f:finalizers", fmt.Sprintf("v:%q", finalizers[0])); e != nil {
		return fmt.Sprintf(" (set by %s)", clean(e.Manager))
	}
	return ""
}

// ending reports a Job whose end is decided and that waits for its last Pods.
func (x *jobCauses) ending() {
	c := x.decided()
	if c != nil {
		how := "it fails"
		if c.Type == batchv1.JobSuccessCriteriaMet {
			how = "it has succeeded"
		}
		x.leavingPods()
		if live := x.live(); !x.holdUp() && live == 0 && !x.PodsUnread && x.now.Sub(c.LastTransitionTime.Time) > doctor.Timeout {
			x.fail("controller", x.findController(), "its end was decided %s ago, and no Pod is left: the controller does not do its work", x.ago(c.LastTransitionTime.Time))
		}
		x.warn("ending", "wait for its last Pods", "%s (%s: %s), and waits until its Pods have ended", how, clean(c.Reason), clean(c.Message))
		return
	}
	replaceLate := ptr.Deref(x.Object.Spec.PodReplacementPolicy, "") == batchv1.Failed || x.Object.Spec.PodFailurePolicy != nil
	if replaceLate || ptr.Deref(x.Object.Spec.Suspend, false) {
		x.leavingPods()
	}
}

// live returns the number of Pods that have not ended.
func (x *jobCauses) live() (n int) {
	for i := range x.Pods {
		if !ended(&x.Pods[i]) {
			n++
		}
	}
	return n
}

// leavingPods reports Pods that are being deleted and for which the Job waits: the first that a finalizer holds, and the first that
// its node does not end.
func (x *jobCauses) leavingPods() {
	var held, silent *corev1.Pod
	nHeld, nSilent, nTracked := 0, 0, 0
	for i := range x.Pods {
		p := &x.Pods[i]
		if p.DeletionTimestamp == nil {
			continue
		}
		overdue := x.now.Sub(p.DeletionTimestamp.Time) > lateEnd // the time of the deletion plus the grace period
		switch {
		case !ended(p) && overdue && p.Spec.NodeName != "":
			nSilent, silent = nSilent+1, cmp.Or(silent, p)
		case len(events.ForeignFinalizers(p.Finalizers)) > 0 && (overdue || ended(p)):
			nHeld, held = nHeld+1, cmp.Or(held, p)
		case slices.Contains(p.Finalizers, batchv1.JobTrackingFinalizer) && overdue:
			nTracked++
		}
	}
	if held != nil {
		foreign := events.ForeignFinalizers(held.Finalizers)
		x.fail("finalizer", removeFinalizer(foreign, held.ObjectMeta, "pod"), "%s being deleted, and the finalizer %s of another program holds it%s: the Pod %s", are(nHeld, "Pod"),
			clean(strings.Join(foreign, ", ")), setBy(held.ObjectMeta, foreign), held.Name)
	}
	if silent != nil {
		node := clean(silent.Spec.NodeName)
		x.fail("node", "look at the node with: kubectl describe node "+argument(node)+"; if it is gone for good: kubectl delete pod "+silent.Name+" -n "+x.namespace+" --grace-period=0 --force",
			"%s being deleted, and the node does not report the end: the Pod %s on %s, for %s after its grace period", are(nSilent, "Pod"), silent.Name, node, x.ago(silent.DeletionTimestamp.Time))
	}
	if nTracked > 0 && held == nil {
		x.fail("controller", x.findController()+"; docs/uninstall.md has how to remove the finalizer by hand", "%s being deleted and not released: the Job's controller has to remove the finalizer %s",
			are(nTracked, "Pod"), batchv1.JobTrackingFinalizer)
	}
}

// are returns "1 Pod is" or "3 Pods are".
func are(n int, what string) string {
	if n == 1 {
		return "1 " + what + " is"
	}
	return fmt.Sprintf("%d %ss are", n, what)
}
