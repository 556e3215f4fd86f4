package partition

import (
	"maps"
	"slices"
)

const (
	// Silence is how often a member hears itself without hearing another before it takes the other for dead. With a beat
	// every half second that is two and a half seconds: longer than a busy machine stops a process, shorter than the three
	// seconds after which the server gives away what the dead one had in hand.
	Silence = 5
	// Patience is for how many of its own beats a member waits for another to put down a partition that is its own by now.
	// What is still in hand after that meets the compare-and-set.
	Patience = 2
)

// Beat is what a member says of itself.
type Beat struct {
	// Member is unique to a process, not to a machine: who starts again is somebody else.
	Member string `json:"member"`
	// Versions has, of each function that the member knows, the version of the state that it can read and write.
	Versions map[string]int `json:"versions"`
	// Holds has the partitions of each function from which the member has facts in hand or may get some.
	Holds map[string]Set `json:"holds,omitempty"`
	// Serves says that the member takes part in the distribution: it does not yet when it has just come, and not any
	// more when it is about to leave.
	Serves bool `json:"serves"`
	// Unfit says that the member cannot reach the API server: it serves only where nobody else of its version can.
	Unfit bool `json:"unfit,omitempty"`
	// Serial counts everything that the member has said: what is older than what was heard is dropped.
	Serial uint64 `json:"serial"`
	// Number counts its regular beats. One that is sent in between, because something has changed, has that of the last
	// one that came back.
	Number int `json:"number"`
	// Asks wants everybody to beat at once.
	Asks bool `json:"asks,omitempty"`
	// Gone is the member's farewell: it holds nothing any more.
	Gone bool `json:"gone,omitempty"`
}

// Table is what one member knows of all: a pure fold of the beats that it has heard, its own among them.
type Table struct {
	self   string
	echoes int // the last regular beat of its own that it has heard
	heard  map[string]hearing
	wanted map[string]map[int]int // function and partition: the echo at which it became ours while somebody else held it
	last   map[string]share       // function: what came of the distribution before

	missed  map[string]map[int]int // function and partition: the echo since which nobody has held it, as far as is heard
	adopted map[string]Set         // function: partitions that are served although they are not ours, see orphans
}

// hearing is the last that was heard of somebody.
type hearing struct {
	beat Beat
	at   int // in echoes
}

// share is what a member has of a distribution over some members.
type share struct {
	members []string
	mine    Set
}

// NewTable is the table of a member that has heard nothing yet.
func NewTable(self string) *Table {
	return &Table{self: self, heard: map[string]hearing{}, wanted: map[string]map[int]int{}, last: map[string]share{},
		missed: map[string]map[int]int{}, adopted: map[string]Set{}}
}

// Hear takes in a beat.
func (t *Table) Hear(b Beat) {
	if h, known := t.heard[b.Member]; known && b.Serial < h.beat.Serial {
		return
	}
	if b.Member == t.self {
		t.echoes = max(t.echoes, b.Number)
	}
	t.heard[b.Member] = hearing{b, t.echoes}
	if b.Gone {
		delete(t.heard, b.Member)
	}
	maps.DeleteFunc(t.heard, func(_ string, h hearing) bool { return t.echoes-h.at >= Silence })
}

// Echoes is how many of its own regular beats the member has heard: the time, as far as partitions are concerned.
func (t *Table) Echoes() int { return t.echoes }

// Live has the last beat of everybody who is not silent, by name. The member itself is among them once it has heard itself.
func (t *Table) Live() []Beat {
	live := make([]Beat, 0, len(t.heard))
	for _, name := range slices.Sorted(maps.Keys(t.heard)) {
		live = append(live, t.heard[name].beat)
	}
	return live
}

// Newest says that nobody who is live reads newer states of the function than the given version.
func (t *Table) Newest(function string, version int) bool {
	for _, h := range t.heard {
		if h.beat.Versions[function] > version {
			return false
		}
	}
	return true
}

// Share returns the partitions of the function that the member is to serve, which says own of itself now, and those of them
// that it may begin with: the ones that nobody else holds, or that were waited for long enough.
func (t *Table) Share(function string, own Beat) (mine, free Set) {
	servants, held := t.servants(function, own), t.heldByOthers(function)
	mine = t.assigned(function, servants)
	mine |= t.orphans(function, own, servants, mine, held)
	since := t.wanted[function]
	if since == nil {
		since = map[int]int{}
		t.wanted[function] = since
	}
	maps.DeleteFunc(since, func(partition, _ int) bool { return !mine.Has(partition) })
	(mine &^ own.Holds[function]).Each(func(partition int) {
		at, waits := since[partition]
		if !waits {
			at = t.echoes
			since[partition] = at
		}
		if !held.Has(partition) || t.echoes-at >= Patience {
			free |= One(partition)
		}
	})
	return mine, free | mine&own.Holds[function]
}

// assigned are our partitions in the distribution over the members. It is computed anew only when they have changed: beats come
// all the time, and the members of hardly any of them differ.
func (t *Table) assigned(function string, members []string) Set {
	slices.Sort(members)
	if last, ok := t.last[function]; ok && slices.Equal(last.members, members) {
		return last.mine
	}
	mine := assign(function, members)[t.self]
	t.last[function] = share{members, mine}
	return mine
}

// servants are who the partitions of the function are distributed over: of those that serve, the ones of the newest version,
// since others could not read what these write; and of those the fit ones, if there are any.
func (t *Table) servants(function string, own Beat) []string {
	newest, fit := 0, false
	own.Serves = own.Serves && t.heard[t.self].beat.Serves // by then the others know: of two that come at once, neither takes all
	candidates := []Beat{own}
	for name, h := range t.heard {
		if name != t.self {
			candidates = append(candidates, h.beat)
		}
	}
	candidates = slices.DeleteFunc(candidates, func(b Beat) bool { return !b.Serves || b.Versions[function] == 0 })
	for _, b := range candidates {
		newest = max(newest, b.Versions[function])
	}
	candidates = slices.DeleteFunc(candidates, func(b Beat) bool { return b.Versions[function] < newest })
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
	for name, h := range t.heard {
		if name != t.self {
			held |= h.beat.Holds[function]
		}
	}
	return held
}
