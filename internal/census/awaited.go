package census

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/events"
)

// MaxAwaited is how many runs may wait for their first Pod at once; what is beyond is not measured.
const MaxAwaited = 10_000

// await remembers a Job whose first Pod is to be measured: one that the clock has started, and whose status shows no Pod that has
// started.
func (c *Census) await(j events.Job) {
	st := j.Status
	switch {
	case j.Owner == nil, j.Owner.Manual, j.Owner.Nominal.IsZero(), j.Foreign, j.Deleting, j.Finished():
		return
	case showsStart(j), st.Failed > 0, st.UncountedTerminatedPods != nil && len(st.UncountedTerminatedPods.Failed) > 0:
		return
	case len(c.awaited) >= MaxAwaited:
		return
	}
	c.awaited[idOf(j.UID)] = j.Owner.Nominal.Unix()
}

// sawProgress looks at the Job's status, which may show a start before the watch of Pods does.
func (c *Census) sawProgress(j events.Job) {
	if showsStart(j) {
		c.started(j.Namespace, j.UID)
	}
	if j.Finished() || j.Deleting {
		delete(c.awaited, idOf(j.UID))
	}
}

// showsStart reports whether a status shows that a Pod has started. A failed one may never have.
func showsStart(j events.Job) bool {
	u := j.Status.UncountedTerminatedPods
	return ptr.Deref(j.Status.Ready, 0) > 0 || j.Status.Succeeded > 0 || u != nil && len(u.Succeeded) > 0
}

// hasStarted reports whether a container of the Pod has run. A Pod that was deleted or rejected while it was Pending fails without.
func hasStarted(p events.Pod) bool {
	switch p.Phase {
	case events.Running, events.Succeeded:
		return true
	case events.Failed:
		return p.End != nil && p.End.Container != nil
	case events.Pending:
	}
	return false
}

// started reports the start of an awaited Job's first Pod, and awaits it no more.
func (c *Census) started(namespace string, job types.UID) {
	nominal, awaited := c.awaited[idOf(job)]
	if !awaited {
		return
	}
	delete(c.awaited, idOf(job))
	c.config.Started(namespace, time.Unix(nominal, 0), c.config.Now())
}
