package partition

import (
	"fmt"
	"testing"
)

// story is a table that hears one beat after another, written as "a" for a's own regular beat and so on.
type story struct {
	*Table
	t       *testing.T
	numbers map[string]int
}

func tell(t *testing.T) *story { return &story{NewTable("a"), t, map[string]int{}} }

// beat is what a member that serves says.
func beat(member string, holds Set) Beat {
	return Beat{Member: member, Versions: map[string]int{"job": 1}, Holds: map[string]Set{"job": holds}, Serves: true}
}

// hear lets each of the members beat regularly, times times in turn.
func (s *story) hear(times int, beats ...Beat) {
	for range times {
		for _, b := range beats {
			s.numbers[b.Member]++
			b.Number = s.numbers[b.Member]
			s.Hear(b)
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

// share checks how many partitions are a's, and how many of those it may begin with.
func (s *story) share(own Beat, mine, free int) {
	s.t.Helper()
	m, f := s.Share("job", own)
	if m.Len() != mine || f.Len() != free || f&^m != 0 {
		s.t.Errorf("%d partitions are mine (%v), %d are free (%v), want %d and %d", m.Len(), m, f.Len(), f, mine, free)
	}
}

func TestWhoIsAloneHasEverything(t *testing.T) {
	s := tell(t)
	s.hear(1, beat("a", 0))
	s.share(beat("a", 0), 32, 32)
}

func TestWhoHasJustComeServesNothing(t *testing.T) {
	s := tell(t)
	own := beat("a", 0)
	own.Serves = false
	s.hear(1, own)
	s.share(own, 0, 0)
}

func TestAPartitionIsTakenWhenItHasBeenPutDown(t *testing.T) {
	s := tell(t)
	s.hear(1, beat("a", 0), beat("b", All))
	s.share(beat("a", 0), 16, 0)
	mine, _ := s.Share("job", beat("a", 0))
	b := beat("b", All&^mine|One(first(mine)))
	s.Hear(b)
	s.share(beat("a", 0), 16, 15)
}

func TestAPartitionThatIsNotPutDownIsTakenAfterAWhile(t *testing.T) {
	s := tell(t)
	s.hear(1, beat("a", 0), beat("b", All))
	s.share(beat("a", 0), 16, 0)
	s.hear(Patience, beat("b", All), beat("a", 0))
	s.share(beat("a", 0), 16, 16)
}

func TestWhoIsSilentIsDead(t *testing.T) {
	s := tell(t)
	s.hear(3, beat("a", 0), beat("b", All))
	s.hear(Silence-1, beat("a", 0))
	s.live("ab")
	s.hear(1, beat("a", 0))
	s.live("a")
	s.share(beat("a", 0), 32, 32)
}

func TestWhoHearsNobodyIsDeafAndNotAlone(t *testing.T) {
	s := tell(t)
	s.hear(3, beat("a", 0), beat("b", 0))
	for range 10 * Silence { // what is sent in between does not count either
		s.Hear(Beat{Member: "a", Number: 3, Versions: map[string]int{"job": 1}, Serves: true})
	}
	s.live("ab")
}

func TestAFarewellIsHeardAtOnce(t *testing.T) {
	s := tell(t)
	s.hear(2, beat("a", 0), beat("b", All))
	leaving := beat("b", All)
	leaving.Serves = false
	s.Hear(leaving)
	s.share(beat("a", 0), 32, 0)
	s.Hear(Beat{Member: "b", Gone: true})
	s.live("a")
	s.share(beat("a", 0), 32, 32)
}

func TestPartitionsGoToTheNewestVersion(t *testing.T) {
	s := tell(t)
	newer := beat("b", 0)
	newer.Versions = map[string]int{"job": 2}
	s.hear(1, beat("a", All), newer)
	s.share(beat("a", All), 0, 0)
	if s.Newest("job", 1) || !s.Newest("job", 2) {
		t.Error("b reads version 2")
	}
	s.hear(Silence, beat("a", All))
	s.share(beat("a", All), 32, 32)
	if !s.Newest("job", 1) {
		t.Error("nobody is left who reads version 2")
	}
}

func TestTheUnfitArePassedOver(t *testing.T) {
	unfit := func(b Beat) Beat { b.Unfit = true; return b }
	for _, c := range []struct {
		name string
		a, b Beat
		mine int
	}{
		{"both fit", beat("a", 0), beat("b", 0), 16},
		{"a cannot", unfit(beat("a", 0)), beat("b", 0), 0},
		{"b cannot", beat("a", 0), unfit(beat("b", 0)), 32},
		{"nobody can", unfit(beat("a", 0)), unfit(beat("b", 0)), 16},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := tell(t)
			s.hear(1, c.a, c.b)
			s.share(c.a, c.mine, c.mine)
		})
	}
}

func TestFunctionsThatSomebodyDoesNotKnow(t *testing.T) {
	s := tell(t)
	other := Beat{Member: "b", Versions: map[string]int{"workflow": 1}, Serves: true}
	s.hear(1, beat("a", 0), other)
	s.share(beat("a", 0), 32, 32)
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
