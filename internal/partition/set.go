package partition

import (
	"math/bits"
	"strconv"
	"strings"

	"github.com/jobstream/jobstream/events"
)

// Set is a set of partitions: bit n is partition n.
type Set uint32

// All has every partition.
const All = Set(1<<events.Partitions - 1)

// One has one partition, 0 to 31.
func One(partition int) Set { return 1 << partition }

// Has reports whether the partition is in the set.
func (s Set) Has(partition int) bool { return s&One(partition) != 0 }

// Len is how many partitions there are in the set.
func (s Set) Len() int { return bits.OnesCount32(uint32(s)) }

// Each calls f for every partition of the set, in order.
func (s Set) Each(f func(partition int)) {
	for rest := uint32(s); rest != 0; rest &= rest - 1 {
		f(bits.TrailingZeros32(rest))
	}
}

// String writes the set as "0-3,7".
func (s Set) String() string {
	var parts []string
	for partition := 0; partition < events.Partitions; partition++ {
		if !s.Has(partition) {
			continue
		}
		first := partition
		for partition+1 < events.Partitions && s.Has(partition+1) {
			partition++
		}
		part := strconv.Itoa(first)
		if partition > first {
			part += "-" + strconv.Itoa(partition)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ",")
}
