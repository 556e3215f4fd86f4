package job

import (
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/backoff"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/intervals"
	"github.com/jobstream/jobstream/functions/inventory"
	"github.com/jobstream/jobstream/functions/pod"
)

// live is a Pod that runs.
func live(serial, index int) Row {
	return Row{Pod: events.Pod{Name: "pi", UID: types.UID(rune('a' + serial)), Serial: serial, Index: index, Phase: events.Running, Held: true}}
}

func with(r Row, change func(*Row)) Row { change(&r); return r }

// Only live Pods that are not leaving already can be chosen as surplus.
func TestExpendables(t *testing.T) {
	s := State{Table: Table{Pods: map[int]Row{
		0: live(0, 0),
		1: with(live(1, 1), func(r *Row) { r.Surplus = true }),
		2: with(live(2, 2), func(r *Row) { r.Pod.Deleting = true }),
		3: with(live(3, 3), func(r *Row) { r.Pod.Phase = events.Succeeded }),
		4: live(4, 4),
		5: with(live(5, 5), func(r *Row) { r.Pod.UID = "" }),
		6: with(live(6, 6), func(r *Row) { r.Gone = true }),
		7: with(live(7, 7), func(r *Row) { r.Surplus, r.Pod.Deleting = true, true }),
	}}}
	if got := expendables(s, []int{4}); !slices.Equal(got, []int{0}) {
		t.Errorf("%v", got)
	}
}

// Of the Pods of one index the one further along stays; the Pods of an index that is over all go.
func TestDuplicates(t *testing.T) {
	ready := func(r *Row) { r.Pod.Ready = true }
	s := State{Job: events.Job{Indexed: true, Completions: new(int32(5))}, Table: Table{Pods: map[int]Row{
		0: live(0, 4), // over
		1: with(live(1, 1), func(r *Row) { r.Pod.Deleting = true }),
		2: with(live(2, 1), ready),
		3: live(3, 1),
		4: with(live(4, 1), func(r *Row) { r.Surplus = true }),
		5: live(5, 2),
		6: with(live(6, 2), ready),
		7: live(7, 9), // beyond completions
		8: with(live(8, 3), func(r *Row) { r.Pod.Phase = events.Failed }),
		9: live(9, 3),
	}}}
	c := count{indexes: indexStatus{completed: intervals.Of(4)}}
	got := duplicates(s, c)
	if slices.Sort(got); !slices.Equal(got, []int{0, 3, 5, 7}) {
		t.Errorf("%v", got)
	}
}

// The lowest free indexes get Pods. If there is room for few Pods, a retry comes in its turn: the failed Pod has its room already.
func TestFreeIndexes(t *testing.T) {
	s := State{Job: events.Job{Indexed: true, Completions: new(int32(8)), BackoffLimitPerIndex: new(int32(3))}, limits: DefaultLimits(),
		Table: Table{Pods: map[int]Row{0: live(0, 1)}}}
	failed := events.Pod{Index: 5, Finished: noon.Add(-time.Hour)}
	waits := events.Pod{Index: 6, Finished: noon.Add(-time.Second)}
	c := count{indexes: indexStatus{completed: intervals.Of(0), failed: intervals.Of(2), last: map[int]events.Pod{5: failed, 6: waits}}}
	for _, x := range []struct {
		n, room int
		want    []int
	}{{9, 9, []int{3, 4, 5, 7}}, {2, 9, []int{3, 4}}, {9, 1, []int{3, 5}}, {9, 0, []int{5}}, {9, 2, []int{3, 4, 5}}, {0, 9, nil}} {
		if got := freeIndexes(s, c, x.n, x.room, noon); !slices.Equal(got, x.want) {
			t.Errorf("%d of them, room for %d: %v, want %v", x.n, x.room, got, x.want)
		}
	}
}

// A Pod that leaves gives its index away, unless its end may still count: while a surplus one is held, or if only failed Pods are
// replaced.
func TestFreeIndexesOfPodsThatLeave(t *testing.T) {
	surplus := func(r *Row) { r.Surplus = true }
	held := func(r *Row) { r.Surplus, r.Pod.Held = true, true }
	deleting := func(r *Row) { r.Pod.Deleting = true }
	for name, x := range map[string]struct {
		row          func(*Row)
		onlyFailed   bool
		givesItsAway bool
	}{
		"surplus":                           {row: surplus, givesItsAway: true},
		"surplus and held":                  {row: held},
		"deleted":                           {row: deleting, givesItsAway: true},
		"deleted, only failed are replaced": {row: deleting, onlyFailed: true},
	} {
		s := State{Job: events.Job{Indexed: true, Completions: new(int32(2)), ReplaceFailedOnly: x.onlyFailed}, limits: DefaultLimits(),
			Table: Table{Pods: map[int]Row{0: with(with(live(0, 0), func(r *Row) { r.Pod.Held = false }), x.row)}}}
		if got := slices.Contains(freeIndexes(s, count{}, 2, 2, noon), 0); got != x.givesItsAway {
			t.Errorf("%s: gives its index away: %v", name, got)
		}
	}
}

// Serials are given out one attempt at a time while Pods are refused, not while a delay lasts, and never to more Pods than the state may
// have.
func TestIntend(t *testing.T) {
	for _, c := range []struct {
		name                string
		allowed, has, still int
		rows, want          int
		unsupported         bool
		backoff             events.Backoff
	}{
		{name: "three are missing", want: 3},
		{name: "refused, and tried again", allowed: 1, want: 3},
		{name: "refused, and one is to be tried", allowed: 1, still: 1},
		{name: "some are intended already", still: 499, want: 1},
		{name: "as many as one plan creates", still: 500},
		{name: "the state is nearly full", rows: unsettledMax - 2, want: 2},
		{name: "the state is full", rows: unsettledMax},
		{name: "a delay lasts", backoff: events.Backoff{Failures: 1, Last: noon.Add(-time.Second)}},
		{name: "a delay is over", backoff: events.Backoff{Failures: 1, Last: noon.Add(-time.Minute)}, want: 3},
		{name: "not supported", unsupported: true},
	} {
		s := State{Job: events.Job{Name: "pi", UID: "u", Backoff: c.backoff}, limits: DefaultLimits(), Table: Table{Pods: map[int]Row{}, Next: 30_000}, Pacing: Pacing{Allowed: c.allowed, Waits: backoff.Waits{}}}
		for i := range c.rows {
			s.Pods[i] = Row{}
		}
		if c.unsupported {
			s.Job.Unsupported = []string{"spec.x"}
		}
		if got := s.intend(count{intended: int32(c.still)}, 3, noon); got != c.want || len(s.Pods) != c.rows+c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// A Pod that the selector does not select is never the Job's, whatever the selector says of the mark that replaces its labels.
func TestJudgedPodsStayJudged(t *testing.T) {
	selector := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpDoesNotExist}}}
	j := events.Job{Selector: selector}
	stranger := events.Pod{Labels: map[string]string{"app": "x"}}
	if stranger.Labels = judged(j, stranger); matches(j, stranger) {
		t.Error("a judged Pod matches")
	}
	if own := (events.Pod{Labels: map[string]string{"other": "x"}}); !matches(j, own) || judged(j, own) != nil {
		t.Error("a Pod without the label does not match")
	}
	if matches(events.Job{}, events.Pod{Labels: map[string]string{"app": "x"}}) {
		t.Error("a Pod with labels of its own matches the generated selector")
	}
}

// An observation at the version of a list is out of date: what is not in the state was not in the list.
func TestObservationsThatAreNew(t *testing.T) {
	table := Table{ListVersions: inventory.ListVersions{{Version: 10}}}
	for version, want := range map[uint64]bool{9: false, 10: false, 11: true} {
		if got := table.new(events.Pod{UID: "a", Version: version}); got != want {
			t.Errorf("version %d: new is %v", version, got)
		}
	}
}

// A row is found by the UID of its Pod, as long as the row has that Pod.
func TestRowOf(t *testing.T) {
	table := Table{Pods: map[int]Row{3: live(3, 0)}}
	uid := table.Pods[3].Pod.UID
	if serial, known := table.rowOf(uid); !known || serial != 3 {
		t.Errorf("%d, %v", serial, known)
	}
	if _, known := table.rowOf("other"); known {
		t.Error("a Pod that has no row")
	}
	table.change(3, func(r *Row) { r.Pod.UID = "next" }) // created again under the same name
	if _, known := table.rowOf(uid); known {
		t.Error("the Pod that the row had before")
	}
}

// A Pod that waits for a serial gets that of its name, unless another Pod has or had it.
func TestSerialFor(t *testing.T) {
	own := func(serial int) events.Pod {
		return events.Pod{Name: pod.Name("pi", "u", serial, events.NoIndex), UID: "p", Serial: events.NoSerial, Index: events.NoIndex}
	}
	for _, c := range []struct {
		name   string
		pod    events.Pod
		change func(*State)
		want   int
	}{
		{"its own", own(2), func(*State) {}, 2},
		{"intended under this very name", own(2), func(s *State) { s.Pods[2] = Row{Pod: own(2)}; s.change(2, func(r *Row) { r.Pod.UID = "" }) }, 2},
		{"intended under another name", own(2), func(s *State) { s.Pods[2] = Row{Pod: events.Pod{Name: "other"}} }, 7},
		{"another Pod has it", own(2), func(s *State) { s.Pods[2] = live(2, 0) }, 7},
		{"the row is this Pod's, and exists", own(2), func(s *State) { s.Pods[2] = Row{Pod: own(2)} }, 7},
		{"another one is about to get it", own(2), func(s *State) {
			s.Unplaced = map[types.UID]Unplaced{"x": {Serial: 2}, "y": {Serial: events.NoSerial}}
		}, 7},
		{"it is settled", own(2), func(s *State) { s.Settled = intervals.Of(2) }, 7},
		{"a name that is none of the Job's", events.Pod{Name: "theirs", Serial: 2}, func(*State) {}, 7},
		{"a serial to come, by its name alone", own(7), func(*State) {}, 7},
		{"a serial far ahead, by its name alone", own(9), func(*State) {}, 7},
	} {
		s := State{Job: events.Job{Name: "pi", UID: "u"}, Table: Table{Pods: map[int]Row{}, Next: 7}}
		c.change(&s)
		if got := s.serialFor(c.pod); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	s := State{Job: events.Job{Name: "pi", UID: "u"}, Table: Table{Next: 7}}
	both := own(9)
	if both.Serial = 9; s.named(both) != 9 {
		t.Error("a name and an annotation that agree")
	}
	if got := s.named(events.Pod{Name: "theirs", Serial: events.NoSerial}); got != events.NoSerial {
		t.Errorf("theirs: %d", got)
	}
}

// What is deleted in one plan is bounded, and other effects are not.
func TestAtOnce(t *testing.T) {
	var all []effect.Effect
	for range 5 {
		all = append(all, effect.DeletePod{}, effect.RemoveFinalizer{})
	}
	if got := atOnce(all, 2); len(got) != 7 {
		t.Errorf("%d effects", len(got))
	}
}

// Once the end of a Job is decided, its last failure stays: Pods that are deleted because of it fail later.
func TestLastFailureOfADecidedJob(t *testing.T) {
	first, later := &events.PodFailure{Pod: "pi-a", ExitCode: 7, Time: noon}, &events.PodFailure{Pod: "pi-b", ExitCode: 143, Time: noon.Add(time.Second)}
	for kind, want := range map[batchv1.JobConditionType]*events.PodFailure{
		batchv1.JobFailureTarget: first, batchv1.JobSuccessCriteriaMet: first, batchv1.JobSuspended: later,
	} {
		s := State{Job: events.Job{LastFailure: first}, LastFailure: later}
		s.Job.Status.Conditions = []batchv1.JobCondition{{Type: kind, Status: corev1.ConditionTrue}}
		if got := s.lastFailure(); got != want {
			t.Errorf("%s: %v", kind, got)
		}
	}
}
