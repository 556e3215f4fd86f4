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
)

// State is what we remember of one Job. Losing it is safe: an empty State takes inventory before it decides anything.
//
// Observe and Plan own the State they are given and change its maps in place.
type State struct {
	// Name is the Job's, from any observation of it or of its Pods: it makes the inventory cheap.
	Name string
	// Asked is the ID of the inventory that this memory waits for, or began with. It tells this memory from a lost one.
	Asked string
	// NeedsSync reports whether an event was observed that needs the inventory.
	NeedsSync bool
	// Known says that the inventory has been taken.
	Known bool
	// Unread is the ID of the inventory that is taken because something was told that we could not read, "" where nothing was.
	// What is remembered stays: the snapshot is compared with it.
	Unread string `cbor:",omitempty"`
	// Gone says that the Job no longer exists. That is final, since keys are UIDs.
	Gone bool
	// ListVersions is the newest list of Pods that we have folded: a Pod that we do not know, at or below it, is history.
	ListVersions ListVersions
	// Job is the newest observation of it.
	Job events.Job
	// Pods are the unsettled ones, by serial.
	Pods map[int]Row
	// Unplaced are Pods of the Job that have no row, by UID.
	Unplaced map[types.UID]Unplaced
	// Kept are the failed Pods that have been counted and stay, where their number is limited. Whether it is only Plan asks: the limit
	// may be heard of before or after the Pods.
	Kept map[types.UID]events.Pod `cbor:",omitempty"`
	// Crowded says that Pods were passed over because there were too many, of them or of Jobs that adopt: inventory is taken again
	// once there is room.
	Crowded bool `cbor:",omitempty"`
	// Settled are the serials of Pods that need no more attention: counted, or gone without counting.
	Settled intervals.Set
	// Next is the next serial.
	Next int
	// Reported are the serials of Pods whose failure a podFailurePolicy ignores and a status write has told of, where failures
	// count per index. They are told of for metrics only: if the memory is lost, some are told of twice.
	Reported intervals.Set
	// Written is when a status was last written.
	Written time.Time
	// Allowed is how many intended Pods may be created at once after a refusal: 1, then 2, 4, …; 0 is no limit.
	Allowed int
	// Waits are the effects that the API server refuses just now, or once did.
	Waits backoff.Waits

	// AdoptsNone says that the newest snapshot found the Job to be one too many of those with selectors of their own.
	AdoptsNone bool `cbor:",omitempty"`

	// Overgrown says that this memory had become too large to be saved, and what follows from that.
	Overgrown Overgrown

	// Outbox is what everybody has to be told of the Job.
	Outbox Outbox

	// Parameters is for how many completions the ConfigMap of per-completion values has one, 0 while it has not been read.
	Parameters int

	limits Limits // those of this process: no memory
	// serialByUID finds rows by their Pods; it is made of them when it is needed.
	serialByUID map[types.UID]int
}

// Row is one unsettled Pod.
type Row struct {
	_ struct{} `cbor:",toarray"`
	// Pod is the newest observation. Without a UID the Pod is intended: its CreatePod is repeated until it is seen or refused.
	Pod events.Pod
	// Surplus reports whether the Pod is one too many: its finalizer is removed, it is deleted, and it counts for nothing, unless
	// it succeeds before that happens.
	Surplus bool
	// Gone says that the Pod no longer exists.
	Gone bool
	// Withdrawn says that an intended Pod is no longer wanted. Whether it has been made already has to be found out
	// before the Job may finish.
	Withdrawn bool
	// Unstamped says that the Pod does not carry its serial any more: somebody has changed the annotation.
	Unstamped bool
	// Result is what the Pod's end counts as, once the status says so; "" before, and where nobody is to be told.
	Result events.PodResult
}

// Unplaced is a Pod without a row: one that carries no serial of this Job, or one that its name does not show, is given a serial and
// stamped with it before it counts. A stray carries a serial that is settled: made a second time by a worker that slept, copied by a
// user, or seen late. It is released and deleted, and never counted.
type Unplaced struct {
	_   struct{} `cbor:",toarray"`
	Pod events.Pod
	// Serial is the one that it is going to have, events.NoSerial as long as none has been given.
	Serial int
	Stray  bool
}

func (r Row) intended() bool { return r.Pod.UID == "" && !r.Gone }

// live says that the Pod exists and its containers have not all ended.
func (r Row) live() bool { return r.Pod.UID != "" && !r.Gone && !r.Pod.Terminal() }

// held says that the Pod exists and carries our finalizer.
func (r Row) held() bool { return r.Pod.Held && !r.Gone }

// spared says that the Pod goes without counting, as long as it has not ended first.
func (r Row) spared() bool { return r.Surplus && !r.Pod.Terminal() }

// serials lists the unsettled Pods in the order of their making, so that every plan is the same for the same state.
func (s State) serials() []int { return slices.Sorted(maps.Keys(s.Pods)) }

// settleSerial forgets a Pod for good, unless it is one of the failed ones whose number is limited.
func (s *State) settleSerial(serial int) {
	r := s.Pods[serial]
	s.Outbox.ended(r)
	if !r.Gone {
		s.keep(r.Pod)
	}
	delete(s.Pods, serial)
	s.Settled = s.Settled.With(serial)
}

// keep remembers a failed Pod that has been counted, as long as it stays. What was seen of it before it goes, or before it was the
// Job's no longer, is history.
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

// leaves notes that a failed Pod goes, has gone, or is not the Job's any more. A GET that found nothing knows no version.
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

// new says that the observation is newer than the lists, which keep what was seen before from being seen again.
func (s State) new(p events.Pod) bool { return p.Version > s.ListVersions.of(p.UID) }

// keepSettled remembers a failed Pod that a snapshot lists and that was history before: it was counted when the Job did not limit
// yet how many may stay.
func (s *State) keepSettled(p events.Pod) {
	_, unplaced := s.Unplaced[p.UID]
	if _, known := s.rowOf(p.UID); !known && !unplaced && p.Terminal() {
		s.keep(p)
	}
}

// placed drops a Pod from those without a row: it has one under that serial, or needs none any more. The one that it was going to have is
// over, because it may have been stamped with it for a moment, and a late observation of that would make it a new Pod.
func (s *State) placed(uid types.UID, serial int) {
	u, ok := s.Unplaced[uid]
	delete(s.Unplaced, uid)
	if _, used := s.Pods[u.Serial]; ok && !used && u.Serial != events.NoSerial && u.Serial != serial {
		s.Settled = s.Settled.With(u.Serial)
	}
}

// serialOf is the serial under which a Pod is known: it may have lost its own, and an orphan's may be that of another Job.
// Of two Pods with one serial the second has to get another. A Pod that we do not know is known by its serial only if its name
// shows the same: else a late observation of one that was counted under another would make it a new Pod.
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
	taken := ok && !r.Gone && r.Pod.Name != p.Name // of two with one name the newer has taken the older's place
	proven := ok || settled || s.stamped(p) || s.named(p) == p.Serial
	return p.Serial, p.Serial != events.NoSerial && !p.Orphan && !taken && proven
}

// stamped says that the Pod carries the serial that this memory has given it.
func (s *State) stamped(p events.Pod) bool {
	u, ok := s.Unplaced[p.UID]
	return ok && u.Serial == p.Serial
}

// named is the serial under which we have made the Pod, events.NoSerial for one that somebody else has made. Annotations can
// be edited and names cannot. A serial that nobody has given out yet needs both: anybody may have hit upon the name.
func (s *State) named(p events.Pod) int {
	serial, ok := serialIn(p.Name, s.Job.Name, s.Job.UID)
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

// usedUp says that the Pod shows a serial to be over that we are about to use: no inventory lists a Pod that has ended and
// is not held, and who has lost the next serial with the annotation that it stood in may come upon it.
func (s State) usedUp(p events.Pod) bool {
	r, ok := s.Pods[p.Serial]
	return ok && r.intended() && p.Terminal() && !p.Held
}

// put remembers the row of a Pod.
func (s *State) put(serial int, r Row) {
	s.Pods[serial] = r
	if s.serialByUID != nil {
		s.serialByUID[r.Pod.UID] = serial
	}
}

// accept notes that effects of the kind are accepted; name is that of the object which one was about, or "".
func (s *State) accept(kind, name string) {
	s.Waits.Accept(kind, name)
	if kind == (effect.CreatePod{}).Kind() {
		s.Allowed = 0
	}
}

// allowMore notes that a Pod has been created: after a refusal twice as many may be tried next.
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
