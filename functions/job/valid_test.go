package job

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/intervals"
	"github.com/jobstream/jobstream/functions/inventory"
	"github.com/jobstream/jobstream/functions/pod"
)

// TestInvalidStates: each breaks one law. The simulator checks after every step that functions produce no such state.
func TestInvalidStates(t *testing.T) {
	row := func(serial int, uid types.UID) Row { return Row{Pod: events.Pod{UID: uid, Serial: serial}} }
	loose := func(serial int) Unplaced { return Unplaced{Serial: serial} }
	for name, c := range map[string]struct {
		table Table
		known bool
		valid bool
	}{
		"empty":                          {Table{}, false, true},
		"each Pod in its place":          {Table{Next: 4, Settled: intervals.Of(0), Pods: map[int]Row{1: row(1, "a"), 2: row(2, "")}, Unplaced: map[types.UID]Unplaced{"b": loose(3), "c": loose(events.NoSerial)}, Kept: map[types.UID]events.Pod{"d": {}}}, true, true},
		"two are only intended":          {Table{Next: 4, Pods: map[int]Row{1: row(1, ""), 2: row(2, "")}}, true, true},
		"Pods before the inventory":      {Table{Next: 2, Pods: map[int]Row{1: row(1, "a")}}, false, false},
		"as many kept ones":              {Table{Next: 2, Pods: map[int]Row{1: row(1, "a")}, Kept: map[types.UID]events.Pod{"b": {}}}, false, false},
		"one that gets a serial to come": {Table{Next: 2, Unplaced: map[types.UID]Unplaced{"a": loose(2)}}, true, false},
		"a serial that is to come":       {Table{Next: 1, Pods: map[int]Row{1: row(1, "a")}}, true, false},
		"a row that is settled":          {Table{Next: 2, Settled: intervals.Of(1), Pods: map[int]Row{1: row(1, "a")}}, true, false},
		"a row of another serial":        {Table{Next: 3, Pods: map[int]Row{1: row(2, "a")}}, true, false},
		"two rows of one Pod":            {Table{Next: 3, Pods: map[int]Row{1: row(1, "a"), 2: row(2, "a")}}, true, false},
		"a row of one that is unplaced":  {Table{Next: 3, Pods: map[int]Row{1: row(1, "a")}, Unplaced: map[types.UID]Unplaced{"a": loose(events.NoSerial)}}, true, false},
		"unplaced and kept":              {Table{Unplaced: map[types.UID]Unplaced{"a": loose(events.NoSerial)}, Kept: map[types.UID]events.Pod{"a": {}}}, true, false},
		"two that get one serial":        {Table{Next: 3, Unplaced: map[types.UID]Unplaced{"a": loose(2), "b": loose(2)}}, true, false},
		"one that gets a settled serial": {Table{Next: 3, Settled: intervals.Of(2), Unplaced: map[types.UID]Unplaced{"a": loose(2)}}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := State{Inventory: inventory.Inventory{Known: c.known}, Table: c.table}
			if err := s.valid(); (err == nil) != c.valid {
				t.Errorf("valid returns %v", err)
			}
		})
	}
}

// TestNoPodGetsASettledSerial: an orphan with the name of an intended Pod gets its serial; then the Job is deleted, and the intended
// Pod is settled before the orphan is stamped (world 2923602272).
func TestNoPodGetsASettledSerial(t *testing.T) {
	name := pod.Name("pi", "job", 0, events.NoIndex)
	s := State{Inventory: inventory.Inventory{Known: true}, Job: events.Job{Name: "pi", UID: "job", Version: 1}, Table: Table{
		Next:     1,
		Pods:     map[int]Row{0: {Pod: events.Pod{Name: name, Index: events.NoIndex}}},
		Unplaced: map[types.UID]Unplaced{"orphan": {Pod: events.Pod{Name: name, UID: "orphan", Version: 2, Orphan: true, Held: true}}},
	}}
	f := New(DefaultLimits())
	s, _ = f.Decide(s, []events.Event{events.JobObserved{Job: events.Job{Name: "pi", UID: "job", Version: 3, Deleting: true}}}, time.Unix(0, 0))
	if err := s.valid(); err != nil {
		t.Error(err)
	}
}
