package partition

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/jobstream/jobstream/events"
	_ "github.com/jobstream/jobstream/internal/dev/replay"
)

func TestSetReadsAsRanges(t *testing.T) {
	for s, want := range map[Set]string{0: "", One(0): "0", One(3) | One(5): "3,5", One(1) | One(2) | One(3) | One(31): "1-3,31", All: "0-31"} {
		if got := s.String(); got != want {
			t.Errorf("%032b reads %q, want %q", s, got, want)
		}
	}
}

// members draws 1 to 40 distinct names, so at times more than there are partitions.
var members = rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,8}-[A-Z2-7]{8}`), 1, 40, rapid.ID[string])

func TestEveryPartitionHasOneMember(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seen := Set(0)
		for member, share := range assign("job", members.Draw(t, "members")) {
			if seen&share != 0 {
				t.Fatalf("%s has partitions %v that another member has, too", member, seen&share)
			}
			seen |= share
		}
		if seen != All {
			t.Fatalf("no member has %v", All&^seen)
		}
	})
}

func TestSharesDifferByOneAtMost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := members.Draw(t, "members")
		shares := assign("job", names)
		for _, m := range names {
			if n, fair := shares[m].Len(), events.Partitions/len(names); n != fair && (n != fair+1 || events.Partitions%len(names) == 0) {
				t.Fatalf("%s has %d partitions of %d, %d share", m, n, events.Partitions, len(names))
			}
		}
	})
}

func TestTheOrderOfMembersDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := members.Draw(t, "members")
		if a, b := assign("job", names), assign("job", rapid.Permutation(names).Draw(t, "order")); !maps.Equal(a, b) {
			t.Fatalf("%v and %v", a, b)
		}
	})
}

// A member that leaves gives its own partitions away. The seats that this frees let some others move, too, but never more of them
// than that: without rendezvous hashing, nearly all would.
func TestALeavingMemberMovesLittle(t *testing.T) {
	moved, freed := 0, 0
	for n := 2; n <= 8; n++ {
		for try := range 50 {
			var names []string
			for i := range n {
				names = append(names, fmt.Sprintf("host-%d-%d", try, i))
			}
			before, after := assign("job", names), assign("job", names[1:])
			freed += before[names[0]].Len()
			for _, m := range names[1:] {
				moved += (before[m] &^ after[m]).Len()
			}
		}
	}
	if moved > freed {
		t.Errorf("%d partitions became free and %d others moved", freed, moved)
	}
	t.Logf("of 100 partitions that moved, %d had to", 100*freed/(freed+moved))
}

func TestFunctionsAreDistributedOnTheirOwn(t *testing.T) {
	names := []string{"a", "b", "c"}
	if maps.Equal(assign("job", names), assign("scheduledjob", names)) {
		t.Error("the member with one partition more has it for every function")
	}
	if len(assign("job", nil)) != 0 {
		t.Error("no member has partitions")
	}
	if got := slices.Sorted(maps.Keys(assign("job", names))); !slices.Equal(got, names) {
		t.Errorf("partitions went to %v", got)
	}
}
