package bus

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/engine"
)

// fires returns how often the timer fired.
func fires(e *ear, name string) int {
	return e.count(func(d engine.Delivery) bool {
		fired, ok := d.Event().(events.TimerFired)
		return ok && fired.Name == name
	})
}

// A server that stores the message of a fired timer removes whatever is scheduled under its subject, also what was set a moment
// ago. A client that, on each fired timer, sets again what is still to come loses nothing.
func TestATimerThatIsSetWhileItRingsRingsAgain(t *testing.T) {
	t.Parallel()
	b := connect(t, serve(t), patient)
	const timers = 400 // all at once, so that the server takes long between reading them and storing their messages
	ctx, key := t.Context(), keyOf(uid(1))
	before := time.Now().Add(3 * time.Second).Truncate(time.Millisecond)
	then := before.Add(3 * time.Second)
	set := func(at time.Time) {
		var all errgroup.Group
		all.SetLimit(32)
		for i := range timers {
			all.Go(func() (err error) {
				for range 3 { // a busy server may not answer in time, and to set it twice does no harm
					if err = b.Timers().Set(ctx, key, strconv.Itoa(i), at); err == nil {
						return nil
					}
				}
				return err
			})
		}
		if err := all.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	received := map[string]bool{}
	var again errgroup.Group // as the engine does, which waits for many keys at once: one after the other takes a busy server too long
	again.SetLimit(32)
	listen(t, b, allPartitions(), func(d engine.Delivery) {
		fired := d.Event().(events.TimerFired)
		if !fired.At.Equal(then) {
			again.Go(func() error {
				err := b.Timers().Set(ctx, key, fired.Name, then)
				if err != nil {
					d.Nak(0)
				} else {
					d.Ack()
				}
				return err
			})
			return
		}
		mu.Lock()
		received[fired.Name] = true
		mu.Unlock()
		d.Ack()
	})
	set(before)
	<-time.After(time.Until(before))
	set(then)
	defer func() {
		mu.Lock()
		defer mu.Unlock()
		if t.Failed() { // one or two are lost, or hundreds still to come?
			t.Logf("%d of %d have fired for their new time", len(received), timers)
		}
	}()
	until(t, "every timer to fire for its new time", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(received) == timers
	})
}

func TestTimersFire(t *testing.T) {
	t.Parallel()
	b := connect(t, serve(t))
	fired := make(chan struct {
		name string
		at   time.Time
	}, 100)
	e := listen(t, b, allPartitions(), func(d engine.Delivery) {
		fired <- struct {
			name string
			at   time.Time
		}{d.Event().(events.TimerFired).Name, time.Now()}
		d.Ack()
	})
	until(t, "all partitions are served", func() bool { return consumers(t, b) == 2*events.Partitions })
	ctx, key, now := t.Context(), keyOf(uid(1)), time.Now()
	first := now.Add(20 * time.Second) // when all of them have been set
	want := map[string]time.Time{
		"past":     now,
		"soon":     first.Add(234 * time.Millisecond),
		"later":    first.Add(1700 * time.Millisecond),
		"replaced": first.Add(time.Second),
		"sooner":   first.Add(500 * time.Millisecond),
	}
	set := func(name string, at time.Time) {
		t.Helper()
		if err := b.Timers().Set(ctx, key, name, at); err != nil {
			t.Fatal(err)
		}
	}
	set("replaced", first)
	set("sooner", now.Add(time.Hour))
	set("forth-and-back", first)
	set("forth-and-back", now.Add(time.Hour))
	set("forth-and-back", first)
	want["forth-and-back"] = first
	set("past", now.Add(-time.Hour))
	for name, at := range want {
		if name != "past" {
			set(name, at)
		}
	}
	for range want {
		select {
		case r := <-fired:
			late := r.at.Sub(want[r.name])
			t.Logf("%s fired %v after its time", r.name, late)
			if late < 0 || late > soon {
				t.Errorf("%s fired %v after its time", r.name, late)
			}
		case <-time.After(soon):
			t.Fatal("a timer did not fire")
		}
	}
	for name := range want {
		if n := fires(e, name); n != 1 {
			t.Errorf("%s fired %d times", name, n)
		}
	}
}

func TestTimersOutliveTheServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serveIn(t, dir, freePort(t))
	b := connect(t, s)
	set := func(name string, in time.Duration) {
		t.Helper()
		if err := b.Timers().Set(t.Context(), keyOf(uid(7)), name, time.Now().Add(in)); err != nil {
			t.Fatal(err)
		}
	}
	set("missed", 300*time.Millisecond)
	set("coming", 3*time.Second)
	set("far", time.Hour)
	b.Close()
	s.Shutdown()
	<-time.After(300 * time.Millisecond) // the timer's time passes while no reconciler runs
	s = serveIn(t, dir, freePort(t))
	b = connect(t, s)
	e := listen(t, b, allPartitions(), nil)
	until(t, "both fire", func() bool { return fires(e, "missed") == 1 && fires(e, "coming") == 1 })
	if n := messages(t, b, b.names.timers()); n > 3 {
		t.Errorf("%d messages in the stream of timers", n)
	}
	if fires(e, "far") != 0 {
		t.Error("a timer fired an hour early")
	}
}

// Fired timers that were acknowledged do not pile up; unacknowledged ones stay.
func TestAcknowledgedTimersArePurged(t *testing.T) {
	t.Parallel()
	b := connect(t, serve(t))
	served, unserved := keyOf(uid(1)), keyOf(uid(2))
	if served.Partition() == unserved.Partition() {
		t.Fatal("choose UIDs of two partitions")
	}
	for _, k := range []events.Key{served, unserved} {
		if err := b.Timers().Set(t.Context(), k, "x", time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	e := listen(t, b, []int{served.Partition()}, nil)
	until(t, "it fires", func() bool { return fires(e, "x") == 1 })
	until(t, "both have fired", func() bool { return messages(t, b, b.names.timers()) == 2 && onlyFired(t, b) })
	// Purging only waits for its interval; purge at once instead.
	l := &subscription{bus: b, stream: b.names.timers(), config: b.consumer(firedConsumer("job", served.Partition()), b.names.firedPartition("job", served.Partition()), 1)}
	c, err := b.js.Consumer(t.Context(), l.stream, l.config.Durable)
	if err != nil {
		t.Fatal(err)
	}
	var floor uint64
	until(t, "it is swept", func() bool {
		l.upkeep(t.Context(), c, &floor, l.purge)
		return messages(t, b, b.names.timers()) == 1
	})
	late := listen(t, b, []int{unserved.Partition()}, nil)
	until(t, "the other one is served", func() bool { return fires(late, "x") == 1 })
}

func onlyFired(t *testing.T, b *Bus) bool {
	s, err := b.js.Stream(t.Context(), b.names.timers())
	if err != nil {
		t.Fatal(err)
	}
	info, err := s.Info(t.Context(), jetstream.WithSubjectFilter("fired.>"))
	if err != nil {
		t.Fatal(err)
	}
	return len(info.State.Subjects) == 2
}
