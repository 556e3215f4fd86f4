package job

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/backoff"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/intervals"
	"github.com/jobstream/jobstream/functions/pod"
)

// State is the memory of one Job. Losing it is safe: an empty State takes inventory before anything is decided.
//
// Observe and Plan own the State that they are given and change its maps in place.
type State struct {
	// Name is the Job's, from any observation of it or of its Pods. It lets the inventory list one name instead of the cluster.
	Name string
	// Asked is the ID of the inventory that this State waits for, or began with. It distinguishes this State from a lost one.
	Asked string
	// NeedsSync reports whether an event was observed that needs the inventory.
	NeedsSync bool
	// Known reports whether the inventory has been taken.
	Known bool
	// Unread is the ID of the inventory that is taken because a message could not be read, "" if every message could be. The
	// State stays: the snapshot is compared with it.
	Unread string `cbor:",omitempty"`
	// Gone reports whether the Job no longer exists. That is final, since keys are UIDs.
	Gone bool
	// ListVersions are the versions of the newest lists of Pods that were folded. An observation at or below it of a Pod that the
	// State does not have is out of date.
	ListVersions ListVersions
	// Job is the newest observation of it.
	Job events.Job
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
	// Settled are the serials of Pods that need no more attention: counted, or gone without being counted.
	Settled intervals.Set
	// Next is the serial of the next Pod.
	Next int
	// Reported are the serials of Pods whose failure a podFailurePolicy ignores and a status write has reported, if failures
	// count per index. They are reported for metrics only: after a loss of the State, some are reported twice.
	Reported intervals.Set
	// Written is the time of the last status write.
	Written time.Time
	// Allowed is the number of intended Pods that may be created at once after a refusal: 1, then 2, 4, …; 0 is no limit.
	Allowed int
	// Waits are the effects that the API server refuses now, or refused earlier.
	Waits backoff.Waits

	// AdoptsNone reports whether the newest snapshot excluded the Job from adoption: too many Jobs have selectors of their own.
	AdoptsNone bool `cbor:",omitempty"`

	// Overgrown records that this State had become too large to be saved, and what follows from that.
	Overgrown Overgrown

	// Outbox is what subscribers have to be told of the Job.
	Outbox Outbox

	// Parameters is the number of completions for which the ConfigMap of per-completion values has values, 0 until it has been
	// read.
	Parameters int

	limits Limits // those of this process, not saved
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
// user copied it, or it is observed late. A stray is released and deleted, and never counted.
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

// serials returns the serials of the unsettled Pods in the order of their creation, so that equal states have equal plans.
func (s State) serials() []int { return slices.Sorted(maps.Keys(s.Pods)) }

// settleSerial forgets a Pod for good. A failed one whose number is limited moves to Kept.
func (s *State) settleSerial(serial int) {
	r := s.Pods[serial]
	s.Outbox.ended(r)
	if !r.Gone {
		s.keep(r.Pod)
	}
	delete(s.Pods, serial)
	s.Settled = s.Settled.With(serial)
}

// keep remembers a failed Pod that has been counted, as long as it exists. Observations from before it was deleted, or released
// from the Job, must not restore it.
func (s *State) keep(p events.Pod) {
	old, kept := s.Kept[p.UID]
	switch own := mine(s.Job, p); {
	case p.Version < old.Version:
	case p.Phase == events.Failed && (p.Deleting || !own && (kept || s.Settled.Has(p.Serial))):
		s.leaves(p)
	case p.Phase != events.Failed || p.Held || !own:
		delete(s.Kept, p.UID)
	default:
		if s.Kept == nil {
			s.Kept = map[types.UID]events.Pod{}
		}
		s.Kept[p.UID] = events.Pod{Name: p.Name, UID: p.UID, Version: p.Version, Finished: p.Finished}
	}
}

// leaves notes that a failed Pod is being deleted, is gone, or no longer belongs to the Job. A GET that found nothing has no
// version.
func (s *State) leaves(p events.Pod) {
	old, kept := s.Kept[p.UID]
	if p.Version > 0 && p.Version < old.Version {
		return
	}
	delete(s.Kept, p.UID)
	if kept || p.Phase == events.Failed {
		s.ListVersions = s.ListVersions.fold(p.UID, after(p.UID), max(p.Version, old.Version))
	}
}

// new reports whether the observation is newer than the lists. An older one of a Pod that is not in the State must not restore
// it.
func (s State) new(p events.Pod) bool { return p.Version > s.ListVersions.of(p.UID) }

// keepSettled remembers a failed Pod that a snapshot lists although observations of its version are out of date: it was counted
// before the Job limited how many may stay.
func (s *State) keepSettled(p events.Pod) {
	_, unplaced := s.Unplaced[p.UID]
	if _, known := s.rowOf(p.UID); !known && !unplaced && p.Terminal() {
		s.keep(p)
	}
}

// placed drops a Pod from Unplaced, because it has a row under that serial, or needs none any more. The serial that it was about
// to get is settled: the Pod may have carried it for a moment, and a late observation of that would make it a new Pod.
func (s *State) placed(uid types.UID, serial int) {
	u, ok := s.Unplaced[uid]
	delete(s.Unplaced, uid)
	if _, used := s.Pods[u.Serial]; ok && !used && u.Serial != events.NoSerial && u.Serial != serial {
		s.Settled = s.Settled.With(u.Serial)
	}
}

// serialOf returns the serial under which a Pod is tracked. The Pod may have lost its annotation, and an orphan's may be that of
// another Job. The second of two Pods with one serial has to get another. A Pod that is not in the State is tracked by its serial
// only if its name shows the same one. Otherwise a late observation of a Pod that was counted under another serial would make it
// a new Pod.
func (s *State) serialOf(p events.Pod) (serial int, known bool) {
	r, ok := s.Pods[p.Serial]
	settled := !ok && s.Settled.Has(p.Serial)
	if ok && (r.Pod.UID == p.UID || r.intended() && !p.Orphan && r.Pod.Name == p.Name) {
		return p.Serial, true
	}
	if serial, known := s.rowOf(p.UID); known {
		return serial, true
	}
	if settled && !p.Held && !p.Orphan {
		return p.Serial, true
	}
	taken := ok && !r.Gone && r.Pod.Name != p.Name // of two with one name the newer replaces the older
	proven := ok || settled || s.stamped(p) || s.named(p) == p.Serial
	return p.Serial, p.Serial != events.NoSerial && !p.Orphan && !taken && proven
}

// stamped reports whether the Pod carries the serial that this State has given it.
func (s *State) stamped(p events.Pod) bool {
	u, ok := s.Unplaced[p.UID]
	return ok && u.Serial == p.Serial
}

// named returns the serial under which this function created the Pod, events.NoSerial if it did not. The name proves it, because
// annotations can be edited and names cannot. A serial that has not been given out yet needs both to agree: a user may have
// chosen the name by chance.
func (s *State) named(p events.Pod) int {
	serial, ok := pod.SerialIn(p.Name, s.Job.Name, s.Job.UID)
	if !ok || serial >= s.Next && serial != p.Serial {
		return events.NoSerial
	}
	return serial
}

// rowOf finds the row of the Pod with that UID.
func (s *State) rowOf(uid types.UID) (serial int, known bool) {
	if s.serialByUID == nil {
		s.serialByUID = make(map[types.UID]int, len(s.Pods))
		for serial, r := range s.Pods {
			s.serialByUID[r.Pod.UID] = serial
		}
	}
	serial, known = s.serialByUID[uid]
	return serial, known && s.Pods[serial].Pod.UID == uid
}

// usedUp reports whether the Pod proves that a serial which is about to be used is over. No inventory lists a Pod that has ended
// and is not held. So after a loss of the annotation with the next serial, such a Pod may have a serial that is given out again.
func (s State) usedUp(p events.Pod) bool {
	r, ok := s.Pods[p.Serial]
	return ok && r.intended() && p.Terminal() && !p.Held
}

// put stores the row of a Pod.
func (s *State) put(serial int, r Row) {
	s.Pods[serial] = r
	if s.serialByUID != nil {
		s.serialByUID[r.Pod.UID] = serial
	}
}

// accept notes that effects of the kind are accepted. name is that of the object that the effect was about, or "".
func (s *State) accept(kind, name string) {
	s.Waits.Accept(kind, name)
	if kind == (effect.CreatePod{}).Kind() {
		s.Allowed = 0
	}
}

// allowMore notes that a Pod has been created. After a refusal, twice as many may be tried next.
func (s *State) allowMore() {
	if s.Allowed == 0 {
		return
	}
	kind := effect.KindCreatePod
	w := s.Waits[kind]
	w.Count, w.Until = 0, time.Time{}
	s.Waits[kind] = w
	if s.Allowed *= 2; s.Allowed > s.limits.MaxPodChanges {
		s.accept(kind, "")
	}
}

// backingOff reports whether Pods are refused, or were so recently that not all of them have been tried again.
func (s State) backingOff() bool { return s.Allowed > 0 }
