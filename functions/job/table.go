package job

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/intervals"
	"github.com/jobstream/jobstream/functions/inventory"
)

// Table has the Pods of one Job until they are settled: counted, or gone without being counted.
type Table struct {
	// ListVersions are the versions of the newest lists of Pods that were folded. An observation at or below it of a Pod that the
	// State does not have is out of date.
	ListVersions inventory.ListVersions
	// Pods are the unsettled Pods, by serial.
	Pods map[int]Row
	// Unplaced are Pods without a row, by UID.
	Unplaced map[types.UID]Unplaced
	// Kept are failed Pods that have been counted and still exist, for Jobs that limit their number. Only Plan checks whether
	// there is a limit, because the limit may be observed before or after the Pods.
	Kept map[types.UID]events.Pod `cbor:",omitempty"`
	// Crowded reports whether Pods were passed over because there were too many Pods, or too many Jobs that adopt. Inventory is
	// taken again once there is room.
	Crowded bool `cbor:",omitempty"`
	// Settled are the serials of Pods that need no more attention.
	Settled intervals.Set
	// Next is the serial of the next Pod.
	Next int

	// serialByUID finds the row of a Pod. It is not saved; rowOf derives it from Pods.
	serialByUID map[types.UID]int
}

// Row is one unsettled Pod.
type Row struct {
	_ struct{} `cbor:",toarray"`
	// Pod is the newest observation. Without a UID the Pod is intended: its CreatePod is repeated until the Pod is observed or
	// refused.
	Pod events.Pod
	// Surplus reports whether the Pod is one too many. Its finalizer is removed, it is deleted, and it counts for nothing, unless
	// it succeeds before that happens.
	Surplus bool
	// Gone reports whether the Pod no longer exists.
	Gone bool
	// Withdrawn reports whether an intended Pod is no longer wanted. It may have been created already, and that has to be found
	// out before the Job may finish.
	Withdrawn bool
	// Unstamped reports whether the Pod has lost its serial, because a user or another controller changed the annotation.
	Unstamped bool
	// Result is what the Pod's end counts as, once the status shows it; "" before, and if ends of Pods are not announced.
	Result events.PodResult
}

// Unplaced is a Pod without a row. If it carries no serial of this Job, or one that its name does not show, it is given a serial
// and stamped with it before it counts. A stray carries a serial that is settled: a worker that slept created it a second time, a
// user copied it, or it is observed late. The finalizer of a stray is removed, it is deleted, and never counted.
type Unplaced struct {
	_   struct{} `cbor:",toarray"`
	Pod events.Pod
	// Serial is the serial that it will be stamped with, events.NoSerial until one has been given.
	Serial int
	Stray  bool
}

func (r Row) intended() bool { return r.Pod.UID == "" && !r.Gone }

// live reports whether the Pod exists and has not ended.
func (r Row) live() bool { return r.Pod.UID != "" && !r.Gone && !r.Pod.Terminal() }

// held reports whether the Pod exists and carries the tracking finalizer.
func (r Row) held() bool { return r.Pod.Held && !r.Gone }

// spared reports whether the Pod will go without being counted, unless it ends first.
func (r Row) spared() bool { return r.Surplus && !r.Pod.Terminal() }

// remove removes the finalizer, if there is one, and deletes the Pod. The precondition is the observed version: a late
// observation of a Pod that was counted long ago no longer matches, and nothing happens.
func (u Unplaced) remove() effect.Effect {
	return effect.DeletePod{Name: u.Pod.Name, UID: u.Pod.UID, Version: u.Pod.Version, RemoveFinalizer: u.Pod.Held}
}

// serials returns the serials of the unsettled Pods in the order of their creation, so that equal states have equal plans.
func (t Table) serials() []int { return slices.Sorted(maps.Keys(t.Pods)) }

// unplaced returns the strays, or the Pods that wait for a serial, in an order that is the same for equal states.
func (t Table) unplaced(strays bool) (out []Unplaced) {
	for _, u := range t.Unplaced {
		if u.Stray == strays {
			out = append(out, u)
		}
	}
	slices.SortFunc(out, func(a, b Unplaced) int {
		return cmp.Or(a.Pod.Created.Compare(b.Pod.Created), cmp.Compare(a.Pod.UID, b.Pod.UID))
	})
	return out
}

// unsettled returns the number of Pods in the state.
func (t Table) unsettled() int { return len(t.Pods) + len(t.Unplaced) }

// put stores the row of a Pod.
func (t *Table) put(serial int, r Row) {
	t.Pods[serial] = r
	if t.serialByUID != nil {
		t.serialByUID[r.Pod.UID] = serial
	}
}

// change changes a row in place.
func (t *Table) change(serial int, f func(*Row)) {
	r := t.Pods[serial]
	f(&r)
	t.Pods[serial] = r
}

// rowOf finds the row of the Pod with that UID.
func (t *Table) rowOf(uid types.UID) (serial int, known bool) {
	if t.serialByUID == nil {
		t.serialByUID = make(map[types.UID]int, len(t.Pods))
		for serial, r := range t.Pods {
			t.serialByUID[r.Pod.UID] = serial
		}
	}
	serial, known = t.serialByUID[uid]
	return serial, known && t.Pods[serial].Pod.UID == uid
}

// placed drops a Pod from Unplaced, because it has a row under that serial, or needs none any more. The serial that it was about
// to get is settled: the Pod may have carried it for a moment, and a late observation of that would make it a new Pod.
func (t *Table) placed(uid types.UID, serial int) {
	u, ok := t.Unplaced[uid]
	delete(t.Unplaced, uid)
	if _, used := t.Pods[u.Serial]; ok && !used && u.Serial != events.NoSerial && u.Serial != serial {
		t.Settled = t.Settled.With(u.Serial)
	}
}

// retract takes a settled serial back from the Pod that is about to get it: that Pod would be taken for a stray.
func (t *Table) retract() {
	for uid, u := range t.Unplaced {
		if u.Serial != events.NoSerial && t.Settled.Has(u.Serial) {
			t.Unplaced[uid] = Unplaced{Pod: u.Pod, Serial: events.NoSerial, Stray: u.Stray}
		}
	}
}

// new reports whether the observation is newer than the lists. An older one must not restore a Pod that is not in the State.
func (t Table) new(p events.Pod) bool { return p.Version > t.ListVersions.Of(p.UID) }

// unsettledMax is the largest number of Pods of one Job in the state: 20,000 rows stay well below the 8 MB that one message on
// the bus may have. More are created, or adopted, as these settle. If some were passed over, inventory is taken again when there
// are no more than roomAgain.
const (
	unsettledMax = 20_000
	roomAgain    = unsettledMax * 9 / 10
)

// mostUnsettled returns how many Pods the state may have. If the Job is removed piecemeal, Pods whose finalizers the API server
// refuses to remove come on top, so that other Pods get their turn.
func (s State) mostUnsettled() int {
	if s.piecemeal() {
		return s.limits.MaxPodChanges + s.Waits.Objects(effect.KindRemoveFinalizer)
	}
	return unsettledMax
}

// full reports whether there is no room for one more Pod, and notes that it was passed over.
func (s *State) full() bool {
	if s.unsettled() < s.mostUnsettled() {
		return false
	}
	s.Crowded = true
	return true
}
