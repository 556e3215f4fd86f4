package job

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/intervals"
)

// TestInvalidMemories: each breaks one law. The simulator checks after every step that functions produce no such state.
func TestInvalidMemories(t *testing.T) {
	row := func(serial int, uid types.UID) Row { return Row{Pod: events.Pod{UID: uid, Serial: serial}} }
	loose := func(serial int) Unplaced { return Unplaced{Serial: serial} }
	for name, c := range map[string]struct {
		s     State
		valid bool
	}{
		"empty":                          {State{}, true},
		"each Pod in its place":          {State{Known: true, Next: 4, Settled: intervals.Of(0), Pods: map[int]Row{1: row(1, "a"), 2: row(2, "")}, Unplaced: map[types.UID]Unplaced{"b": loose(3), "c": loose(events.NoSerial)}, Kept: map[types.UID]events.Pod{"d": {}}}, true},
		"two are only intended":          {State{Known: true, Next: 4, Pods: map[int]Row{1: row(1, ""), 2: row(2, "")}}, true},
		"Pods before the inventory":      {State{Next: 2, Pods: map[int]Row{1: row(1, "a")}}, false},
		"a serial that is to come":       {State{Known: true, Next: 1, Pods: map[int]Row{1: row(1, "a")}}, false},
		"a row that is settled":          {State{Known: true, Next: 2, Settled: intervals.Of(1), Pods: map[int]Row{1: row(1, "a")}}, false},
		"a row of another serial":        {State{Known: true, Next: 3, Pods: map[int]Row{1: row(2, "a")}}, false},
		"two rows of one Pod":            {State{Known: true, Next: 3, Pods: map[int]Row{1: row(1, "a"), 2: row(2, "a")}}, false},
		"a row of one that is unplaced":  {State{Known: true, Next: 3, Pods: map[int]Row{1: row(1, "a")}, Unplaced: map[types.UID]Unplaced{"a": loose(events.NoSerial)}}, false},
		"unplaced and kept":              {State{Known: true, Unplaced: map[types.UID]Unplaced{"a": loose(events.NoSerial)}, Kept: map[types.UID]events.Pod{"a": {}}}, false},
		"two that get one serial":        {State{Known: true, Next: 3, Unplaced: map[types.UID]Unplaced{"a": loose(2), "b": loose(2)}}, false},
		"one that gets a settled serial": {State{Known: true, Next: 3, Settled: intervals.Of(2), Unplaced: map[types.UID]Unplaced{"a": loose(2)}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.s.valid(); (err == nil) != c.valid {
				t.Errorf("valid returns %v", err)
			}
		})
	}
}
