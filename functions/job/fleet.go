package job

import (
	"cmp"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/intervals"
)

// unsettledMax is the most Pods of one Job that we keep in mind: 20,000 rows stay well below the 8 MB that one message on
// the bus may have. More are created, or adopted, as these settle; and where some were passed over, inventory is taken again when
// there are no more than roomAgain.
const (
	unsettledMax = 20_000
	roomAgain    = unsettledMax * 9 / 10
)

// unsettled is how many Pods are kept in mind.
func (s State) unsettled() int { return len(s.Pods) + len(s.Unplaced) }

// mostUnsettled is how many Pods may be kept in mind. Of a Job that goes piecemeal, those come on top that the API server refuses to
// let go: others have to get their turn.
func (s State) mostUnsettled() int {
	if s.piecemeal() {
		return s.limits.MaxPodChanges + s.Waits.Objects(effect.KindRemoveFinalizer)
	}
	return unsettledMax
}

// full says that there is no room for one more Pod, and notes that it was passed over.
func (s *State) full() bool {
	if s.unsettled() < s.mostUnsettled() {
		return false
	}
	s.Crowded = true
	return true
}

// lookAgain forgets what was enough to fill the memory, so that those are found that were passed over. What the API server has
// refused rests as before.
func (s State) lookAgain() State {
	return State{Name: s.Name, Outbox: s.Outbox, NeedsSync: true, Waits: s.Waits, Overgrown: s.Overgrown, limits: s.limits}
}

// lossGap is how many serials are skipped after a loss of memory: more than can have been given out since the last status
// write, whose annotation has the next one. No more Pods than MaxPodChanges are intended and not yet seen.
func (s State) lossGap() int { return 2 * s.limits.MaxPodChanges }

// arrange makes the fleet of Pods what the Job asks for: intends new ones, dooms those that are too many. It changes the
// State only; command turns it into effects. It also finds that the Job has completed, which depends on the fleet.
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

// empty takes back what is intended and dooms what lives: the Job shall have no Pods, and none that goes counts. What somebody
// else has deleted before counts as ever, unless leaving is set.
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

// wanted is how many Pods should be active (upstream: manageJob).
func wanted(j events.Job, c count) int {
	parallelism := int(j.Parallelism)
	if j.Completions == nil {
		if c.done > 0 {
			return int(c.active) // what runs may end; what is only intended is withdrawn
		}
		return parallelism
	}
	return max(0, min(parallelism, int(*j.Completions)-c.done))
}

// size intends Pods or marks surplus ones, never both at once; what is too many goes first, and of that what is only intended.
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

// intend gives out serials for Pods to come. While some are refused, and until the backoff after failures has passed, none
// is given out.
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
		p := events.Pod{Serial: s.Next, Index: index, Name: PodName(s.Job.Name, s.Job.UID, s.Next, index)}
		if last, ok := c.indexes.last[index]; ok {
			p = handOn(s.Job, last, p)
		}
		s.Pods[s.Next] = Row{Pod: p}
		s.Next++
	}
	return s
}

// withdraw takes back n of the Pods that are intended and not seen, the newest first. They may exist already and have to
// be looked for.
func withdraw(s State, n int) State {
	for _, serial := range slices.Backward(s.serials()) {
		if n > 0 && s.takeBack(serial) {
			n--
		}
	}
	return s
}

// withdrawUseless takes back the Pods that are intended for an index which needs none any more, and returns how many. Their places
// are those of others, also where a quota has kept them out so far.
func withdrawUseless(s State, c count) (n int32) {
	for serial, r := range s.Pods {
		if c.indexes.over(s.Job, r.Pod) && s.takeBack(serial) {
			n++
		}
	}
	return n
}

// takeBack withdraws a Pod that is intended and not seen, and says whether it was.
func (s *State) takeBack(serial int) bool {
	r := s.Pods[serial]
	if !r.intended() || r.Withdrawn {
		return false
	}
	r.Withdrawn = true
	s.Pods[serial] = r
	return true
}

// expendables lists the active Pods, those first that are missed least, without the ones already chosen.
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
