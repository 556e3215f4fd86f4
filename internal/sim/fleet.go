package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/job"
	"github.com/jobstream/jobstream/internal/partition"
)

// fleet is the set of running reconcilers. Either they share the partitions by heartbeats; or, in a crowd, every reconciler
// serves all partitions for ever, the worst distribution there can be.
type fleet struct {
	*World
	members []*reconciler
	all     []*worker
	born    int
	skewed  bool          // the clocks differ
	broken  error         // the first law about partitions that was broken
	fastest time.Duration // how far the fastest clock has ever been ahead of the cluster's
}

// most is the maximum number of running reconcilers.
const most = 4

// crowd returns two reconcilers with one worker each.
func crowd(w *World) *fleet {
	f := &fleet{World: w, skewed: w.rand.IntN(4) == 0}
	for range 2 {
		r := f.add(0, 1)
		r.member = nil
	}
	return f
}

// begin starts some reconcilers.
func (f *fleet) begin() {
	f.skewed = f.rand.IntN(3) == 0
	for range 1 + f.rand.IntN(most-1) {
		f.join()
	}
}

// add starts a reconciler of a version.
func (f *fleet) add(version, hands int) *reconciler {
	f.born++
	r := &reconciler{world: f.World, name: fmt.Sprintf("r%d", f.born), version: version, fns: f.versions[version]}
	r.remembersNothing()
	for i := range hands {
		r.hands = append(r.hands, &worker{of: r, id: i})
	}
	r.member = newMember(r)
	f.members = append(f.members, r)
	f.setClock(r)
	f.recount()
	return r
}

// join starts a reconciler of any version.
func (f *fleet) join() { f.start(f.rand.IntN(len(f.versions))) }

func (f *fleet) start(version int) {
	r := f.add(version, 1+f.rand.IntN(2))
	f.happens("join", "%s joins with version %d, its clock is %v ahead", r.name, r.fns[job.Name].Version, r.skew)
}

// remove ends the process. The bus delivers the facts that it held to another reconciler.
func (f *fleet) remove(r *reconciler) {
	f.members = slices.DeleteFunc(f.members, func(x *reconciler) bool { return x == r })
	if f.trace("%s is gone", r.name); len(f.members) == 0 { // one is always left: the Deployment restarts it
		f.start(r.version)
	}
	f.recount()
}

func (f *fleet) recount() {
	f.all = f.all[:0]
	for _, r := range f.members {
		f.all = append(f.all, r.hands...)
	}
}

func (f *fleet) hands() []*worker { return f.all }

// setClock draws a clock's error.
func (f *fleet) setClock(r *reconciler) {
	if f.skewed && f.rand.IntN(3) > 0 {
		r.skew = time.Duration(f.rand.IntN(16_000)-8_000) * time.Millisecond
		f.fastest = max(f.fastest, r.skew)
	}
}

// ahead returns the latest time that any clock has shown; decisions may have been made at it.
func (f *fleet) ahead() time.Time { return f.now.Add(f.fastest) }

// pass lets the members receive and send.
func (f *fleet) pass() {
	for _, r := range slices.Clone(f.members) {
		if r.member != nil && !r.asleep.After(f.now) {
			r.member.live(f)
		}
	}
}

// send delivers a heartbeat to every member, the sender included. Heartbeats that arrive keep their sender's order.
func (f *fleet) send(from *member, b partition.Heartbeat) {
	from.said = b
	for _, r := range f.members {
		to := r.member
		if from.mute.After(f.now) || to.deaf.After(f.now) || f.odds(f.rates.Member) {
			to.healthy = 0
			continue
		}
		at := f.now.Add(time.Duration(1+f.rand.IntN(10)) * time.Millisecond)
		if f.odds(5 * f.rates.Member) {
			to.healthy = 0
			at = at.Add(time.Duration(f.rand.IntN(1000)) * time.Millisecond)
		}
		for _, l := range to.letters {
			if l.Member == b.Member && l.at.After(at) {
				at = l.at
			}
		}
		to.letters = append(to.letters, letter{b, at})
		slices.SortStableFunc(to.letters, func(x, y letter) int { return x.at.Compare(y.at) })
	}
}

// dropHeartbeats drops all heartbeats in flight: the bus that carried them is lost.
func (f *fleet) dropHeartbeats() {
	for _, r := range f.members {
		if r.member != nil {
			r.member.letters, r.member.healthy = nil, 0
		}
	}
}

// waits reports every time that a process waits for, and those of the partitions until they are in order.
func (f *fleet) waits(sooner func(time.Time)) {
	distributing := f.distributed() != nil && (!f.calm || f.now.Sub(f.calmAt) < time.Minute)
	for _, r := range f.members {
		sooner(r.asleep)
		for _, k := range r.hands {
			sooner(k.asleep)
		}
		for _, a := range r.timers {
			sooner(a.at)
		}
		if distributing && r.member != nil {
			if sooner(r.member.tick); !r.member.tick.After(f.now) { // it has just joined
				sooner(f.now.Add(time.Millisecond))
			}
			for _, l := range r.member.letters {
				sooner(l.at)
			}
		}
	}
}

// misfortune injects a fault into one reconciler. It reports whether it could.
func (f *fleet) misfortune() bool {
	r := f.members[f.rand.IntN(len(f.members))]
	later := func() time.Time { return f.now.Add(time.Duration(f.rand.IntN(8000)) * time.Millisecond) }
	n := f.rand.IntN(12)
	switch {
	case n == 0 && f.skewed && !slices.ContainsFunc(r.hands, func(k *worker) bool { return k.stage != idle }):
		f.setClock(r)
		f.happens("clock set", "%s: its clock is now %v ahead", r.name, r.skew)
	case r.member == nil:
		return false
	case n <= 2 && len(f.members) < most:
		f.join()
	case n <= 4 && len(f.members) > 1 && !r.member.leaving:
		f.happens("leave", "%s is about to leave", r.name)
		r.member.leaving = true
	case n <= 6:
		f.happens("die", "%s dies", r.name)
		f.remove(r)
	case n <= 8:
		r.asleep, r.member.healthy = later(), 0
		f.happens("stop", "%s is stopped until %s", r.name, r.asleep.Format("15:04:05.000"))
	case n == 9:
		r.member.deaf = later()
		f.happens("deaf", "%s receives no heartbeats until %s", r.name, r.member.deaf.Format("15:04:05.000"))
	case n == 10:
		r.member.mute = later()
		f.happens("mute", "no heartbeat of %s is delivered until %s", r.name, r.member.mute.Format("15:04:05.000"))
	default:
		r.member.deaf = later()
		r.member.mute = r.member.deaf
		f.happens("cut off", "%s is cut off until %s", r.name, r.member.deaf.Format("15:04:05.000"))
	}
	return true
}

// heal ends all faults of reconcilers. In some worlds with two versions only one is left: an upgrade completed, or rolled back.
func (f *fleet) heal() {
	survives := f.rand.IntN(3) // 2: both
	for _, r := range slices.Clone(f.members) {
		if r.member == nil {
			continue
		}
		r.member.deaf, r.member.mute = time.Time{}, time.Time{}
		if len(f.versions) == 2 && survives < 2 && r.fns[job.Name].Version != f.versions[survives][job.Name].Version {
			f.trace("%s is taken out of service", r.name)
			f.members = slices.DeleteFunc(f.members, func(x *reconciler) bool { return x == r })
		}
	}
	if len(f.members) == 0 {
		f.add(survives, 1)
	}
	f.recount()
}

func (f *fleet) fail(format string, args ...any) {
	if f.broken == nil {
		f.broken = fmt.Errorf(format, args...)
		f.trace("ORACLE   %v", f.broken)
	}
}

// forgets checks that an old reconciler forgets a state that it cannot read only while it knows of no reconciler that can.
// healthy is the number of undisturbed heartbeats that both need to know of each other.
func (f *fleet) forgets(r *reconciler, key events.Key) {
	const healthy = 2 * partition.DeadAfter
	for _, other := range f.members {
		if other.fns[key.Function].Version > r.fns[key.Function].Version && other.member.joined && min(r.member.healthy, other.member.healthy) >= healthy {
			f.fail("%s forgets %s, which %s can read", r.name, key, other.name)
		}
	}
}

// distributed checks that exactly one reconciler, of the newest running version, serves each partition of each function, and
// that the shares are fair.
func (f *fleet) distributed() error {
	if f.members[0].member == nil {
		return nil
	}
	for name := range f.versions[0] {
		newest := 0
		for _, r := range f.members {
			newest = max(newest, r.fns[name].Version)
		}
		var served partition.Set
		shares := map[string]int{}
		for _, r := range f.members {
			h := r.member.holds[name]
			switch {
			case r.member.leaving:
				return fmt.Errorf("%s has not left yet", r.name)
			case h.stopping != 0:
				return fmt.Errorf("%s has not handed over the partitions %v of %s", r.name, h.stopping, name)
			case served&h.serving != 0:
				return fmt.Errorf("the partitions %v of %s are served twice", served&h.serving, name)
			case r.fns[name].Version < newest && h.serving != 0:
				return fmt.Errorf("%s serves the partitions %v of %s, though a newer version runs", r.name, h.serving, name)
			case r.fns[name].Version == newest:
				shares[r.name] = h.serving.Len()
			}
			served |= h.serving
		}
		if served != partition.All {
			return fmt.Errorf("no reconciler serves the partitions %v of %s", partition.All&^served, name)
		}
		for r, n := range shares {
			if fair := events.Partitions / len(shares); n != fair && (n != fair+1 || events.Partitions%len(shares) == 0) {
				return fmt.Errorf("%s serves %d partitions of %s, which %d reconcilers share", r, n, name, len(shares))
			}
		}
	}
	return nil
}
