package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/engine"
)

// moment is the start or the end of a Job as the API server stored it, and whether subscribers have received it.
type moment struct {
	job      types.UID
	event    events.Public
	received bool
	// unsure reports whether the Job itself may be the only source left: the memory was lost before the bus had confirmed the
	// announcement, the trigger had a gap when it happened, or the fact could not be decoded.
	unsure bool
}

// happened records what a new version of a Job shows.
func (t *truth) happened(e events.Event) {
	seen, ok := e.(events.JobObserved)
	if !ok {
		return
	}
	t.sized(seen.Job)
	if start, ok := seen.Job.Started(); ok {
		t.moment(seen.Job, start)
	}
	if end, ok := seen.Job.Ended(); ok {
		t.moment(seen.Job, end)
	}
}

func (t *truth) moment(j events.Job, p events.Public) {
	if id := events.PublicID(p); t.told[id] == nil {
		t.told[id] = &moment{job: j.UID, event: p, unsure: t.w.gap}
	}
}

func (t *truth) forgetMoments() {
	for _, m := range t.told {
		m.unsure = m.unsure || !m.received
	}
	for _, m := range t.ends {
		m.unsure = m.unsure || !m.received
	}
}

// unread records that an observation of the Job could not be decoded: until the inventory, only the Job itself shows what it
// showed.
func (t *truth) unread(e events.Event) {
	seen, ok := e.(events.JobObserved)
	for _, m := range t.told {
		m.unsure = m.unsure || ok && m.job == seen.Job.UID && !m.received
	}
}

// announced compares what subscribers receive with what has happened. Subscribers read at once, so what they have received
// survives the loss of the bus.
func (t *truth) announced(p events.Public) {
	if end, ok := p.(events.PodFinished); ok {
		t.podAnnounced(end)
		return
	}
	m := t.told[events.PublicID(p)]
	if m == nil {
		t.fail("%v is announced, which was never true", p)
		return
	}
	end, ok := p.(events.JobFinished)
	if m.received = true; !ok {
		return
	}
	if !reflect.DeepEqual(p, m.event) {
		t.fail("%+v is announced, and the cluster says %+v", p, m.event)
	}
	for id, other := range t.told {
		start, ok := other.event.(events.JobStarted)
		if ok && other.job == m.job && start.Start.Equal(end.Start) && !other.received && !other.unsure {
			t.fail("%v is announced before %s", p, id)
		}
	}
}

// unannounced returns an error for what should have been announced by the end and was not. What only the Job itself still shows
// must be announced while the Job shows it, for an hour.
func (t *truth) unannounced() error {
	for _, id := range slices.Sorted(maps.Keys(t.told)) {
		m := t.told[id]
		if !m.received && (!m.unsure || t.shows(m)) {
			return fmt.Errorf("%v of %s is never announced", m.event, m.job)
		}
	}
	return nil
}

// slack is how long it may take from the loss of a memory to the next turn of the Job.
const slack = 10 * time.Minute

// shows reports whether the Job still shows it, and has not done so for too long.
func (t *truth) shows(m *moment) bool {
	j := t.w.api.jobs[m.job]
	if j == nil {
		return false
	}
	var at time.Time
	switch e := m.event.(type) {
	case events.JobStarted:
		at = e.Start
		if now, ok := j.Started(); !ok || !now.Start.Equal(at) {
			return false
		}
	case events.JobFinished:
		at = e.End
	}
	return t.w.now.Sub(at) < events.ReannounceWindow-slack
}

// announce publishes to subscribers. Now and then the bus does not confirm it, though it may have stored the event.
func (w *World) announce(ctx context.Context, k *worker, e effect.Announce) engine.Answer {
	broken, before := w.odds(10*w.rates.Fail), w.rand.IntN(2) == 0
	t := w.of(k.turn.Key)
	if broken && before {
		t.trace("%s %v: the bus does not confirm it", k, e)
		return engine.Answer{Facts: []events.Event{effect.Unconfirmed(errors.New("no responders"), k.of.clock())}}
	}
	t.trace("%s %v", k, e)
	facts, err := t.call(ctx, k, e, false)
	if broken {
		t.trace("%s gets no answer", k)
		return engine.Answer{Facts: []events.Event{effect.Unconfirmed(errors.New("timeout"), k.of.clock())}}
	}
	return engine.Answer{Facts: facts, Err: err}
}
