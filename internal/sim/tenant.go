package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/job"
)

// tenant is one Job in a namespace of its own, with the users who change it and the truth about it.
type tenant struct {
	*World
	plan  plan
	api   *API
	truth *truth
	uid   types.UID
	// parent is the ScheduledJob that created the Job, nil if a user did.
	parent *scheduler

	foreignPods int // Pods that users have created
}

func newTenant(w *World, namespace string, p plan) *tenant {
	t := &tenant{World: w, plan: p, api: NewAPI(nil)}
	t.api.Namespace, t.api.Now = namespace, func() time.Time { return w.now }
	t.api.Emit = t.observe
	t.api.Refuse = w.refuse
	t.truth = newTruth(t)
	t.api.Check, t.api.Wrote, t.api.Announced = t.truth, w.wrote, t.truth.announced
	return t
}

// begin creates the Job.
func (w *tenant) begin() {
	if w.has(parameters) && w.rand.IntN(2) == 0 {
		w.editValues()
	}
	w.api.Lingering = w.has(lingering)
	j := w.plan.job
	if w.plan.heirlooms > 0 {
		j.Status.StartTime = &metav1.Time{Time: w.now}
	}
	w.uid = j.UID // empty, unless a ScheduledJob has set it
	w.uid = w.api.CreateJob(j).UID
	w.trace("user     creates the Job: %s", describe(w.plan))
	most := int(j.Parallelism)
	if j.Completions != nil {
		most = min(most, int(*j.Completions))
	}
	for i := range min(w.plan.heirlooms, most) {
		p := events.Pod{Name: fmt.Sprintf("heirloom-%d", i), Owner: j.Name, Serial: events.NoSerial, Index: events.NoIndex, Phase: events.Pending, Held: true}
		if j.Indexed {
			p.Index = i
		}
		if j.Selector != nil {
			p.Labels = j.Selector.MatchLabels
		}
		p = w.api.AddPod(w.uid, p)
		w.truth.made(p, w.uid)
		w.trace("world    an older version has created %s", p.Name)
	}
}

func (w *tenant) has(f feature) bool { return w.plan.features[f] }

func (w *tenant) fail(format string, args ...any) { w.truth.fail(format, args...) }

func (w *tenant) forgot() { w.truth.forgot() }

// late records that an effect was carried out long after it was decided.
func (w *tenant) late(e effect.Effect) {
	if _, ok := e.(effect.CreatePod); ok {
		w.truth.zombies++
	}
}

// trace names the Job, if there are several.
func (w *tenant) trace(format string, args ...any) {
	if len(w.tenants) > 1 {
		format = "[" + w.api.Namespace + "] " + format
	}
	w.World.trace(format, args...)
}

func (w *tenant) happens(what, format string, args ...any) {
	w.Steps[what]++
	w.trace(format, args...)
}

// observe is the trigger's watch.
func (w *tenant) observe(key events.Key, e events.Event) {
	if w.parent != nil {
		w.parent.forward(w, e)
	}
	w.truth.happened(e)
	if w.gap {
		return
	}
	if p, is := e.(events.PodObserved); is && w.sparing && job.Redundant(p.Pod, w.now.Sub(p.Pod.Created)) {
		return
	}
	w.bus.publish(key, e)
	if w.odds(w.rates.Repeat) {
		w.bus.publish(key, e)
	}
}

// relist publishes one snapshot of every Job of the namespace that may need one.
func (w *tenant) relist() {
	seen := map[types.UID]bool{}
	for uid, j := range w.api.jobs { // a finished Job may still have to be deleted, or to announce, or have failed Pods to delete
		seen[uid] = !j.Finished() || j.TTLSecondsAfterFinished != nil || j.Options.FailedPodsLimit != nil || w.now.Sub(j.FinishedAt()) < events.ReannounceWindow
	}
	for _, p := range w.api.pods {
		if uid := w.api.receiver(p); p.Held && uid != "" {
			seen[uid] = true
		}
	}
	seen[w.uid] = seen[w.uid] || w.api.jobs[w.uid] == nil
	for _, uid := range slices.Sorted(maps.Keys(seen)) {
		if seen[uid] {
			for _, part := range w.api.List(fmt.Sprintf("relist-%d", w.lists), uid).Split(events.Share{Pods: w.share}) {
				w.Steps[string(part.Type())]++
				w.bus.publish(w.api.Key(uid), part)
			}
		}
	}
}
