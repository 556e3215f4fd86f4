package job

import (
	"cmp"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/intervals"
	"github.com/jobstream/jobstream/functions/pod"
)

// arrange makes the fleet of Pods what the Job asks for: it intends new ones and marks surplus ones. It changes the State only;
// command turns that into effects. It returns the count of what the State has then. It also determines whether the Job is complete,
// which depends on the fleet.
func arrange(s State, c count, v outcome, now time.Time) (State, count, outcome) {
	changes := 0
	if v.kind == "" {
		changes = s.resize(c, now)
		if changes > 0 {
			c = tally(s)
		}
		if complete(s.Job, c) && len(s.Job.Unsupported) == 0 {
			v = outcome{batchv1.JobSuccessCriteriaMet, batchv1.JobReasonCompletionsReached, "Reached expected number of succeeded pods"}
		}
	}
	switch v.kind {
	case "":
		return s, c, v
	case batchv1.JobSuccessCriteriaMet:
		changes = s.empty(s.Job.ReplaceFailedOnly)
	default:
		changes = s.withdraw(len(s.Pods), all)
	}
	if changes > 0 {
		c = tally(s)
	}
	return s, c, v
}

// resize changes the fleet of a Job that goes on, and returns how many rows it has changed.
func (s *State) resize(c count, now time.Time) (changes int) {
	if s.Job.Suspended {
		return s.empty(false)
	}
	if s.Job.Indexed && c.intended > 0 { // an index that needs no Pod makes room for others, also if a quota has refused its Pod so far
		changes = s.withdraw(len(s.Pods), func(p events.Pod) bool { return c.indexes.over(s.Job, p) })
		c.intended, c.unsure = c.intended-int32(changes), c.unsure+changes
	}
	if c.unplaced == 0 && !s.Crowded {
		changes += s.size(c, now)
	}
	return changes
}

// empty withdraws the intended Pods and marks the live ones as surplus: the Job shall have no Pods, and none of these counts. A
// Pod that a user or another controller deleted before counts as usual, unless leaving is set. empty returns how many rows it has
// changed.
func (s *State) empty(leaving bool) (changes int) {
	changes = s.withdraw(len(s.Pods), all)
	for serial, r := range s.Pods {
		if r.live() && !r.Surplus && mine(s.Job, r.Pod) && (leaving || !r.Pod.Deleting) {
			s.change(serial, func(r *Row) { r.Surplus = true })
			changes++
		}
	}
	return changes
}

// wanted returns how many Pods should be active (upstream: manageJob).
func wanted(j events.Job, c count) int {
	parallelism := int(j.Parallelism)
	if j.Completions == nil {
		if c.done > 0 {
			return int(c.active) // running Pods may end; intended ones are withdrawn
		}
		return parallelism
	}
	return max(0, min(parallelism, int(*j.Completions)-c.done))
}

// size intends Pods or marks surplus ones, never both at once, and returns how many. If there are too many, intended Pods go first.
func (s *State) size(c count, now time.Time) (changes int) {
	want := wanted(s.Job, c)
	var surplus []int
	if s.Job.Indexed {
		surplus = duplicates(*s, c)
	}
	tooMany := int(c.active+c.intended) - len(surplus) - want
	if tooMany > 0 {
		changes = s.withdraw(min(tooMany, int(c.intended)), all)
		more := expendables(*s, surplus)
		surplus = append(surplus, more[:min(tooMany-changes, len(more))]...)
	}
	for _, serial := range surplus {
		s.change(serial, func(r *Row) { r.Surplus = true })
	}
	if changes += len(surplus); changes > 0 || tooMany > 0 || !s.haveParameters() {
		return changes
	}
	missing := -tooMany - c.unsure // a withdrawn Pod may run
	if s.Job.ReplaceFailedOnly {
		missing -= int(c.terminating)
	} else {
		missing -= c.marked
	}
	return s.intend(c, missing, now)
}

// intend gives out serials for new Pods, and returns how many. It gives out none while Pods are refused, or until the backoff after
// failures has passed.
func (s *State) intend(c count, missing int, now time.Time) int {
	if len(s.Job.Unsupported) > 0 || s.backingOff() && c.intended > 0 || !backoffEnds(*s, c, now).IsZero() {
		return 0
	}
	missing = min(missing, s.limits.MaxPodChanges-int(c.intended))
	if missing <= 0 {
		return 0
	}
	room := max(0, unsettledMax-len(s.Pods))
	indexes := slices.Repeat([]int{events.NoIndex}, min(missing, room))
	if s.Job.Indexed {
		indexes = freeIndexes(*s, c, missing, room, now)
	}
	for _, index := range indexes {
		p := events.Pod{Serial: s.Next, Index: index, Name: pod.Name(s.Job.Name, s.Job.UID, s.Next, index)}
		if last, ok := c.indexes.last[index]; ok {
			p = handOn(s.Job, last, p)
		}
		s.Pods[s.Next] = Row{Pod: p}
		s.Next++
	}
	return len(indexes)
}

// withdraw withdraws up to n of the intended Pods that are chosen, the newest first, and returns how many. They may have been
// created already, so each has to be looked for.
func (s *State) withdraw(n int, chosen func(events.Pod) bool) (changes int) {
	for _, serial := range slices.Backward(s.serials()) {
		if r := s.Pods[serial]; changes < n && r.intended() && !r.Withdrawn && chosen(r.Pod) {
			s.change(serial, func(r *Row) { r.Withdrawn = true })
			changes++
		}
	}
	return changes
}

func all(events.Pod) bool { return true }

// expendables returns the active Pods without the ones already chosen, in the order in which they are to be deleted.
func expendables(s State, chosen []int) []int {
	var out []int
	taken := intervals.Of(chosen...)
	for _, serial := range s.serials() {
		if r := s.Pods[serial]; r.live() && !r.Surplus && !r.Pod.Deleting && !taken.Has(serial) {
			out = append(out, serial)
		}
	}
	slices.SortStableFunc(out, func(a, b int) int { return expendable(s.Pods[a].Pod, s.Pods[b].Pod) })
	return out
}

// expendable orders Pods for deletion (Kubernetes 1.36, controller.ActivePods): unscheduled before scheduled, Pending
// before Unknown before Running, not ready before ready, newly ready before long ready, more restarts before fewer, newer
// before older.
func expendable(a, b events.Pod) int {
	stage := map[events.PodPhase]int{events.Pending: 0, events.Unknown: 1, events.Running: 2}
	yes := map[bool]int{true: 1}
	return cmp.Or(
		cmp.Compare(yes[a.Scheduled], yes[b.Scheduled]),
		cmp.Compare(stage[a.Phase], stage[b.Phase]),
		cmp.Compare(yes[a.Ready], yes[b.Ready]),
		b.ReadySince.Compare(a.ReadySince),
		cmp.Compare(b.Restarts, a.Restarts),
		b.Created.Compare(a.Created),
		cmp.Compare(b.Serial, a.Serial),
	)
}
