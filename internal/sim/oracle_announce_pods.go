package sim

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
)

// podMoment records that a status accounts for the end of a Pod, and whether subscribers have received it.
type podMoment struct {
	job      types.UID
	result   events.PodResult
	received bool
	// unsure reports whether the memory was lost before the bus had confirmed the announcement.
	unsure bool
}

// accounts records the Pods whose ends a written status accounts for.
func (t *truth) accounts(j events.Job) {
	if set := completed(j.Status); j.Indexed {
		for i := range int(*j.Completions) {
			if set.Has(i) {
				t.completed[line{j.UID, i}] = true
			}
		}
	}
	u := uncounted(j.Status)
	for _, uid := range u.Succeeded {
		t.accounted(j, uid, events.PodSucceeded)
	}
	for _, uid := range u.Failed {
		t.accounted(j, uid, events.PodFailed)
	}
}

func (t *truth) accounted(j events.Job, uid types.UID, result events.PodResult) {
	if t.ends[uid] == nil {
		t.ends[uid] = &podMoment{job: j.UID, result: result}
	}
}

// unheld records the removal of the finalizer from a Pod whose end only the Pod itself and its index show. The worker that removes
// it may just have lost its memory of that end.
func (t *truth) unheld(j events.Job, p events.Pod) {
	within := !j.Indexed || p.Index >= 0 && p.Index < t.least // a Pod that is adopted may have no index, and then counts as nothing
	switch r := t.of(p.UID); {
	case j.Indexed && p.Phase == events.Succeeded && completed(j.Status).Has(p.Index):
		t.accounted(j, p.UID, events.PodSucceeded)
	case within && t.ignored(r) && p.Terminal():
		t.accounted(j, p.UID, events.PodIgnored)
	default:
		return
	}
	m := t.ends[p.UID]
	m.unsure = m.unsure || t.losses > 0 && !m.received
}

// podAnnounced compares what subscribers receive about a Pod with what has happened: how it ended, or that it was told to end,
// and how that counts.
func (t *truth) podAnnounced(e events.PodFinished) {
	r, m := t.of(e.Pod.UID), t.ends[e.Pod.UID]
	t.w.Steps["PodFinish "+string(e.Result)]++
	switch {
	case !t.counts(e, r):
		t.fail("%v is announced, and the truth is %+v, %+v", e, *r, m)
	case e.Container == nil && !r.deleted && !r.uncertain && t.losses+t.w.Steps["watch gap"]+t.w.Steps["relist"]+t.w.Steps["unknown fact"] == 0, e.Container != nil && (!r.ended || e.Container.ExitCode != r.code || !e.End.Equal(r.finished)):
		t.fail("%v of %v, %+v, is announced, and the truth is %+v", e, e.End, e.Container, r)
	case (e.Index == nil) != (r.index == events.NoIndex) || e.Index != nil && *e.Index != r.index:
		t.fail("%v is announced of index %v, and has %d", e, e.Index, r.index)
	}
	if m == nil || m.received { // a worker that did not receive the confirmation publishes it again, even after the end
		return
	}
	m.received = true
	for id, other := range t.told {
		if end, ok := other.event.(events.JobFinished); ok && other.received && other.job == e.Job.UID && !m.unsure && t.losses == 0 {
			t.fail("%v is announced after %s %v", e, id, end)
		}
	}
}

// counts reports whether the end of the Pod counts as the event says.
func (t *truth) counts(e events.PodFinished, r *record) bool {
	m := t.ends[e.Pod.UID]
	switch {
	case m != nil && m.job == e.Job.UID && m.result == e.Result:
		return true
	case e.Result == events.PodSucceeded: // a user removed its finalizer when its index was recorded
		return r.well && t.completed[line{e.Job.UID, r.index}]
	}
	return e.Result == events.PodIgnored && t.ignored(r)
}

// unannouncedPods returns an error for a Pod whose end should have been announced and was not. The ends may be lost of Pods
// whose Job is gone, and of Pods whose finalizer a user has removed.
func (t *truth) unannouncedPods(j *events.Job) error {
	if !t.w.limits.AnnouncePods {
		return nil
	}
	for _, uid := range slices.Sorted(maps.Keys(t.ends)) {
		if m := t.ends[uid]; !m.received && !m.unsure && m.job == j.UID && !t.of(uid).uncertain {
			return fmt.Errorf("the end of %s, %s, is never announced", uid, m.result)
		}
	}
	return nil
}
