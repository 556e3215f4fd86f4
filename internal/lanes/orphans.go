package lanes

import (
	"maps"
	"slices"
)

// orphans are lanes that nobody whom we hear has held for Silence beats, though they are not ours: where not everybody hears
// everybody, all may give a lane to somebody else for ever. Of those who miss it, the one that plain rendezvous gives it
// to takes it in. Its score is the highest among all, so it is the highest among those whom it hears, whoever they are: each
// such lane finds somebody. It goes back as soon as somebody else holds it.
//
// Balanced shares do not have that property: a member that is not heard may be why a lane is somebody else's.
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
	maps.DeleteFunc(since, func(lane, _ int) bool { return !nobodys.Has(lane) })
	candidates := t.adopted[function] &^ (mine | held)
	nobodys.Each(func(lane int) {
		if at, known := since[lane]; !known {
			since[lane] = t.echoes
		} else if t.echoes-at >= Silence {
			candidates |= One(lane)
		}
	})
	var ours Set
	candidates.Each(func(lane int) {
		if highest(function, servants, lane) == t.self {
			ours |= One(lane)
		}
	})
	t.adopted[function] = ours
	return ours
}

// highest is who scores most for the lane.
func highest(function string, members []string, lane int) string {
	return slices.MaxFunc(members, func(a, b string) int {
		return better(pair{b, lane, score(function, b, lane)}, pair{a, lane, score(function, a, lane)})
	})
}
