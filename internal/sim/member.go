package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/partition"
)

// member is a reconciler's part in the distribution of partitions. It drives the real Table as partition.Keeper does, without
// its goroutines and its clock.
type member struct {
	of      *reconciler
	table   *partition.Table
	holds   map[string]*holding // by function
	letters []letter            // heartbeats on their way to it
	tick    time.Time           // when it sends the next heartbeat
	number  int                 // of the last regular heartbeat
	sent    time.Time           // when that was sent
	said    partition.Heartbeat // the last heartbeat sent
	healthy int                 // undisturbed heartbeats since its last fault
	joined  bool
	leaving bool
	deaf    time.Time // until when it receives no heartbeats
	mute    time.Time // until when none of its heartbeats is delivered
}

// holding is the set of partitions of one function that a member has.
type holding struct {
	serving  partition.Set // it takes facts from these, or still works on some
	stopping partition.Set // those of them from which it takes no more facts
}

// letter is a heartbeat with its time of arrival.
type letter struct {
	partition.Heartbeat
	at time.Time
}

const (
	// resendAfter is how long a member waits for its own heartbeat before it sends another.
	resendAfter = 2 * time.Second
	// joinTicks is the number of its own heartbeats that a member receives before it serves.
	joinTicks = 2
)

func newMember(of *reconciler) *member {
	m := &member{of: of, table: partition.NewTable(of.name), holds: map[string]*holding{}, tick: of.world.now}
	for f := range of.fns {
		m.holds[f] = &holding{}
	}
	return m
}

func (m *member) serves(key events.Key) bool {
	h := m.holds[key.Function]
	return h != nil && (h.serving &^ h.stopping).Has(key.Partition())
}

// live does the process's share of the distribution: it receives the heartbeats that have arrived, and sends one if it is due.
func (m *member) live(f *fleet) {
	heartbeats := func() {
		if !m.tick.After(f.now) {
			m.healthy++
			if m.deaf.After(f.now) || m.mute.After(f.now) || f.now.Sub(m.tick) > partition.HeartbeatInterval { // the whole world has slept
				m.healthy = 0
			}
			m.tick = f.now.Add(partition.HeartbeatInterval + time.Duration(f.rand.IntN(20))*time.Millisecond)
			m.regular(f)
			if begun := m.settle(f); begun != 0 {
				f.fail("%s starts to serve the partitions %v without a new heartbeat", m.of.name, begun)
			}
		}
	}
	first := f.rand.IntN(2) == 0 // a process that was stopped finds both a tick and letters
	if first {
		heartbeats()
	}
	due := 0
	for due < len(m.letters) && !m.letters[due].at.After(f.now) {
		due++
	}
	arrived := m.letters[:due]
	m.letters = m.letters[due:]
	for _, l := range arrived {
		m.receive(f, l.Heartbeat)
		m.settle(f)
	}
	if !first {
		heartbeats()
	}
	if m.putDown() {
		m.settle(f)
	}
	if m.leaving && !m.busy() {
		f.send(m, m.own())
		f.remove(m.of)
	}
}

func (m *member) receive(f *fleet, b partition.Heartbeat) {
	m.table.Receive(b)
	switch {
	case b.Member == m.of.name:
		m.joined = m.joined || m.table.Ticks() >= joinTicks
	case b.Probe:
		f.send(m, m.own())
	}
}

// own returns the member's heartbeat as of now.
func (m *member) own() partition.Heartbeat {
	b := partition.Heartbeat{Member: m.of.name, Tick: m.table.Ticks(), Versions: map[string]int{}, Holds: map[string]partition.Set{},
		Serves: m.joined && !m.leaving}
	for name, h := range m.holds {
		b.Versions[name] = m.of.fns[name].Version
		if h.serving != 0 {
			b.Holds[name] = h.serving
		}
	}
	return b
}

// regular sends the next regular heartbeat, unless the last one has not come back and still may.
func (m *member) regular(f *fleet) {
	b := m.own()
	if b.Tick < m.number && f.now.Sub(m.sent) < resendAfter {
		return
	}
	b.Tick++
	b.Probe = !m.joined // an answer is no probe: several new members would probe each other without end
	m.number, m.sent = b.Tick, f.now
	f.send(m, b)
}

// settle starts to serve the partitions assigned to the member, stops serving the others, and announces it at once.
func (m *member) settle(f *fleet) (begun partition.Set) {
	own := m.own()
	for _, name := range slices.Sorted(maps.Keys(m.holds)) {
		h := m.holds[name]
		mine, free := m.table.Share(name, own)
		stop := h.serving &^ mine &^ h.stopping
		begin := free &^ h.serving
		h.stopping |= stop
		h.serving |= begin
		begun |= begin
		for n := range events.Partitions {
			if (stop | begin).Has(n) {
				m.of.recent[name].DropPartition(n)
			}
		}
		if stop|begin != 0 {
			f.trace("%s serves %s %v", m.of.name, name, h.serving&^h.stopping)
		}
		for _, k := range m.of.hands { // some workers stop at once, some finish their turn
			k.ends = k.ends || k.stage != idle && k.turn.Key.Function == name && stop.Has(k.turn.Key.Partition()) && f.rand.IntN(2) == 0
		}
	}
	if own = m.own(); own.Serves != m.said.Serves || !maps.Equal(own.Holds, m.said.Holds) {
		f.send(m, own)
	}
	return begun
}

// putDown hands over the partitions that the member is to stop serving once it holds none of their facts.
func (m *member) putDown() (changed bool) {
	for name, h := range m.holds {
		over := h.stopping
		for _, k := range m.of.hands {
			if k.stage != idle && k.turn.Key.Function == name {
				over &^= partition.One(k.turn.Key.Partition())
			}
		}
		h.serving, h.stopping = h.serving&^over, h.stopping&^over
		changed = changed || over != 0
	}
	return changed
}

func (m *member) busy() bool {
	for _, h := range m.holds {
		if h.serving != 0 {
			return true
		}
	}
	return false
}
