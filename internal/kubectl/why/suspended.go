package why

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/finding"
	"github.com/jobstream/jobstream/internal/kubectl/doctor"
)

// suspended reports that spec.suspend is true, and who has set it: a queue, a program of jobstream, or a field manager. effect is what
// that means for the object.
func (f *findings) suspended(o metav1.ObjectMeta, effect string) {
	resume := fmt.Sprintf("kubectl jobstream resume %s/%s -n %s", f.kind, f.name, f.namespace)
	by := f.suspender(o)
	comma := strings.TrimSuffix(", "+by, ", ")
	switch label := o.Labels[v1alpha1.SuspendedByLabel]; {
	case o.Labels[v1alpha1.QueueLabel] != "":
		queue := clean(o.Labels[v1alpha1.QueueLabel])
		f.warn("queue", fmt.Sprintf("see what the queue waits for with: kubectl describe workloads -n %s, and kubectl describe localqueue %s -n %s", f.namespace, argument(queue), f.namespace),
			"it waits in the queue %s (label %s), which has not admitted it; spec.suspend is true%s", queue, v1alpha1.QueueLabel, comma)
	case label == v1alpha1.SuspendedByRun:
		f.fail("suspended", fmt.Sprintf("delete it with: kubectl delete %s, and run it again", f.object()), `it is suspended: "kubectl jobstream run" is creating it, or was interrupted%s`, comma)
	case label != "":
		g := doctor.SuspendedBy("suspended", label, f.kind, f.name, f.namespace)
		g.Level, g.Found = finding.Fail, g.Found+": "+effect+comma
		f.add(g)
	default:
		f.fail("suspended", "resume it with: "+resume, "spec.suspend is true%s: %s", comma, effect)
	}
}

// suspender names the field manager that has set spec.suspend, and when; "" if no field manager is recorded.
func (f *findings) suspender(o metav1.ObjectMeta) string {
	e := events.FieldManager(o.ManagedFields, "f:spec", "f:suspend")
	if e == nil {
		return ""
	}
	by := clean(e.Manager)
	switch {
	case e.Time == nil:
		return "set by " + by
	case !e.Time.After(o.CreationTimestamp.Time):
		return fmt.Sprintf("set by %s when it was created %s ago", by, f.ago(e.Time.Time))
	}
	return fmt.Sprintf("set by %s at %s, %s ago", by, e.Time.UTC().Format(time.RFC3339), f.ago(e.Time.Time))
}
