package job

import (
	"cmp"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/intervals"
	"github.com/jobstream/jobstream/functions/pod"
)

// unsettledMax is the largest number of Pods of one Job in the state: 20,000 rows stay well below the 8 MB that one message on
// the bus may have. More are created, or adopted, as these settle. If some were passed over, inventory is taken again when there
// are no more than roomAgain.
const (
	unsettledMax = 20_000
	roomAgain    = unsettledMax * 9 / 10
)

// unsettled returns the number of Pods in the state.
func (s State) unsettled() int { return len(s.Pods) + len(s.Unplaced) }

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

// lookAgain forgets the Pods that filled the state, so that inventory finds those that were passed over. Effects that the API
// server has refused keep their delays.
func (s State) lookAgain() State {
	return State{Name: s.Name, Outbox: s.Outbox, NeedsSync: true, Waits: s.Waits, Overgrown: s.Overgrown, limits: s.limits}
}

// lossGap returns how many serials are skipped after a loss of the state: more than can have been given out since the last status
// write, whose annotation has the next one. No more than MaxPodChanges Pods are intended and not yet observed.
func (s State) lossGap() int { return 2 * s.limits.MaxPodChanges }

// arrange makes the fleet of Pods what the Job asks for: it intends new ones and marks surplus ones. It changes the State only;
// command turns it into effects. It also determines whether the Job is complete, which depends on the fleet.
func arrange(s State, v outcome, c count, now time.Time) (State, outcome) {
	if v.kind == "" {
		if s.Job.Indexed {
			c.intended -= withdrawUseless(s, c)
		}
		if s.Job.Suspended {
			s = empty(s, false)
		} else if c.unplaced == 0 && !s.Crowded {
			s = size(s, c, now)
		}
		c = tally(s)
		if complete(s.Job, c) && len(s.Job.Unsupported) == 0 {
			v = outcome{batchv1.JobSuccessCriteriaMet, batchv1.JobReasonCompletionsReached, "Reached expected number of succeeded pods"}
		}
	}
	if v.kind != "" {
		s = withdraw(s, len(s.Pods))
	}
	if v.kind == batchv1.JobSuccessCriteriaMet {
		s = empty(s, s.Job.ReplaceFailedOnly)
	}
	return s, v
}

// empty withdraws the intended Pods and marks the live ones as surplus: the Job shall have no Pods, and none of these counts. A
// Pod that a user or another controller deleted before counts as usual, unless leaving is set.
func empty(s State, leaving bool) State {
	s = withdraw(s, len(s.Pods))
	for serial, r := range s.Pods {
		if r.live() && mine(s.Job, r.Pod) && (leaving || !r.Pod.Deleting) {
			r.Surplus = true
			s.Pods[serial] = r
		}
	}
	return s
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

// size intends Pods or marks surplus ones, never both at once. If there are too many, intended Pods go first.
func size(s State, c count, now time.Time) State {
	want := wanted(s.Job, c)
	var surplus []int
	if s.Job.Indexed {
		surplus = duplicates(s, c)
	}
	tooMany := int(c.active+c.intended) - len(surplus) - want
	if tooMany > 0 {
		n := min(tooMany, int(c.intended))
		s = withdraw(s, n)
		more := expendables(s, surplus)
		surplus = append(surplus, more[:min(tooMany-n, len(more))]...)
	}
	for _, serial := range surplus {
		r := s.Pods[serial]
		r.Surplus = true
		s.Pods[serial] = r
	}
	if tooMany > 0 || len(surplus) > 0 {
		return s
	}
	missing := -tooMany
	if !s.haveParameters() {
		return s
	}
	if s.Job.ReplaceFailedOnly {
		missing -= int(c.terminating)
	}
	return intend(s, c, missing, now)
}

// intend gives out serials for new Pods. It gives out none while Pods are refused, or until the backoff after failures has
// passed.
func intend(s State, c count, missing int, now time.Time) State {
	if len(s.Job.Unsupported) > 0 || s.backingOff() && c.intended > 0 || !backoffEnds(s, c, now).IsZero() {
		return s
	}
	missing = min(missing, s.limits.MaxPodChanges-int(c.intended))
	if missing <= 0 {
		return s
	}
	room := max(0, unsettledMax-len(s.Pods))
	indexes := slices.Repeat([]int{events.NoIndex}, min(missing, room))
	if s.Job.Indexed {
		indexes = freeIndexes(s, c, missing, room, now)
	}
	for _, index := range indexes {
		p := events.Pod{Serial: s.Next, Index: index, Name: pod.Name(s.Job.Name, s.Job.UID, s.Next, index)}
		if last, ok := c.indexes.last[index]; ok {
			p = handOn(s.Job, last, p)
		}
		s.Pods[s.Next] = Row{Pod: p}
		s.Next++
	}
	return s
}

// withdraw withdraws n of the intended Pods, the newest first. They may have been created already, so each has to be looked for.
func withdraw(s State, n int) State {
	for _, serial := range slices.Backward(s.serials()) {
		if n > 0 && s.takeBack(serial) {
			n--
		}
	}
	return s
}

// withdrawUseless withdraws the Pods that are intended for an index that needs none any more, and returns how many. This makes
// room for others, also if a quota has prevented the creation of these so far.
func withdrawUseless(s State, c count) (n int32) {
	for serial, r := range s.Pods {
		if c.indexes.over(s.Job, r.Pod) && s.takeBack(serial) {
			n++
		}
	}
	return n
}

// takeBack withdraws an intended Pod, and reports whether it was one.
func (s *State) takeBack(serial int) bool {
	r := s.Pods[serial]
	if !r.intended() || r.Withdrawn {
		return false
	}
	r.Withdrawn = true
	s.Pods[serial] = r
	return true
}

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
