// Package alarm rings when the nominal time of a ScheduledJob has come.
//
//	trigger's watch --Saw, Gone--> [ heap: next nominal time of each ] --look at the clock--> ScheduleDue --> bus
//
// It is a bell and decides nothing: the ScheduledJob function works out which times have come, and what becomes of each,
// from its memory and the clock, whatever rang. So after downtime, or a jump of the clock, one ring for each ScheduledJob is
// enough, and a ring too many does no harm. Any number of alarms may run, without a leader: the rings for one nominal time
// are one message, since its id is made of nothing else.
//
// The wall clock is not to be trusted. It may be set ahead, which a sleeping timer does not notice: so it is looked at every
// few seconds, whatever there is to wait for. It may be set back, and then times come again that have been rung for: they ring
// again, unless the ScheduledJob's status says that they are decided. That is how nothing is lost that was rung for by a
// clock that was wrong.
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
	// lookAtLeast is how often the clock is looked at, at least: how late we are after it was set ahead, or the machine has
	// slept.
	lookAtLeast = 10 * time.Second
	// pause is how long to wait after the bus took nothing: whoever owns it tries all the time.
	pause = time.Second
)

// Sink takes facts to where they wake functions. An error says that the fact may be lost; one with a method Permanent() bool
// that returns true says that it always will be.
type Sink interface {
	Publish(ctx context.Context, f events.Fact) error
}

// Config says how an Alarm works.
type Config struct {
	// Cluster is the name of the cluster in the facts.
	Cluster string
	Sink    Sink
	// Zones finds time zones; nil means time.LoadLocation, which reads one anew each time.
	Zones scheduledjob.Zones
	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
	// Log is where troubles go; nil means nowhere.
	Log *slog.Logger
}

// Alarm rings for the ScheduledJobs that it has been told of. Its methods may be called from any goroutine.
type Alarm struct {
	config  Config
	earlier chan struct{} // there is something to ring for earlier than before

	mu    sync.Mutex
	bells map[types.UID]*bell
	queue queue
	last  time.Time // what the clock showed when it was last looked at
}

// New makes an Alarm. It fails where the configuration cannot work.
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
	return &Alarm{config: c, earlier: make(chan struct{}, 1), bells: map[types.UID]*bell{}}, nil
}

// Reset forgets every ScheduledJob.
func (a *Alarm) Reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bells, a.queue = map[types.UID]*bell{}, nil
}

// Gone forgets the ScheduledJob.
func (a *Alarm) Gone(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.remove(uid)
}

// Saw keeps up with the ScheduledJob, whose observations must come in order.
func (a *Alarm) Saw(j events.ScheduledJob) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if silent(j) {
		a.remove(j.UID)
		return
	}
	b := a.bells[j.UID]
	if b == nil {
		b = &bell{uid: j.UID, namespace: j.Namespace, place: nowhere}
		a.bells[j.UID] = b
	}
	if t := textOf(j); b.text != t {
		times, problem := scheduledjob.Timetable(j, a.config.Zones)
		if problem != nil {
			a.config.Log.Info("a ScheduledJob never rings until it is changed", "namespace", j.Namespace, "name", j.Name, "cause", problem)
		}
		b.text, b.times, b.rung = t, times, 0
	}
	b.decided = decided(j)
	b.setNext(a.now().Unix())
	a.place(b)
	if b.place == 0 {
		select {
		case a.earlier <- struct{}{}:
		default: // it is awake already
		}
	}
}

// Run rings until ctx ends.
func (a *Alarm) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	broken := false
	for {
		rings, wait := a.look()
		earlier := a.earlier
		switch left, err := a.ring(ctx, rings); {
		case ctx.Err() != nil:
			return
		case err != nil:
			if !broken {
				a.config.Log.Warn("cannot ring for ScheduledJobs; trying until it works", "cause", err)
			}
			a.takeBack(left)
			broken, wait, earlier = true, pause, nil
		case broken && len(rings) > 0:
			a.config.Log.Info("can ring for ScheduledJobs again")
			broken = false
		}
		if len(rings) > 0 && !broken {
			continue // it took its time
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

// ring is one bell that rings.
type ring struct {
	bell    *bell
	nominal int64
	before  int64 // the nominal time that it rang for before
}

// look looks at the clock. It returns what rings now, and how long there is nothing to do unless something earlier turns up.
func (a *Alarm) look() (rings []ring, wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	if now.Before(a.last) {
		a.config.Log.Info("the clock was set back", "by", a.last.Sub(now))
		a.windAll(now.Unix())
	}
	a.last = now
	for len(a.queue) > 0 && a.queue[0].next <= now.Unix() {
		b := a.queue[0]
		latest, ok := b.times.Prev(now)
		if !ok {
			latest = time.Unix(b.next, 0) // cannot be: it is at or after its own next time
		}
		rings = append(rings, ring{bell: b, nominal: latest.Unix(), before: b.rung})
		b.rung = latest.Unix()
		b.setNext(now.Unix())
		a.place(b)
	}
	if len(a.queue) == 0 {
		return rings, lookAtLeast
	}
	return rings, min(time.Unix(a.queue[0].next, 0).Sub(now), lookAtLeast)
}

// ring publishes, and returns what is left where the sink took no more.
func (a *Alarm) ring(ctx context.Context, rings []ring) ([]ring, error) {
	for i, r := range rings {
		key := events.Key{Function: scheduledjob.Name, Namespace: r.bell.namespace, UID: r.bell.uid}
		due := events.ScheduleDue{Nominal: time.Unix(r.nominal, 0).UTC()}
		err := a.config.Sink.Publish(ctx, events.Fact{Cluster: a.config.Cluster, Key: key, Event: due})
		var permanent interface{ Permanent() bool }
		if errors.As(err, &permanent) && permanent.Permanent() {
			a.config.Log.Error("a ring can never be published: left out", "key", key.String(), "cause", err)
			continue
		}
		if err != nil {
			return rings[i:], err
		}
	}
	return nil, nil
}

// takeBack makes bells ring again that nobody has heard.
func (a *Alarm) takeBack(rings []ring) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now().Unix()
	for _, r := range rings {
		if b := r.bell; a.bells[b.uid] == b && b.rung == r.nominal {
			b.rung = r.before
			b.setNext(now)
			a.place(b)
		}
	}
}

// windAll winds every bell for a clock that shows now.
func (a *Alarm) windAll(now int64) {
	for _, b := range a.bells {
		b.setNext(now)
		a.place(b)
	}
}

// place puts the bell where it belongs in the queue, or takes it out where it has nothing to ring for.
func (a *Alarm) place(b *bell) {
	switch rings := b.next != never; {
	case rings && b.place == nowhere:
		heap.Push(&a.queue, b)
	case rings:
		heap.Fix(&a.queue, b.place)
	case b.place != nowhere:
		heap.Remove(&a.queue, b.place)
	}
}

func (a *Alarm) remove(uid types.UID) {
	if b := a.bells[uid]; b != nil {
		b.next = never
		a.place(b)
		delete(a.bells, uid)
	}
}

// now is what the wall clock shows; without a monotonic reading, by which two times would be compared as if nobody had set
// the clock.
func (a *Alarm) now() time.Time { return a.config.Now().Round(0) }
