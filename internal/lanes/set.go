package lanes

import (
	"math/bits"
	"strconv"
	"strings"

	"github.com/jobstream/jobstream/events"
)

// Set is a set of lanes: bit n is lane n.
type Set uint32

// All has every lane.
const All = Set(1<<events.Lanes - 1)

// One has one lane, 0 to 31.
func One(lane int) Set { return 1 << lane }

// Has says whether the lane is in the set.
func (s Set) Has(lane int) bool { return s&One(lane) != 0 }

// Len is how many lanes there are in the set.
func (s Set) Len() int { return bits.OnesCount32(uint32(s)) }

// Each calls f for every lane of the set, in order.
func (s Set) Each(f func(lane int)) {
	for rest := uint32(s); rest != 0; rest &= rest - 1 {
		f(bits.TrailingZeros32(rest))
	}
}

// String writes the set as "0-3,7".
func (s Set) String() string {
	var parts []string
	for lane := 0; lane < events.Lanes; lane++ {
		if !s.Has(lane) {
			continue
		}
		first := lane
		for lane+1 < events.Lanes && s.Has(lane+1) {
			lane++
		}
		part := strconv.Itoa(first)
		if lane > first {
			part += "-" + strconv.Itoa(lane)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ",")
}
