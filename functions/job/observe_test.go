package job

import (
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/backoff"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/intervals"
	"github.com/jobstream/jobstream/functions/inventory"
	"github.com/jobstream/jobstream/functions/pod"
)

// tracked returns a State with one row: the Pod of serial 2, at version 5.
func tracked(change func(*Row)) State {
	r := Row{Pod: events.Pod{Name: pod.Name("pi", "u", 2, events.NoIndex), UID: "p", Version: 5, Serial: 2, Index: events.NoIndex, Phase: events.Running, Held: true}}
	change(&r)
	return State{Inventory: inventory.Inventory{Known: true}, Job: events.Job{Name: "pi", UID: "u", Version: 1}, limits: DefaultLimits(),
		Table: Table{Next: 3, Pods: map[int]Row{2: r}, Unplaced: map[types.UID]Unplaced{}}}
}

func asItIs(*Row) {}

// TestWhichObservationOfAPodCounts: what a row becomes by an observation of a Pod with its serial.
func TestWhichObservationOfAPodCounts(t *testing.T) {
	gone := func(r *Row) { r.Gone = true }
	for _, c := range []struct {
		name   string
		row    func(*Row)
		see    func(*events.Pod)
		uid    types.UID
		phase  events.PodPhase
		gone   bool
		strays int
	}{
		{"newer", asItIs, func(p *events.Pod) { p.Version = 6 }, "p", events.Succeeded, false, 0},
		{"the same version again", asItIs, func(p *events.Pod) { p.Version = 5 }, "p", events.Running, false, 0},
		{"older", asItIs, func(p *events.Pod) { p.Version = 4 }, "p", events.Running, false, 0},
		{"newer, of a Pod that is gone", gone, func(p *events.Pod) { p.Version = 6 }, "p", events.Running, true, 0},
		{"another Pod has the name of one that is gone", gone, func(p *events.Pod) { p.UID, p.Version = "q", 6 }, "q", events.Succeeded, false, 0},
		{"another Pod has the name of one whose deletion is not observed yet", asItIs, func(p *events.Pod) { p.UID, p.Version = "q", 6 }, "q", events.Succeeded, false, 0},
		{"a Pod of another name has the serial of one that is gone", gone, func(p *events.Pod) { p.UID, p.Name, p.Version = "q", "copy", 6 }, "p", events.Running, true, 1},
		{"the same, and that Pod was observed later", gone, func(p *events.Pod) { p.UID, p.Name, p.Version = "q", "copy", 4 }, "p", events.Running, true, 1},
	} {
		s := tracked(c.row)
		p := s.Pods[2].Pod
		p.Phase = events.Succeeded
		c.see(&p)
		s = observe(s, events.PodObserved{Pod: p})
		if r := s.Pods[2]; r.Pod.UID != c.uid || r.Pod.Phase != c.phase || r.Gone != c.gone || len(s.Unplaced) != c.strays {
			t.Errorf("%s: %+v, unplaced %v", c.name, r, s.Unplaced)
		}
	}
}

// A Pod with a serial that has not been given out, and with the name that goes with it, is the Job's: the next serial is a later one.
func TestThePodOfALostStateMovesTheNextSerial(t *testing.T) {
	s := tracked(asItIs)
	for serial, next := range map[int]int{3: 4, 9: 10} {
		p := events.Pod{Name: pod.Name("pi", "u", serial, events.NoIndex), UID: types.UID(rune('a' + serial)), Version: 7, Serial: serial, Index: events.NoIndex, Phase: events.Running, Held: true}
		one := s
		one.Pods, one.serialByUID = maps.Clone(s.Pods), nil
		if one = observe(one, events.PodObserved{Pod: p}); one.Next != next || one.Pods[serial].Pod.UID != p.UID {
			t.Errorf("serial %d: the next one is %d, rows %v", serial, one.Next, one.Pods)
		}
	}
}

// A refusal to change a Pod is over when the change is observed, and not before.
func TestWhenARefusalIsOver(t *testing.T) {
	for _, c := range []struct {
		name, kind     string
		held, deleting bool
		over           bool
	}{
		{"it is still held", effect.KindRemoveFinalizer, true, false, false},
		{"it is no longer held", effect.KindRemoveFinalizer, false, false, true},
		{"it is not deleted yet", effect.KindDeletePod, true, false, false},
		{"it is being deleted", effect.KindDeletePod, true, true, true},
	} {
		s := tracked(asItIs)
		p := s.Pods[2].Pod
		s.Waits = backoff.Waits{}
		s.Waits.Refuse(events.EffectRefused{Effect: c.kind, Name: p.Name, Reason: "Forbidden", At: noon})
		p.Version, p.Held, p.Deleting = 6, c.held, c.deleting
		if s = observe(s, events.PodObserved{Pod: p}); (len(s.Waits) == 0) != c.over {
			t.Errorf("%s: %v", c.name, s.Waits)
		}
	}
}

// TestPodsThatAreMissing: a Pod is gone, or a search has not found it.
func TestPodsThatAreMissing(t *testing.T) {
	intended := func(r *Row) { r.Pod.UID, r.Pod.Version = "", 0 }
	withdrawn := func(r *Row) { intended(r); r.Withdrawn = true }
	name := tracked(asItIs).Pods[2].Pod.Name
	for _, c := range []struct {
		name       string
		row        func(*Row)
		gone       events.Pod
		kept, over bool // whether there is a row, and whether its Pod is gone
	}{
		{"its Pod", asItIs, events.Pod{Name: name, UID: "p", Serial: 2, Version: 6}, true, true},
		{"a Pod of the same name, before this one", asItIs, events.Pod{Name: name, UID: "o", Serial: 2, Version: 4}, true, false},
		{"an orphan of another Job of this name", intended, events.Pod{Name: pod.Name("pi", "u1", 2, events.NoIndex), UID: "o", Serial: 2, Orphan: true}, true, false},
		{"an orphan that a user made of the intended Pod before it was observed", intended, events.Pod{Name: name, UID: "p", Serial: 2, Version: 6, Orphan: true}, true, true},
		{"a Pod of another name", intended, events.Pod{Name: "copy", UID: "o", Serial: 2}, true, false},
		{"an intended Pod that came and went unobserved", intended, events.Pod{Name: name, UID: "p", Serial: 2, Version: 6}, true, true},
		{"a withdrawn Pod, not found", withdrawn, events.Pod{Name: name, Serial: 2}, false, false},
		{"an intended Pod, not found", intended, events.Pod{Name: name, Serial: 2}, true, false},
		{"a Pod that exists, not found by its name", asItIs, events.Pod{Name: name, Serial: 2}, true, false},
	} {
		s := observe(tracked(c.row), events.PodGone{Pod: c.gone})
		if r, kept := s.Pods[2]; kept != c.kept || r.Gone != c.over {
			t.Errorf("%s: %v, %+v", c.name, kept, r)
		}
	}
}

// How a Pod failed is true however late it is observed: after a newer observation, after its deletion, and after another worker has
// created the next Pod of its name. The failure of a surplus Pod is what the reconciler asked for.
func TestAFailureThatIsObservedLate(t *testing.T) {
	late := tracked(asItIs).Pods[2].Pod
	late.Version, late.Phase, late.Exits, late.Finished = 4, events.Failed, []events.Exit{{Container: "main", Code: 4}}, noon
	for _, c := range []struct {
		name  string
		row   func(*Row)
		noted bool
	}{
		{"after a newer observation", asItIs, true},
		{"after its deletion", func(r *Row) { r.Gone = true }, true},
		{"after the next Pod of its name", func(r *Row) { r.Pod.UID = "q" }, true},
		{"of a surplus Pod", func(r *Row) { r.Surplus = true }, false},
	} {
		s := observe(tracked(c.row), events.PodObserved{Pod: late})
		if noted := s.LastFailure != nil && s.LastFailure.ExitCode == 4; noted != c.noted {
			t.Errorf("%s: %+v", c.name, s.LastFailure)
		}
		if r := s.Pods[2]; r.Pod.Version != 5 {
			t.Errorf("%s: the older observation replaces the newer: %+v", c.name, r)
		}
	}
}

// Only the observation of its deletion shows how a Pod ended that was deleted. It is kept if ends of Pods are announced.
func TestTheEndOfADeletedPod(t *testing.T) {
	for _, announce := range []bool{false, true} {
		for _, end := range []*events.PodEnd{nil, {Node: "n"}} {
			s := tracked(asItIs)
			s.limits.AnnouncePods = announce
			p := s.Pods[2].Pod
			p.Version, p.End, p.Finished = 6, end, noon
			s = observe(s, events.PodGone{Pod: p})
			if got := s.Pods[2].Pod; (got.End != nil) != (announce && end != nil) || got.Finished.Equal(noon) != (announce && end != nil) {
				t.Errorf("announced %v, end %v: %+v", announce, end, got)
			}
		}
	}
}

// If a stranger has the name of an intended Pod, the serial is given up; if it exists already as the Job's, nothing changes. Other
// refusals only delay.
func TestRefusedCreations(t *testing.T) {
	intended := func(r *Row) { r.Pod.UID, r.Pod.Version = "", 0 }
	for _, c := range []struct {
		name    string
		row     func(*Row)
		serial  int
		kind    string
		reason  string
		kept    bool
		allowed int
	}{
		{"a stranger has the name", intended, 2, effect.KindCreatePod, "AlreadyExists", false, 0},
		{"a stranger has the name of a Pod that was observed since", asItIs, 2, effect.KindCreatePod, "AlreadyExists", true, 0},
		{"of a serial that has no row", asItIs, 8, effect.KindCreatePod, "AlreadyExists", true, 0},
		{"a quota", intended, 2, effect.KindCreatePod, "Forbidden", true, 1},
		{"a deletion", intended, 2, effect.KindDeletePod, "Forbidden", true, 0},
	} {
		s := observe(tracked(c.row), events.EffectRefused{Effect: c.kind, Serial: c.serial, Reason: c.reason, At: noon})
		if _, kept := s.Pods[2]; kept != c.kept || s.Allowed != c.allowed || len(s.Pods) > 1 {
			t.Errorf("%s: %v, allowed %d", c.name, s.Pods, s.Allowed)
		}
	}
	s := tracked(intended)
	refused := events.EffectRefused{Effect: effect.KindCreatePod, Serial: 2, Reason: "Forbidden", At: noon}
	s = observe(s, refused)
	s.Allowed = 4
	if s = observe(s, refused); s.Allowed != 4 {
		t.Errorf("the same refusal, delivered again: allowed %d", s.Allowed)
	}
}

// A Pod without a serial that is observed again at the same version, or an older one, is as it was.
func TestUnplacedPodsAreAsTheyWereObservedLast(t *testing.T) {
	s := tracked(asItIs)
	s.Settled = intervals.Of(0)
	p := events.Pod{Name: "found", UID: "f", Version: 8, Serial: events.NoSerial, Index: events.NoIndex, Phase: events.Running}
	s = observe(s, events.PodObserved{Pod: p})
	for version, phase := range map[uint64]events.PodPhase{7: events.Running, 8: events.Running, 9: events.Succeeded} {
		one := s
		one.Unplaced = maps.Clone(s.Unplaced)
		later := p
		later.Version, later.Phase, later.Held = version, events.Succeeded, true
		if one = observe(one, events.PodObserved{Pod: later}); one.Unplaced["f"].Pod.Phase != phase {
			t.Errorf("version %d: %+v", version, one.Unplaced["f"])
		}
	}
}
