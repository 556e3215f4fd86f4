package partition

import (
	"maps"
	"slices"
)

// orphans are partitions that nobody whom we hear has held for Silence beats, though they are not ours: where not everybody hears
// everybody, all may give a partition to somebody else for ever. Of those who miss it, the one that plain rendezvous gives it
// to takes it in. Its score is the highest among all, so it is the highest among those whom it hears, whoever they are: each
// such partition finds somebody. It goes back as soon as somebody else holds it.
//
// Balanced shares do not have that property: a member that is not heard may be why a partition is somebody else's.
func (t *Table) orphans(function string, own Beat, servants []string, mine, held Set) Set {
	if !slices.Contains(servants, t.self) {
		delete(t.missed, function)
		delete(t.adopted, function)
		return 0
	}
	since := t.missed[function]
	if since == nil {
		since = map[int]int{}
		t.missed[function] = since
	}
	nobodys := All &^ (mine | held | own.Holds[function])
	maps.DeleteFunc(since, func(partition, _ int) bool { return !nobodys.Has(partition) })
	candidates := t.adopted[function] &^ (mine | held)
	nobodys.Each(func(partition int) {
		if at, known := since[partition]; !known {
			since[partition] = t.echoes
		} else if t.echoes-at >= Silence {
			candidates |= One(partition)
		}
	})
	var ours Set
	candidates.Each(func(partition int) {
		if highest(function, servants, partition) == t.self {
			ours |= One(partition)
		}
	})
	t.adopted[function] = ours
	return ours
}

// highest is who scores most for the partition.
func highest(function string, members []string, partition int) string {
	return slices.MaxFunc(members, func(a, b string) int {
		return better(pair{b, partition, score(function, b, partition)}, pair{a, partition, score(function, a, partition)})
	})
}
