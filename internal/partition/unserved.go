package partition

import (
	"maps"
	"slices"
)

// unserved returns the partitions that are assigned to another member but that no member we receive has held for DeadAfter ticks.
// Where members do not all receive each other, each may assign a partition to another one for ever. Of the members that see it
// unserved, the one with the highest rendezvous score takes it over. The highest score of all is also the highest among any
// members that its owner receives, so every such partition finds a server. It goes back as soon as another member holds it.
//
// Balanced shares do not have that property: a member that we do not receive may be why a partition is assigned elsewhere.
func (t *Table) unserved(function string, own Heartbeat, eligible []string, mine, held Set) Set {
	if !slices.Contains(eligible, t.self) {
		delete(t.unservedSince, function)
		delete(t.takenOver, function)
		return 0
	}
	since := t.unservedSince[function]
	if since == nil {
		since = map[int]int{}
		t.unservedSince[function] = since
	}
	idle := All &^ (mine | held | own.Holds[function])
	maps.DeleteFunc(since, func(partition, _ int) bool { return !idle.Has(partition) })
	candidates := t.takenOver[function] &^ (mine | held)
	idle.Each(func(partition int) {
		if at, known := since[partition]; !known {
			since[partition] = t.ticks
		} else if t.ticks-at >= DeadAfter {
			candidates |= One(partition)
		}
	})
	var taken Set
	candidates.Each(func(partition int) {
		if highest(function, eligible, partition) == t.self {
			taken |= One(partition)
		}
	})
	t.takenOver[function] = taken
	return taken
}

// highest returns the member with the highest score for the partition.
func highest(function string, members []string, partition int) string {
	return slices.MaxFunc(members, func(a, b string) int {
		return better(pair{b, partition, score(function, b, partition)}, pair{a, partition, score(function, a, partition)})
	})
}
