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

// moment is a start or the end of a Job as it stood in the API server, and what a subscriber has heard of it.
type moment struct {
	job   types.UID
	event events.Public
	heard bool
	// unsure says that nobody may know of it but the Job itself: the memory was lost before anybody had confirmed it, or the
	// trigger was away when it happened, or what it told could not be read.
	unsure bool
}

// happened notes what a new version of a Job shows.
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
		m.unsure = m.unsure || !m.heard
	}
	for _, m := range t.ends {
		m.unsure = m.unsure || !m.heard
	}
}

// unread notes that an observation of the Job could not be read: until the inventory, only the Job itself says what it showed.
func (t *truth) unread(e events.Event) {
	seen, ok := e.(events.JobObserved)
	for _, m := range t.told {
		m.unsure = m.unsure || ok && m.job == seen.Job.UID && !m.heard
	}
}

// announced holds what a subscriber hears against what has happened. It reads at once, so that what it has heard survives
// the loss of the bus.
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
	if m.heard = true; !ok {
		return
	}
	if !reflect.DeepEqual(p, m.event) {
		t.fail("%+v is announced, and the cluster says %+v", p, m.event)
	}
	for id, other := range t.told {
		start, ok := other.event.(events.JobStarted)
		if ok && other.job == m.job && start.Start.Equal(end.Start) && !other.heard && !other.unsure {
			t.fail("%v is announced before %s", p, id)
		}
	}
}

// unannounced is what should have been told by the end and was not. What nobody may know of but the Job has to be told as
// long as the Job says so, for an hour.
func (t *truth) unannounced() error {
	for _, id := range slices.Sorted(maps.Keys(t.told)) {
		m := t.told[id]
		if !m.heard && (!m.unsure || t.shows(m)) {
			return fmt.Errorf("%v of %s is never announced", m.event, m.job)
		}
	}
	return nil
}

// slack is how long it may take from the loss of a memory to the first look at the Job.
const slack = 10 * time.Minute

// shows says that the Job still says so, and not for too long.
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

// announce tells subscribers; now and then the bus does not confirm it, though it may hold the event.
func (w *World) announce(ctx context.Context, k *worker, e effect.Announce) engine.Answer {
	broken, before := w.odds(10*w.rates.Fail), w.rand.IntN(2) == 0
	t := w.of(k.turn.Key)
	if broken && before {
		t.trace("%s %v: nobody confirms it", k, e)
		return engine.Answer{Facts: []events.Event{effect.Unconfirmed(errors.New("no responders"), k.of.clock())}}
	}
	t.trace("%s %v", k, e)
	facts, err := t.call(ctx, k, e, false)
	if broken {
		t.trace("%s hears nothing of it", k)
		return engine.Answer{Facts: []events.Event{effect.Unconfirmed(errors.New("timeout"), k.of.clock())}}
	}
	return engine.Answer{Facts: facts, Err: err}
}
