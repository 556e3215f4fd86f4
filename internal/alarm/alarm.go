// Package alarm notifies the ScheduledJob function that a nominal time has come.
//
//	trigger's watch --Saw, Gone--> [ heap: next nominal time of each ] --look at the clock--> ScheduleDue --> bus
//
// A due notice, ScheduleDue, decides nothing: the ScheduledJob function works out which times have come, and what becomes of
// each, from its state and the clock, whatever woke it. So after downtime, or a jump of the clock, one notice for each
// ScheduledJob is enough, and a superfluous one does no harm. Any number of triggers may run an Alarm, without a leader: their
// notices of one nominal time are one message, because its id is made of nothing else.
//
// The wall clock is unreliable. An operator may set it ahead, which a sleeping timer does not notice: so the Alarm looks
// at it every few seconds, whatever it waits for. It may be set back, and then times come again that were notified before: the
// Alarm notifies them again, unless the ScheduledJob's status shows that they are decided. So nothing is lost that was notified by
// a clock that was wrong.
package alarm

import (
	"container/heap"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/scheduledjob"
)

const (
	// lookAtLeast is the longest time between two looks at the clock: how late a notice may be after the clock was set ahead, or
	// after the machine has slept.
	lookAtLeast = 10 * time.Second
	// pause is how long to wait after the bus has refused a notice. The connection itself retries all the time.
	pause = time.Second
)

// Sink publishes facts. After an error the fact may be lost. If the error has a method Permanent() bool that returns true, a
// retry would fail in the same way.
type Sink interface {
	Publish(ctx context.Context, f events.Fact) error
}

// Config configures an Alarm.
type Config struct {
	// Cluster is the name of the cluster in the facts.
	Cluster string
	Sink    Sink
	// Zones loads time zones; nil means time.LoadLocation, which reads the file each time.
	Zones scheduledjob.Zones
	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
	// Log receives errors; nil discards them.
	Log *slog.Logger
}

// Alarm publishes due notices for the ScheduledJobs that Saw has recorded. Its methods may be called from any goroutine.
type Alarm struct {
	config  Config
	earlier chan struct{} // the next notice is earlier than before

	mu      sync.Mutex
	entries map[types.UID]*entry
	queue   queue
	last    time.Time // the latest reading of the clock
}

// New returns an Alarm, or an error if the configuration lacks a Sink or a Cluster.
func New(c Config) (*Alarm, error) {
	switch {
	case c.Sink == nil:
		return nil, errors.New("alarm: no sink: set Config.Sink")
	case c.Cluster == "":
		return nil, errors.New("alarm: the cluster has no name: set Config.Cluster")
	}
	if c.Zones == nil {
		c.Zones = time.LoadLocation
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Alarm{config: c, earlier: make(chan struct{}, 1), entries: map[types.UID]*entry{}}, nil
}

// Reset forgets every ScheduledJob.
func (a *Alarm) Reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.entries, a.queue = map[types.UID]*entry{}, nil
}

// Gone forgets the ScheduledJob.
func (a *Alarm) Gone(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.remove(uid)
}

// Saw records an observation of the ScheduledJob. Observations of one ScheduledJob must come in order.
func (a *Alarm) Saw(j events.ScheduledJob) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if silent(j) {
		a.remove(j.UID)
		return
	}
	b := a.entries[j.UID]
	if b == nil {
		b = &entry{uid: j.UID, namespace: j.Namespace, place: nowhere}
		a.entries[j.UID] = b
	}
	if t := textOf(j); b.text != t {
		times, problem := scheduledjob.Timetable(j, a.config.Zones)
		if problem != nil {
			a.config.Log.Info("a ScheduledJob is never due until it is changed", "namespace", j.Namespace, "name", j.Name, "cause", problem)
		}
		b.text, b.times, b.notified = t, times, 0
	}
	b.decided = decided(j)
	b.setNext(a.now().Unix())
	a.place(b)
	if b.place == 0 {
		select {
		case a.earlier <- struct{}{}:
		default: // a wake-up is pending already
		}
	}
}

// Run publishes due notices until ctx ends.
func (a *Alarm) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	broken := false
	for {
		due, wait := a.look()
		earlier := a.earlier
		switch left, err := a.publish(ctx, due); {
		case ctx.Err() != nil:
			return
		case err != nil:
			if !broken {
				a.config.Log.Warn("due notices of ScheduledJobs cannot be published; trying until it works", "cause", err)
			}
			a.takeBack(left)
			broken, wait, earlier = true, pause, nil
		case broken && len(due) > 0:
			a.config.Log.Info("due notices of ScheduledJobs are published again")
			broken = false
		}
		if len(due) > 0 && !broken {
			continue // publishing took time
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-earlier:
		}
	}
}

// notice is one due notice.
type notice struct {
	entry   *entry
	nominal int64
	before  int64 // the nominal time that was notified before
}

// look looks at the clock. It returns the notices that are due, and for how long there is nothing to do unless an earlier time turns up.
func (a *Alarm) look() (due []notice, wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	if now.Before(a.last) {
		a.config.Log.Info("the clock was set back", "by", a.last.Sub(now))
		a.setAll(now.Unix())
	}
	a.last = now
	for len(a.queue) > 0 && a.queue[0].next <= now.Unix() {
		b := a.queue[0]
		latest, ok := b.times.Prev(now)
		if !ok {
			latest = time.Unix(b.next, 0) // cannot happen: now is at or after its own next time
		}
		due = append(due, notice{entry: b, nominal: latest.Unix(), before: b.notified})
		b.notified = latest.Unix()
		b.setNext(now.Unix())
		a.place(b)
	}
	if len(a.queue) == 0 {
		return due, lookAtLeast
	}
	return due, min(time.Unix(a.queue[0].next, 0).Sub(now), lookAtLeast)
}

// publish publishes the notices, and returns those that are left when the sink fails.
func (a *Alarm) publish(ctx context.Context, due []notice) ([]notice, error) {
	for i, r := range due {
		key := events.Key{Function: scheduledjob.Name, Namespace: r.entry.namespace, UID: r.entry.uid}
		event := events.ScheduleDue{Nominal: time.Unix(r.nominal, 0).UTC()}
		err := a.config.Sink.Publish(ctx, events.Fact{Cluster: a.config.Cluster, Key: key, Event: event})
		if events.Permanent(err) {
			a.config.Log.Error("a due notice can never be published: left out", "key", key.String(), "cause", err)
			continue
		}
		if err != nil {
			return due[i:], err
		}
	}
	return nil, nil
}

// takeBack makes notices due again that could not be published.
func (a *Alarm) takeBack(due []notice) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now().Unix()
	for _, r := range due {
		if b := r.entry; a.entries[b.uid] == b && b.notified == r.nominal {
			b.notified = r.before
			b.setNext(now)
			a.place(b)
		}
	}
}

// setAll recomputes the next notice of every entry for the time now.
func (a *Alarm) setAll(now int64) {
	for _, b := range a.entries {
		b.setNext(now)
		a.place(b)
	}
}

// place moves the entry to its place in the queue, or removes it if it has no next notice.
func (a *Alarm) place(b *entry) {
	switch waits := b.next != never; {
	case waits && b.place == nowhere:
		heap.Push(&a.queue, b)
	case waits:
		heap.Fix(&a.queue, b.place)
	case b.place != nowhere:
		heap.Remove(&a.queue, b.place)
	}
}

func (a *Alarm) remove(uid types.UID) {
	if b := a.entries[uid]; b != nil {
		b.next = never
		a.place(b)
		delete(a.entries, uid)
	}
}

// now returns the wall clock without its monotonic reading, which would hide that the clock was set.
func (a *Alarm) now() time.Time { return a.config.Now().Round(0) }
