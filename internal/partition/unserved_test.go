package partition

import (
	"fmt"
	"testing"
)

// hall has members, some of which do not receive each other's heartbeats.
type hall struct {
	names  []string
	cut    map[[2]int]bool // pairs that do not receive each other's heartbeats
	tables []*Table
	holds  []Set
	tick   int
}

func newHall(world, members int) *hall {
	h := &hall{cut: map[[2]int]bool{}, holds: make([]Set, members)}
	for i := range members {
		h.names = append(h.names, fmt.Sprintf("world-%d-member-%d", world, i))
		h.tables = append(h.tables, NewTable(h.names[i]))
	}
	return h
}

// heartbeat makes every member send the given number of heartbeats, and begin to serve what is free.
func (h *hall) heartbeat(times int) {
	for range times {
		h.tick++
		for i, name := range h.names {
			b := heartbeat(name, h.holds[i])
			b.Tick, b.Serial = h.tick, uint64(h.tick)
			for j, table := range h.tables {
				if !h.cut[[2]int{min(i, j), max(i, j)}] {
					table.Receive(b)
				}
			}
		}
		for i, table := range h.tables {
			_, h.holds[i] = table.Share("job", heartbeat(h.names[i], h.holds[i]))
		}
	}
}

// served returns which partitions are served, and how many are served more than once.
func (h *hall) served() (all Set, twice int) {
	for _, s := range h.holds {
		twice += (all & s).Len()
		all |= s
	}
	return all, twice
}

// TestAPartitionThatEachGivesToAnother: of three NATS servers the route between two is cut. Members on the third receive all
// heartbeats and all others receive theirs; each of the others receives only its own and those of the third. Each member
// distributes partitions over the members whose heartbeats it receives, and there are partitions of which each believes that
// another has them.
func TestAPartitionThatEachGivesToAnother(t *testing.T) {
	unserved := 0
	for world := range 50 {
		h := newHall(world, 3)
		h.cut[[2]int{0, 2}] = true
		h.heartbeat(3)
		all, _ := h.served()
		unserved += (All &^ all).Len()
		h.heartbeat(DeadAfter + 1)
		for range 20 {
			h.heartbeat(1)
			if all, _ := h.served(); all != All {
				t.Fatalf("world %d: no member serves %v", world, All&^all)
			}
		}
		delete(h.cut, [2]int{0, 2})
		h.heartbeat(HandoverTicks + 2)
		if all, twice := h.served(); all != All || twice > 0 {
			t.Errorf("world %d: when all receive all heartbeats again, no member serves %v, and %d partitions are served twice", world, All&^all, twice)
		}
		for i, s := range h.holds {
			if s.Len() < 10 || s.Len() > 11 {
				t.Errorf("world %d: member %d has %d partitions", world, i, s.Len())
			}
		}
	}
	if unserved == 0 {
		t.Error("no partition was given to another member by all: this test tests nothing")
	}
}

// TestAnyPairsCutOff cuts any pairs of up to five members.
func TestAnyPairsCutOff(t *testing.T) {
	for members := 2; members <= 5; members++ {
		for world := range 40 {
			h := newHall(world, members)
			for i := range members {
				for j := i + 1; j < members; j++ {
					h.cut[[2]int{i, j}] = score("pair", h.names[i]+h.names[j], world)%2 == 0
				}
			}
			h.heartbeat(DeadAfter + 4)
			for range 10 {
				h.heartbeat(1)
				if all, _ := h.served(); all != All {
					t.Fatalf("%d members, world %d: no member serves %v; deaf %v", members, world, All&^all, h.cut)
				}
			}
		}
	}
}

// TestNoPartitionIsTakenOverWhileAllConnectionsWork: while all connections work, no partition is taken over, whichever members
// come and go.
func TestNoPartitionIsTakenOverWhileAllConnectionsWork(t *testing.T) {
	h := newHall(1, 4)
	h.heartbeat(3 * DeadAfter)
	for _, table := range h.tables {
		if table.takenOver["job"] != 0 {
			t.Errorf("%s has taken in %v", table.self, table.takenOver["job"])
		}
	}
}

// While all members are about to leave, or have just come, no partition is served.
func TestAMemberThatDoesNotServeTakesOverNothing(t *testing.T) {
	for _, others := range []bool{true, false} {
		s := tell(t)
		own, b := heartbeat("a", 0), heartbeat("b", 0)
		own.Serves, b.Serves = false, others
		for range 3 * DeadAfter {
			s.receive(1, own, b)
			s.share(own, 0, 0)
		}
	}
}
