package partition

import (
	"fmt"
	"testing"
)

// story is a table that receives one heartbeat after another, written as "a" for a's own regular heartbeat and so on.
type story struct {
	*Table
	t       *testing.T
	numbers map[string]int
}

func tell(t *testing.T) *story { return &story{NewTable("a"), t, map[string]int{}} }

// heartbeat returns the heartbeat of a member that serves.
func heartbeat(member string, holds Set) Heartbeat {
	return Heartbeat{Member: member, Versions: map[string]int{"job": 1}, Holds: map[string]Set{"job": holds}, Serves: true}
}

// receive makes the table receive a regular heartbeat of each of the members in turn, times times.
func (s *story) receive(times int, heartbeats ...Heartbeat) {
	for range times {
		for _, b := range heartbeats {
			s.numbers[b.Member]++
			b.Tick = s.numbers[b.Member]
			s.Receive(b)
		}
	}
}

func (s *story) live(want string) {
	s.t.Helper()
	got := ""
	for _, b := range s.Live() {
		got += b.Member
	}
	if got != want {
		s.t.Errorf("live are %q, want %q", got, want)
	}
}

// share checks how many partitions a has, and how many of those it may begin with.
func (s *story) share(own Heartbeat, mine, free int) {
	s.t.Helper()
	m, f := s.Share("job", own)
	if m.Len() != mine || f.Len() != free || f&^m != 0 {
		s.t.Errorf("%d partitions are mine (%v), %d are free (%v), want %d and %d", m.Len(), m, f.Len(), f, mine, free)
	}
}

func TestASingleMemberHasEverything(t *testing.T) {
	s := tell(t)
	s.receive(1, heartbeat("a", 0))
	s.share(heartbeat("a", 0), 32, 32)
}

func TestANewMemberServesNothing(t *testing.T) {
	s := tell(t)
	own := heartbeat("a", 0)
	own.Serves = false
	s.receive(1, own)
	s.share(own, 0, 0)
}

func TestADrainingMemberServesNothingAtOnce(t *testing.T) {
	s := tell(t)
	s.receive(1, heartbeat("a", All))
	draining := heartbeat("a", All)
	draining.Serves = false // no heartbeat that says so has come back yet
	s.share(draining, 0, 0)
}

// A member that begins to serve waits until its heartbeat that says so has come back, because by then the others have it, too. Of
// two that start at once, neither takes all meanwhile.
func TestOfTwoNewMembersNeitherTakesAll(t *testing.T) {
	s := tell(t)
	serves := func(member string, serves bool) Heartbeat { b := heartbeat(member, 0); b.Serves = serves; return b }
	s.receive(1, serves("a", false), serves("b", false))
	s.share(serves("a", true), 0, 0)
	s.receive(1, serves("b", true)) // sent before a's
	s.share(serves("a", true), 0, 0)
	s.receive(1, serves("a", true))
	s.share(serves("a", true), 16, 16)
}

func TestAPartitionIsTakenWhenItHasBeenPutDown(t *testing.T) {
	s := tell(t)
	s.receive(1, heartbeat("a", 0), heartbeat("b", All))
	s.share(heartbeat("a", 0), 16, 0)
	mine, _ := s.Share("job", heartbeat("a", 0))
	b := heartbeat("b", All&^mine|One(first(mine)))
	s.Receive(b)
	s.share(heartbeat("a", 0), 16, 15)
}

func TestAPartitionThatIsNotPutDownIsTakenAfterAWhile(t *testing.T) {
	s := tell(t)
	s.receive(1, heartbeat("a", 0), heartbeat("b", All))
	s.share(heartbeat("a", 0), 16, 0)
	s.receive(HandoverTicks, heartbeat("b", All), heartbeat("a", 0))
	s.share(heartbeat("a", 0), 16, 16)
}

func TestASilentMemberIsDead(t *testing.T) {
	s := tell(t)
	s.receive(3, heartbeat("a", 0), heartbeat("b", All))
	s.receive(DeadAfter-1, heartbeat("a", 0))
	s.live("ab")
	s.receive(1, heartbeat("a", 0))
	s.live("a")
	s.share(heartbeat("a", 0), 32, 32)
}

func TestAMemberThatReceivesNothingIsNotAlone(t *testing.T) {
	s := tell(t)
	s.receive(3, heartbeat("a", 0), heartbeat("b", 0))
	for range 10 * DeadAfter { // heartbeats in between do not count either
		s.Receive(Heartbeat{Member: "a", Tick: 3, Versions: map[string]int{"job": 1}, Serves: true})
	}
	s.live("ab")
}

func TestALeavingMemberIsLeftOutAtOnce(t *testing.T) {
	s := tell(t)
	s.receive(2, heartbeat("a", 0), heartbeat("b", All))
	leaving := heartbeat("b", All)
	leaving.Serves = false
	s.Receive(leaving)
	s.share(heartbeat("a", 0), 32, 0)
	s.Receive(Heartbeat{Member: "b", Gone: true})
	s.live("a")
	s.share(heartbeat("a", 0), 32, 32)
}

func TestPartitionsGoToTheNewestVersion(t *testing.T) {
	s := tell(t)
	newer := heartbeat("b", 0)
	newer.Versions = map[string]int{"job": 2}
	s.receive(1, heartbeat("a", All), newer)
	s.share(heartbeat("a", All), 0, 0)
	if s.Newest("job", 1) || !s.Newest("job", 2) {
		t.Error("b reads version 2")
	}
	s.receive(DeadAfter, heartbeat("a", All))
	s.share(heartbeat("a", All), 32, 32)
	if !s.Newest("job", 1) {
		t.Error("no member is left that reads version 2")
	}
}

func TestIneligibleMembersArePassedOver(t *testing.T) {
	unfit := func(b Heartbeat) Heartbeat { b.Unfit = true; return b }
	newer := func(b Heartbeat) Heartbeat { b.Versions = map[string]int{"job": 2}; return b }
	idle := func(b Heartbeat) Heartbeat { b.Serves = false; return b }
	for _, c := range []struct {
		name string
		a, b Heartbeat
		mine int
	}{
		{"both fit", heartbeat("a", 0), heartbeat("b", 0), 16},
		{"a cannot", unfit(heartbeat("a", 0)), heartbeat("b", 0), 0},
		{"b cannot", heartbeat("a", 0), unfit(heartbeat("b", 0)), 32},
		{"no member can", unfit(heartbeat("a", 0)), unfit(heartbeat("b", 0)), 16},
		{"b is newer and cannot", heartbeat("a", 0), unfit(newer(heartbeat("b", 0))), 0},
		{"b is newer and drains, or has just come", heartbeat("a", 0), idle(newer(heartbeat("b", 0))), 32},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := tell(t)
			s.receive(1, c.a, c.b)
			s.share(c.a, c.mine, c.mine)
		})
	}
}

func TestFunctionsThatAMemberDoesNotKnow(t *testing.T) {
	s := tell(t)
	other := Heartbeat{Member: "b", Versions: map[string]int{"workflow": 1}, Serves: true}
	s.receive(1, heartbeat("a", 0), other)
	s.share(heartbeat("a", 0), 32, 32)
}

func first(s Set) (partition int) {
	for !s.Has(partition) {
		partition++
	}
	return partition
}

func ExampleSet() {
	fmt.Println(One(1)|One(2)|One(9), All.Len())
	// Output: 1-2,9 32
}
