package job

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/intervals"
	"github.com/jobstream/jobstream/functions/pod"
)

// TestWhatProvesASerial: the row of the Pod, its name, or the stamp that this State is about to give it. A settled serial makes a stray of it, unless
// its name shows that it was created under one that is not settled.
func TestWhatProvesASerial(t *testing.T) {
	j := events.Job{Name: "pi", UID: "u"}
	named := func(serial int) string { return pod.Name(j.Name, j.UID, serial, events.NoIndex) }
	for _, test := range []struct {
		name   string
		pod    events.Pod
		stamp  int // of the Pod, while it waits for it
		serial int
		known  bool
	}{
		{"its name", events.Pod{Name: named(5), Serial: 5}, events.NoSerial, 5, true},
		{"another name", events.Pod{Name: "twin", Serial: 5}, events.NoSerial, 5, false},
		{"no serial, though its name has one", events.Pod{Name: named(5), Serial: events.NoSerial}, events.NoSerial, events.NoSerial, false},
		{"a settled serial: a stray", events.Pod{Name: "twin", Serial: 2, Held: true}, events.NoSerial, 2, true},
		{"a settled serial, in its name, too: a stray", events.Pod{Name: named(2), Serial: 2, Held: true}, events.NoSerial, 2, true},
		{"a settled serial, and a name of another settled one: a stray", events.Pod{Name: named(1), Serial: 2, Held: true}, events.NoSerial, 2, true},
		{"a settled serial, and a name of one that is not", events.Pod{Name: named(5), Serial: 2, Held: true}, events.NoSerial, 2, false},
		{"the serial of another Pod", events.Pod{Name: named(5), Serial: 4, Held: true}, events.NoSerial, 4, false},
		{"the serial of a Pod that is gone", events.Pod{Name: named(5), Serial: 3, Held: true}, events.NoSerial, 3, false},
		{"the serial of a Pod that is gone, which its name does not contradict", events.Pod{Name: "twin", Serial: 3, Held: true}, events.NoSerial, 3, true},
		{"its stamp, since another Pod has the serial in its name", events.Pod{Name: named(4), Serial: 7, Held: true}, 7, 7, true},
		{"not its stamp", events.Pod{Name: named(4), Serial: 6, Held: true}, 7, 6, false},
	} {
		p := test.pod
		p.UID = "p"
		s := State{Job: j}
		s.Next, s.Settled = 8, intervals.Set{}.With(1).With(2)
		s.Pods = map[int]Row{3: {Pod: events.Pod{UID: "gone", Name: named(3), Serial: 3}, Gone: true}, 4: {Pod: events.Pod{UID: "theirs", Name: "theirs", Serial: 4}}}
		if test.stamp != events.NoSerial {
			s.Unplaced = map[types.UID]Unplaced{"p": {Pod: events.Pod{UID: "p", Name: p.Name}, Serial: test.stamp}}
		}
		if serial, known := s.serialOf(p); serial != test.serial || known != test.known {
			t.Errorf("%s: %d, %v; want %d, %v", test.name, serial, known, test.serial, test.known)
		}
	}
}

// The observation that a Pod has left the Job overtook the one of its end. The end still settles the serial on which its name and its
// annotation agree, the first serial as well.
func TestALateEndSettlesTheSerialOfAPodThatHasLeft(t *testing.T) {
	for _, serial := range []int{0, 1, 6} {
		s := State{Job: events.Job{Name: "pi", UID: "u"}}
		p := events.Pod{Name: pod.Name("pi", "u", serial, events.NoIndex), UID: "p", Version: 6, Serial: serial, Index: events.NoIndex, Phase: events.Failed}
		s.Unplaced = map[types.UID]Unplaced{"p": {Pod: events.Pod{Name: p.Name, UID: "p", Version: 7, Serial: serial, Orphan: true}, Serial: events.NoSerial}}
		if s = seePod(s, p); !s.Settled.Has(serial) || s.Settled.Len() != 1 || s.Next != serial+1 {
			t.Errorf("serial %d: settled %v, the next is %d", serial, s.Settled, s.Next)
		}
	}
}
