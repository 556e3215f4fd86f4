package inventory

import (
	"testing"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// A state accepts one snapshot, the one that it requested: the answer to a request of a lost state proves nothing.
func TestOnlyTheSnapshotThatWasRequestedCounts(t *testing.T) {
	now := time.Date(2026, 1, 5, 12, 0, 0, 1, time.UTC)
	i := Inventory{Name: "pi", NeedsSync: true}
	if i.Requested("") {
		t.Error("a state that has requested none takes a snapshot without an ID for its own")
	}
	asked := i.Request(now)
	if len(asked) != 1 || asked[0] != (effect.TakeInventory{ID: i.Asked, Job: "pi"}) || !i.AskedAt().Equal(now) {
		t.Fatalf("requested %v at %v", asked, i.AskedAt())
	}
	if again := i.Request(now.Add(time.Minute)); len(again) != 1 || again[0] != asked[0] {
		t.Errorf("until the snapshot has come, the same is requested: %v, then %v", asked, again)
	}
	if !i.Requested(i.Asked) || i.Requested("of-a-lost-state") || i.Requested("") {
		t.Errorf("of %q, a snapshot that another state requested is accepted, or its own is not", i.Asked)
	}
}

func TestWhatAStateRequests(t *testing.T) {
	now := time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
	unread := Inventory{Known: true, NeedsSync: true, Asked: "a"}
	unread.Missed(events.TimerFired{At: now})
	for _, c := range []struct {
		name string
		of   Inventory
		want string // the ID
	}{
		{"no event has needed a list: the end of an object that was settled long ago costs none", Inventory{}, ""},
		{"it has its list", Inventory{Known: true, NeedsSync: true, Asked: "a"}, ""},
		{"a message could not be read", unread, unread.Unread},
		{"a message could not be read before the first list: that one is enough", Inventory{NeedsSync: true, Asked: "a", Unread: "unread-1"}, "a"},
	} {
		if got := c.of.Request(now); len(got) != min(1, len(c.want)) || len(got) == 1 && got[0] != (effect.TakeInventory{ID: c.want}) {
			t.Errorf("%s: %v, want %q", c.name, got, c.want)
		}
	}
	unread.Compared("another")
	if unread.Unread == "" {
		t.Error("another snapshot counts as the one that compares")
	}
	if unread.Compared(unread.Unread); unread.Unread != "" {
		t.Error("the snapshot that compares is requested once more")
	}
}
