package job

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// ListVersions is up to which version lists of Pods have been folded, by ranges of UIDs: a large list comes in parts, some of which may
// be missing. The end of a failed Pod is folded like a list of this one UID, which does not have it. A Pod that we do not know, at or
// below it, is history.
//
//	UIDs       "" ........ 3 ........ 6 ........
//	version        20           17        20         after a list of 17, and two parts of three of a list of 20
type ListVersions []Reach

// Reach is how far lists reach from a UID on, up to the next Reach's.
type Reach struct {
	_       struct{} `cbor:",toarray"`
	From    types.UID
	Version uint64
}

// reachesMax bounds how many ranges are remembered. More only come together where parts of many lists have been lost.
const reachesMax = 256

// of is the newest list that shows whether there is a Pod of that UID.
func (h ListVersions) of(uid types.UID) uint64 {
	i, exact := slices.BinarySearchFunc(h, uid, func(r Reach, uid types.UID) int { return cmp.Compare(r.From, uid) })
	if !exact {
		i--
	}
	if i < 0 {
		return 0
	}
	return h[i].Version
}

// newest is the newest list of which anything has been folded. What is known of one UID alone is no list.
func (h ListVersions) newest() (version uint64) {
	for i, r := range h {
		if i+1 == len(h) || h[i+1].From != after(r.From) {
			version = max(version, r.Version)
		}
	}
	return version
}

// after bounds a range that has the one UID.
func after(uid types.UID) types.UID { return uid + "\x00" }

// fold is the list version after a list of the UIDs from one, up to another and without it; "" is no bound. Older never overwrites newer.
func (h ListVersions) fold(from, to types.UID, version uint64) ListVersions {
	marks := []types.UID{"", from, to}
	for _, r := range h {
		marks = append(marks, r.From)
	}
	slices.Sort(marks)
	var out ListVersions
	for _, at := range slices.Compact(marks) {
		v := h.of(at)
		if covers(from, to, at) {
			v = max(v, version)
		}
		if n := len(out); n == 0 || out[n-1].Version != v {
			out = append(out, Reach{From: at, Version: v})
		}
	}
	if len(out) > reachesMax {
		oldest := slices.MinFunc(out, func(a, b Reach) int { return cmp.Compare(a.Version, b.Version) })
		return ListVersions{{Version: oldest.Version}} // what it forgets may be told again, and is found to have gone when it is looked for
	}
	return out
}

// covers says that the UID is in the range.
func covers(from, to, uid types.UID) bool { return uid >= from && (to == "" || uid < to) }
