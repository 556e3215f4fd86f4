package inventory

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// ListVersions are the versions of the newest lists of Pods that were folded, by ranges of UIDs: a large list comes in parts, and
// some of them may be lost. The end of a failed Pod is folded like a list of its UID alone that does not contain it. An
// observation at or below the version, of a Pod that is not in the state, is out of date.
//
//	UIDs       "" ........ 3 ........ 6 ........
//	version        20           17        20         after a list of 17, and two parts of three of a list of 20
type ListVersions []Reach

// Reach is the version of the newest list of the UIDs from From to the next Reach's.
type Reach struct {
	_       struct{} `cbor:",toarray"`
	From    types.UID
	Version uint64
}

// reachesMax bounds the number of ranges. More than this only accumulate if parts of many lists have been lost.
const reachesMax = 256

// Of returns the version of the newest list that shows whether there is a Pod of that UID.
func (h ListVersions) Of(uid types.UID) uint64 {
	i, exact := slices.BinarySearchFunc(h, uid, func(r Reach, uid types.UID) int { return cmp.Compare(r.From, uid) })
	if !exact {
		i--
	}
	if i < 0 {
		return 0
	}
	return h[i].Version
}

// Newest returns the version of the newest list of which any part has been folded. An entry for a single UID is no list.
func (h ListVersions) Newest() (version uint64) {
	for i, r := range h {
		if i+1 == len(h) || h[i+1].From != after(r.From) {
			version = max(version, r.Version)
		}
	}
	return version
}

// FoldGone returns the versions after the Pod of that UID was last seen at the version, and has gone since.
func (h ListVersions) FoldGone(uid types.UID, version uint64) ListVersions {
	return h.Fold(uid, after(uid), version)
}

// after returns the upper bound of the range that contains only the UID.
func after(uid types.UID) types.UID { return uid + "\x00" }

// Listed returns the version of the newest list around that UID: Of without the UID's own end.
func (h ListVersions) Listed(uid types.UID) uint64 { return h.Of(uid + "\x00") }

// Fold returns the versions after a list of the UIDs in [from, to), where "" is no bound. Older never overwrites newer.
func (h ListVersions) Fold(from, to types.UID, version uint64) ListVersions {
	marks := []types.UID{"", from, to}
	for _, r := range h {
		marks = append(marks, r.From)
	}
	slices.Sort(marks)
	var out ListVersions
	for _, at := range slices.Compact(marks) {
		v := h.Of(at)
		if Covers(from, to, at) {
			v = max(v, version)
		}
		if n := len(out); n == 0 || out[n-1].Version != v {
			out = append(out, Reach{From: at, Version: v})
		}
	}
	if len(out) > reachesMax {
		oldest := slices.MinFunc(out, func(a, b Reach) int { return cmp.Compare(a.Version, b.Version) })
		return ListVersions{{Version: oldest.Version}} // forgotten Pods may be observed again, and are found to be gone when they are acted on
	}
	return out
}

// Covers reports whether the UID is in the range.
func Covers(from, to, uid types.UID) bool { return uid >= from && (to == "" || uid < to) }
