package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/backoff"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/internal/engine"
)

// Announce implements engine.Announcer.
func (b *bench) Announce(ctx context.Context, p events.Public) error {
	name := p.(events.TickDecided).ScheduledJob.Name
	b.add("announce %s", name)
	if b.hang != nil {
		return b.hang(ctx)
	}
	if b.announce == nil {
		return nil
	}
	return b.announce(name)
}

func tickOf(name string) events.TickDecided {
	return events.TickDecided{ScheduledJob: events.Reference{Namespace: "default", Name: name, UID: "u"},
		Verdict: events.Started, Nominal: time.Unix(int64(name[0]), 0), Count: 1}
}

// herald owes an announcement and the removal of a Pod's finalizer for each name in a fact, until it learns that they are done.
// It backs off after a refusal.
func herald() fn.Registered {
	type state struct {
		Owed, Held []string
		Waits      backoff.Waits
	}
	return fn.Register(fn.Function[state]{Name: "count", Version: 1,
		Observe: func(s state, e events.Event) state {
			switch e := e.(type) {
			case events.TimerFired:
				for name := range strings.FieldsSeq(e.Name) {
					if name != "wake" {
						s.Owed, s.Held = append(s.Owed, name), append(s.Held, name)
					}
				}
			case events.Announced:
				s.Owed = slices.DeleteFunc(s.Owed, func(name string) bool { return events.PublicID(tickOf(name)) == e.ID })
			case events.EffectRefused:
				s.Waits.Refuse(e)
			case events.PodGone:
				s.Held = slices.DeleteFunc(s.Held, func(name string) bool { return name == e.Pod.Name })
			}
			return s
		},
		Plan: func(s state, now time.Time) (state, []effect.Effect) {
			var out []effect.Effect
			for _, name := range s.Owed {
				if e := (effect.Announce{Event: tickOf(name)}); !s.Waits.Blocked(e, now) {
					out = append(out, e)
				}
			}
			for _, name := range s.Held {
				out = append(out, effect.RemoveFinalizer{Name: name})
			}
			var at effect.Wake
			at.By(s.Waits.End(now))
			return s, append(out, at.Timer()...)
		}})
}

func TestAnnouncedComesBackInTheSameTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a turn ends after a second of the clock
		b := start(t, herald())
		b.act = gone
		b.Deliver(fact{b, "a"})
		b.await(t, "ack a")
		b.mu.Lock()
		defer b.mu.Unlock()
		got := slices.Clone(b.lines)
		slices.Sort(got[1:3]) // both at once
		if want := []string{"commit", "act RemoveFinalizer a", "announce a", "commit", "ack a"}; !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", b.lines, want)
		}
	})
}

// The bus does not confirm: the function learns that as it learns of any refusal, and repeats the announcement through its timer
// on the bus; the other effects are done meanwhile, once.
func TestAnnouncementIsRepeatedUntilItIsConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, herald())
		b.act = gone
		failures := 3
		b.announce = func(string) error { // one at a time: there is one name
			if failures--; failures >= 0 {
				return errors.New("not confirmed")
			}
			return nil
		}
		b.Deliver(fact{b, "a"})
		b.await(t, "timer wake")
		b.await(t, "ack a")
		b.reaches(t, "announce a", 4)
		b.Deliver(fact{b, ""}) // a turn after the last one: no effect is owed any more
		b.await(t, "ack ")
		if b.count("announce a") != 4 || b.count("act RemoveFinalizer a") != 1 {
			t.Errorf("got %q", b.lines)
		}
	})
}

// reaches waits until the journal has a line the given number of times.
func (b *bench) reaches(t *testing.T, line string, times int) {
	t.Helper()
	deadline := time.After(time.Minute)
	for b.count(line) < times {
		select {
		case <-deadline:
			t.Fatalf("%q does not come %d times: %q", line, times, b.lines)
		case <-time.After(time.Millisecond):
		}
	}
}

// An unconfirmed announcement does not fail the turn: its refusal is in the state, and the fact need not come again.
func TestAnnouncementThatFailsIsARefusal(t *testing.T) {
	b := start(t, herald())
	b.act = gone
	b.announce = func(string) error { return errors.New("timeout") }
	b.Deliver(fact{b, "a"})
	if got := <-b.turned; got.Err != nil || got.Rounds != 2 {
		t.Errorf("%d rounds, %v", got.Rounds, got.Err)
	}
	b.await(t, "ack a")
	b.await(t, "timer wake")
}

// A Job does not wait for the sake of subscribers: while announcements back off after a failure, every other effect is done at
// once, and announcements are not tried each time.
func TestNothingWaitsForAnAnnouncement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // they back off for a second of the clock
		b := start(t, herald())
		b.act = gone
		b.announce = func(string) error { return errors.New("not confirmed") }
		for _, name := range []string{"a", "b", "c"} {
			b.Deliver(fact{b, name})
			b.await(t, "act RemoveFinalizer "+name)
			b.await(t, "ack "+name)
		}
		if b.count("announce a") != 1 || b.count("announce b")+b.count("announce c") != 0 || b.count("timer again") != 0 {
			t.Errorf("got %q", b.lines)
		}
	})
}

// An effect that fails keeps neither the confirmation nor the refusal of an announcement beside it from being remembered.
func TestAnnouncementsAndEffectsBackOffApart(t *testing.T) {
	for name, refusal := range map[string]error{"it is confirmed": nil, "it is refused": errors.New("not confirmed")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := start(t, herald())
				failed := false
				b.act = func(e effect.Effect) engine.Answer {
					if !failed {
						failed = true
						return engine.Answer{Err: engine.Retry{After: time.Millisecond, Err: errors.New("timeout")}}
					}
					return gone(e)
				}
				b.announce = func(string) error { return refusal }
				b.Deliver(fact{b, "a"})
				b.await(t, "timer again")
				b.await(t, "ack a")
				b.reaches(t, "act RemoveFinalizer a", 2)
				if b.count("announce a") != 1 {
					t.Errorf("got %q", b.lines)
				}
			})
		})
	}
}

// While announcements back off, the key may take a turn for another reason. They are still made when the backoff is over.
func TestAnnouncementIsRepeatedAfterAnotherTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, herald())
		effects, announcements := 0, 0
		b.act = func(e effect.Effect) engine.Answer {
			if effects++; effects == 1 {
				return engine.Answer{Err: engine.Retry{After: time.Millisecond, Err: errors.New("timeout")}}
			}
			return gone(e)
		}
		b.announce = func(string) error {
			if announcements++; announcements == 1 {
				return errors.New("not confirmed")
			}
			return nil
		}
		b.Deliver(fact{b, "a"})
		b.reaches(t, "announce a", 2)
		if b.count("act RemoveFinalizer a") != 2 {
			t.Errorf("got %q", b.lines)
		}
	})
}

// An announcement that hangs is given up after a second, long before the bus would give the turn's facts to another worker.
func TestAnnouncementThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, herald())
		b.act = gone
		waited := make(chan time.Duration, 1)
		b.hang = func(ctx context.Context) error {
			began := time.Now()
			<-ctx.Done()
			waited <- time.Since(began)
			return ctx.Err()
		}
		b.Deliver(fact{b, "a"})
		b.await(t, "ack a")
		if w := <-waited; w >= engine.AckWait {
			t.Errorf("the turn has waited for %v", w)
		}
		if b.count("timer wake")+b.count("timer again") == 0 { // the latter if the turn has just lasted its second
			t.Errorf("nothing will announce it again: %q", b.lines)
		}
	})
}

// An announcement that can never be made is given up with a log line: otherwise it would be tried for ever.
func TestAnnouncementThatIsImpossible(t *testing.T) {
	b := start(t, herald())
	b.act = gone
	b.announce = func(string) error { return impossible{errors.New("too large")} }
	b.Deliver(fact{b, "a"})
	b.await(t, "ack a")
	b.Deliver(fact{b, ""})
	b.await(t, "ack ")
	if b.count("announce a") != 1 || b.count("timer wake") != 0 {
		t.Errorf("got %q", b.lines)
	}
}

type impossible struct{ error }

func (impossible) Permanent() bool { return true }

// If no timer can be set that repeats the announcement, the facts come again.
func TestAnnouncementWithoutATimer(t *testing.T) {
	b := start(t, herald())
	b.act, b.timerless = gone, true
	b.announce = func(string) error { return errors.New("not confirmed") }
	b.Deliver(fact{b, "a"})
	b.await(t, "nak a")
}

// Announcements do not wait for each other.
func TestAnnouncementsAreMadeAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a turn ends after a second of the clock
		b := start(t, herald())
		b.act = gone
		meet := make(chan struct{})
		b.announce = func(name string) error {
			if name == "b" {
				close(meet)
				return nil
			}
			select {
			case <-meet:
				return nil
			case <-time.After(10 * time.Second):
				return errors.New("the other announcement has not begun")
			}
		}
		b.Deliver(fact{b, "a b"})
		if got := <-b.turned; got.Err != nil || got.Effects != 4 || got.Rounds != 2 {
			t.Errorf("%d effects in %d rounds, %v", got.Effects, got.Rounds, got.Err)
		}
	})
}
