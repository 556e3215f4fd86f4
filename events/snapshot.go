package events

import (
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// JobPartListed is a part of a snapshot that would be too large for one message: it lists the Pods whose UIDs are in a range, and proves
// only for that range that other Pods are gone. Each part stands for itself: parts may be repeated, reordered, lost, and mixed with those of
// another list. It never answers a TakeInventory, whose answer does not travel on the bus.
//
//	Pods by UID   0 1 2 | 3 4 5 | 6 7
//	parts         [ ,3)   [3,6)   [6, )
type JobPartListed struct {
	JobListed
	// From is the first UID of the range, "" for no lower bound; To is the first beyond it, "" for no upper bound.
	From types.UID `json:"from,omitempty"`
	To   types.UID `json:"to,omitempty"`
}

// Type implements Event.
func (JobPartListed) Type() Type { return TypeJobPartListed }

func (e JobPartListed) id() string { return e.ID + "/" + string(e.From) }

// Share limits the part of a snapshot in one message. Its zero value is no limit.
type Share struct {
	// Pods is the largest number of Pods, Bytes their approximate largest size once encoded. A message carries at least one Pod,
	// however large.
	Pods, Bytes int
}

// SnapshotPart is far below the largest message, 8 MB: the Job goes with each part.
var SnapshotPart = Share{Pods: 2000, Bytes: 2 << 20}

// certainly is a number of Pods that always fits into SnapshotPart: their size is not computed.
const certainly = 16

// Split returns the snapshot unchanged, a JobListed, if it does not exceed the share; else its parts, JobPartListed. UIDs are
// ordered by their bytes.
func (e JobListed) Split(share Share) []Event {
	most, bytes := share.Pods, share.Bytes
	if share == SnapshotPart && len(e.Pods) <= certainly {
		return []Event{e}
	}
	pods := slices.SortedFunc(slices.Values(e.Pods), func(a, b Pod) int { return strings.Compare(string(a.UID), string(b.UID)) })
	var starts []int // index of the first Pod of each part but the first
	begin, size := 0, 0
	for i, p := range pods {
		n := encodedSize(p)
		if i > begin && (most > 0 && i-begin >= most || bytes > 0 && size+n > bytes) {
			starts, begin, size = append(starts, i), i, 0
		}
		size += n
	}
	if len(starts) == 0 {
		return []Event{e}
	}
	var out []Event
	from := 0
	for _, to := range append(starts, len(pods)) {
		part := JobPartListed{JobListed: e}
		part.Pods = pods[from:to:to]
		if from > 0 {
			part.From = pods[from].UID
		}
		if to < len(pods) {
			part.To = pods[to].UID
		}
		out, from = append(out, part), to
	}
	return out
}

// encodedSize returns how many bytes a Pod takes in a fact.
func encodedSize(p Pod) int {
	data, err := json.Marshal(p)
	if err != nil { // cannot happen for a Pod; if it does, encoding the fact returns the error
		return 0
	}
	return len(data)
}
