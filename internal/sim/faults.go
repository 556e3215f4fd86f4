package sim

import (
	"context"
	"slices"
	"time"

	"github.com/jobstream/jobstream/events"
)

// fault injects at most one fault.
func (w *World) fault() bool {
	hands := w.fleet.hands()
	k := hands[w.rand.IntN(len(hands))]
	t := w.anyTenant()
	switch {
	case k.stage != idle && w.odds(w.rates.Crash):
		w.happens("crash", "%s ends before its time", k)
		w.drop(k)
		k.of.remembersNothing()
	case k.stage != idle && w.odds(w.rates.Sleep):
		k.asleep = w.now.Add(time.Duration(w.rand.IntN(8000)) * time.Millisecond)
		w.happens("sleep", "%s sleeps until %s", k, k.asleep.Format("15:04:05.000"))
	case w.odds(w.rates.Member) && w.fleet.misfortune():
	case w.scheduler != nil && w.odds(w.rates.Meddle):
		w.Steps["meddle"]++
		w.scheduler.meddle()
	case t != nil && w.odds(w.rates.Meddle*t.plan.meddlers()):
		w.Steps["meddle"]++
		t.meddle()
	case w.odds(w.rates.Lose):
		w.happens("state lost", "bus      the state bucket is lost")
		w.forgot()
		w.bus.states = map[events.Key]state{}
		w.relist()
	case w.odds(w.rates.Wipe):
		w.happens("bus lost", "bus      everything is lost")
		w.forgot()
		w.bus.clear()
		w.fleet.dropHeartbeats()
		w.relist()
	case !w.gap && w.odds(w.rates.Gap):
		w.happens("watch gap", "trigger  is away")
		w.gap = true
	case w.gap && w.rand.IntN(30) == 0:
		w.trace("trigger  reconnects and relists")
		w.relist()
	case !w.gap && w.odds(w.rates.Relist):
		w.happens("relist", "trigger  relists")
		w.relist()
	case w.odds(w.rates.Quota):
		w.quota = !w.quota
		w.happens("quota", "api      refuses Pods: %v", w.quota)
	case w.odds(w.rates.Unknown) && w.misread():
	case w.odds(w.rates.RestTime):
		w.now = w.now.Add(time.Duration(w.rand.IntN(60)) * time.Second)
	default:
		return false
	}
	return true
}

// misread takes an undelivered fact off the bus as a bus does that cannot decode it: the key's timer fires within seconds.
func (w *World) misread() bool {
	i := slices.IndexFunc(w.bus.facts, func(m *message) bool {
		_, fired := m.event.(events.TimerFired) // reconcilers publish those themselves
		return !fired && m.until.IsZero()
	})
	if i < 0 {
		return false
	}
	m := w.bus.facts[i]
	at := w.now.Add(time.Duration(1+w.rand.IntN(5000)) * time.Millisecond)
	if i := slices.IndexFunc(w.fleet.members, func(r *reconciler) bool { return r.serves(m.key) }); i >= 0 {
		at = at.Add(w.fleet.members[i].skew) // the timer is set by the clock of the reconciler that cannot read it
	}
	w.happens("unknown fact", "bus      no reconciler can decode %T of %s; its timer fires at %s", m.event, m.key, at.Format("15:04:05.000"))
	for _, t := range w.tenants {
		t.truth.unread(m.event)
	}
	w.bus.remove(m)
	_ = w.bus.Set(context.Background(), m.key, events.Unread, at) // never fails
	return true
}

// forgot records that memory was lost.
func (w *World) forgot() {
	for _, t := range w.tenants {
		t.truth.forgot()
	}
	if w.scheduler != nil {
		w.scheduler.forgot()
	}
}

func (w *World) happens(what, format string, args ...any) {
	w.Steps[what]++
	w.trace(format, args...)
}

// Calm ends all faults. No relist follows unless a gap or a late limit demands one: whatever else was missed must heal by
// itself.
func (w *World) Calm() {
	w.trace("world    calms down")
	w.rates, w.quota, w.calm, w.calmAt = Rates{}, false, true, w.now
	w.fleet.heal()
	for _, t := range w.tenants {
		t.heal()
	}
	if w.scheduler != nil {
		w.scheduler.heal()
	}
	if w.gap || w.lateLimit {
		w.relist()
	}
}

// heal makes the changes by which users let the Job finish.
func (w *tenant) heal() {
	if w.has(parameters) {
		w.trace("user     creates ConfigMaps of %d values", plenty)
		for _, name := range parametersNames {
			w.api.SetValues(name, &Values{Count: plenty})
		}
	}
	if j := w.unfinished(); j != nil && j.Suspended && w.rand.IntN(2) == 0 {
		w.setSuspended(false)
	}
	if j := w.unfinished(); j != nil && w.parent != nil && j.Parallelism == 0 { // otherwise the ScheduledJob would wait for it for ever
		w.edit(func(j *events.Job) { j.Parallelism = 1 })
	}
}
