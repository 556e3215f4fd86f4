package partition

import (
	"maps"
	"slices"
)

const (
	// DeadAfter is the number of ticks without a heartbeat after which a member takes another for dead. With a heartbeat every
	// half second that is two and a half seconds: longer than a busy machine stops a process, shorter than the three seconds
	// after which the server delivers again what the dead member has not acknowledged.
	DeadAfter = 5
	// HandoverTicks is the number of ticks that a member waits for another to release a partition that is assigned to itself by
	// now. Turns of the other that still run after that meet the compare-and-set.
	HandoverTicks = 2
)

// Heartbeat describes the member that sends it.
type Heartbeat struct {
	// Member is the name of the process. It is unique, and a process that starts again has another one.
	Member string `json:"member"`
	// Versions is, by function, the version of the state that the member reads and writes.
	Versions map[string]int `json:"versions"`
	// Holds is, by function, the partitions of which the member has facts in hand or may receive some.
	Holds map[string]Set `json:"holds,omitempty"`
	// Serves reports whether the member takes part in the assignment: not yet just after its start, no longer while it drains.
	Serves bool `json:"serves"`
	// Unfit reports whether the member cannot reach the API server: it serves only where no other member of its version can.
	Unfit bool `json:"unfit,omitempty"`
	// Serial counts all heartbeats of the member: receivers drop one that is older than the newest they have.
	Serial uint64 `json:"serial"`
	// Tick counts the regular heartbeats. One that is sent in between, because something has changed, repeats the last that came
	// back.
	Tick int `json:"tick"`
	// Probe asks every member to send a heartbeat at once.
	Probe bool `json:"probe,omitempty"`
	// Gone marks the member's last heartbeat: it holds no partition.
	Gone bool `json:"gone,omitempty"`
}

// Table is what one member knows of all: a pure fold of the heartbeats that it has received, its own among them.
type Table struct {
	self         string
	ticks        int // the last regular heartbeat of its own that it has received
	peers        map[string]peer
	waitingSince map[string]map[int]int // by function and partition: the tick at which it was assigned to us while another member held it
	last         map[string]share       // by function: the last assignment

	unservedSince map[string]map[int]int // by function and partition: the tick since which no member that we receive has held it
	takenOver     map[string]Set         // by function: partitions that we serve though they are assigned to another member, see unserved
}

// peer is the last heartbeat of a member, and when we received it.
type peer struct {
	heartbeat Heartbeat
	at        int // tick
}

// share is our part of the assignment over these members.
type share struct {
	members []string
	mine    Set
}

// NewTable returns the table of a member that has received no heartbeat yet.
func NewTable(self string) *Table {
	return &Table{self: self, peers: map[string]peer{}, waitingSince: map[string]map[int]int{}, last: map[string]share{},
		unservedSince: map[string]map[int]int{}, takenOver: map[string]Set{}}
}

// Receive folds a heartbeat.
func (t *Table) Receive(b Heartbeat) {
	if h, known := t.peers[b.Member]; known && b.Serial < h.heartbeat.Serial {
		return
	}
	if b.Member == t.self {
		t.ticks = max(t.ticks, b.Tick)
	}
	t.peers[b.Member] = peer{b, t.ticks}
	if b.Gone {
		delete(t.peers, b.Member)
	}
	maps.DeleteFunc(t.peers, func(_ string, h peer) bool { return t.ticks-h.at >= DeadAfter })
}

// Ticks returns how many of the member's own regular heartbeats have come back: the only clock of this package.
func (t *Table) Ticks() int { return t.ticks }

// Live returns the last heartbeat of each live member, by name. The member itself is among them once it has received its own.
func (t *Table) Live() []Heartbeat {
	live := make([]Heartbeat, 0, len(t.peers))
	for _, name := range slices.Sorted(maps.Keys(t.peers)) {
		live = append(live, t.peers[name].heartbeat)
	}
	return live
}

// Newest reports whether no live member reads newer states of the function than of the given version.
func (t *Table) Newest(function string, version int) bool {
	for _, h := range t.peers {
		if h.heartbeat.Versions[function] > version {
			return false
		}
	}
	return true
}

// Share returns the partitions of the function that are assigned to the member, whose heartbeat is own, and those of them that it
// may serve now: no other member holds them, or HandoverTicks have passed.
func (t *Table) Share(function string, own Heartbeat) (mine, free Set) {
	eligible, held := t.eligible(function, own), t.heldByOthers(function)
	mine = t.assigned(function, eligible)
	mine |= t.unserved(function, own, eligible, mine, held)
	since := t.waitingSince[function]
	if since == nil {
		since = map[int]int{}
		t.waitingSince[function] = since
	}
	maps.DeleteFunc(since, func(partition, _ int) bool { return !mine.Has(partition) })
	(mine &^ own.Holds[function]).Each(func(partition int) {
		at, waits := since[partition]
		if !waits {
			at = t.ticks
			since[partition] = at
		}
		if !held.Has(partition) || t.ticks-at >= HandoverTicks {
			free |= One(partition)
		}
	})
	return mine, free | mine&own.Holds[function]
}

// assigned returns our partitions in the assignment over the members. It computes them only when the members have changed, because
// heartbeats come all the time.
func (t *Table) assigned(function string, members []string) Set {
	slices.Sort(members)
	if last, ok := t.last[function]; ok && slices.Equal(last.members, members) {
		return last.mine
	}
	mine := assign(function, members)[t.self]
	t.last[function] = share{members, mine}
	return mine
}

// eligible returns the members over which the partitions of the function are assigned: of those that serve, the ones of the newest
// version, since others could not read the states that these write; and of those the fit ones, if there are any.
func (t *Table) eligible(function string, own Heartbeat) []string {
	newest, fit := 0, false
	own.Serves = own.Serves && t.peers[t.self].heartbeat.Serves // the others know of us by then: of two members that start at once, neither takes all
	candidates := []Heartbeat{own}
	for name, h := range t.peers {
		if name != t.self {
			candidates = append(candidates, h.heartbeat)
		}
	}
	candidates = slices.DeleteFunc(candidates, func(b Heartbeat) bool { return !b.Serves || b.Versions[function] == 0 })
	for _, b := range candidates {
		newest = max(newest, b.Versions[function])
	}
	candidates = slices.DeleteFunc(candidates, func(b Heartbeat) bool { return b.Versions[function] < newest })
	for _, b := range candidates {
		fit = fit || !b.Unfit
	}
	var names []string
	for _, b := range candidates {
		if !b.Unfit || !fit {
			names = append(names, b.Member)
		}
	}
	return names
}

func (t *Table) heldByOthers(function string) (held Set) {
	for name, h := range t.peers {
		if name != t.self {
			held |= h.heartbeat.Holds[function]
		}
	}
	return held
}
