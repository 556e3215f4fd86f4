package chaos

import (
	"reflect"
	"testing"
	"time"
)

// The seed alone decides, and the short form has every kind of fault and every sort of work.
func TestDrawnBySeed(t *testing.T) {
	const short = 2 * time.Minute
	if !reflect.DeepEqual(DrawFaults(7, short), DrawFaults(7, short)) || !reflect.DeepEqual(DrawTasks(7, short), DrawTasks(7, short)) {
		t.Error("a seed gives two different runs")
	}
	if reflect.DeepEqual(DrawFaults(7, short), DrawFaults(8, short)) {
		t.Error("two seeds give the same run")
	}
	for seed := range uint64(200) {
		kinds, sorts := map[Kind]int{}, map[Sort]int{}
		for _, f := range DrawFaults(seed, short) {
			kinds[f.Kind]++
			if f.At+calm > short {
				t.Errorf("seed %d: %s at %v", seed, f.Kind, f.At)
			}
		}
		for _, task := range DrawTasks(seed, short) {
			sorts[task.Sort]++
		}
		if len(kinds) < len(Kinds) || len(sorts) != len(deckOf)-2 {
			t.Errorf("seed %d: only %d kinds of faults, %d sorts of work", seed, len(kinds), len(sorts))
		}
	}
}
