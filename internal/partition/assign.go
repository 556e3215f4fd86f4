package partition

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/jobstream/jobstream/events"
)

// assign distributes all partitions of a function over the members by rendezvous hashing: every pair of a member and a partition
// has a score, and the highest scores win. Plain rendezvous hashing now and then gives one of three members half of the 32
// partitions, so a member takes no more than its fair share, rounded up for as many members as there are partitions left over. A
// member that joins or leaves moves little more than its own share. The order of the members does not matter.
func assign(function string, members []string) map[string]Set {
	shares := make(map[string]Set, len(members))
	if len(members) == 0 {
		return shares
	}
	var taken Set
	fair, extra := events.Partitions/len(members), events.Partitions%len(members)
	for _, p := range pairs(function, members) {
		share := shares[p.member]
		full := share.Len() >= fair
		if taken.Has(p.partition) || full && (extra == 0 || share.Len() > fair) {
			continue
		}
		if full {
			extra--
		}
		shares[p.member] = share | One(p.partition)
		taken |= One(p.partition)
	}
	return shares
}

// pair is the score of a member for a partition.
type pair struct {
	member    string
	partition int
	score     uint64
}

// pairs returns all pairs, the highest score first.
func pairs(function string, members []string) []pair {
	all := make([]pair, 0, len(members)*events.Partitions)
	for _, m := range members {
		for partition := range events.Partitions {
			all = append(all, pair{m, partition, score(function, m, partition)})
		}
	}
	slices.SortFunc(all, better)
	return all
}

// better compares pairs so that the highest score sorts first.
func better(a, b pair) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.member, b.member), cmp.Compare(a.partition, b.partition))
}

// score is FNV-1a, whose last bytes hardly reach the upper bits, with the finalizer of MurmurHash3 to spread them.
func score(function, member string, partition int) uint64 {
	h := fnv.New64a()
	h.Write([]byte(function + "/" + member + "/" + strconv.Itoa(partition)))
	x := h.Sum64()
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
