package engine_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
)

// stubborn wants the same finalizer removed for ever, whatever the answer. After the first answer it has so many announcements to make, of
// which each is due once the one before it is confirmed: a, b, c, ...
func stubborn(announcements int) fn.Registered {
	type state struct {
		Tried bool
		Told  int
	}
	return fn.Register(fn.Function[state]{Name: "count", Version: 1,
		Observe: func(s state, e events.Event) state {
			switch e.(type) {
			case events.PodGone:
				s.Tried = true
			case events.Announced:
				s.Told++
			}
			return s
		},
		Plan: func(s state, _ time.Time) (state, []effect.Effect) {
			out := []effect.Effect{effect.RemoveFinalizer{Name: "a"}}
			if s.Tried && s.Told < announcements {
				out = append(out, effect.Announce{Event: tickOf(string(rune('a' + s.Told)))})
			}
			return s, out
		}})
}

// announced returns how many announcements were tried.
func (b *bench) announced() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, line := range b.lines {
		if strings.HasPrefix(line, "announce ") {
			n++
		}
	}
	return n
}

// While the effects on the cluster are in vain, one announcement may follow from another: the turn makes them all, as long as a turn may
// take.
func TestAnnouncementsFollowEachOtherWhileAllElseIsInVain(t *testing.T) {
	for _, c := range []struct {
		name               string
		announcements      int
		each               time.Duration
		announced, decided int // in the first turn
	}{
		{"they are quick", 5, 0, 5, 7},
		{"they take more than a turn may", 20, 300 * time.Millisecond, 4, 6}, // after 1.2 s
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := start(t, stubborn(c.announcements))
				b.act = gone
				b.announce = func(string) error {
					<-time.After(c.each)
					return nil
				}
				b.Deliver(fact{b, "a"})
				got := <-b.turned
				if n := b.announced(); n != c.announced || got.Rounds != c.decided || b.count("ack a") != 1 {
					t.Errorf("%d announcements in %d rounds, want %d in %d: %q", n, got.Rounds, c.announced, c.decided, b.lines)
				}
				<-time.After(time.Minute)
				if n := b.announced(); n != c.announcements {
					t.Errorf("%d of %d announcements in a minute", n, c.announcements)
				}
			})
		})
	}
}

// What follows from an announcement is committed before anything else is done, in vain or not.
func TestNothingIsAnnouncedThatCouldNotBeCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := errors.New("the bus is away")
		b := start(t, stubborn(2), failNth("save", 3, away)) // the first decision, the answer, the confirmation
		b.act = gone
		b.Deliver(fact{b, "a"})
		if got := <-b.turned; !errors.Is(got.Err, away) || b.count("nak a") != 1 || b.count("announce b") > 0 {
			t.Errorf("the turn ends with %v: %q", got.Err, b.lines)
		}
	})
}
