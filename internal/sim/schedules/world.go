package schedules

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
)

// World is a random life of one ScheduledJob: users, a clock that jumps, workers that die between two effects, facts that arrive
// twice, late and in any order, memory and bus that are lost. The same seed gives the same life.
type World struct {
	*API
	// Trace is what happened, for people.
	Trace []string

	random *rand.Rand
	decide fn.Registered
	state  []byte
	old    []events.Event // what may be delivered again
	fired  time.Time
	truth  *Truth
}

// New returns the world of a seed at its beginning.
func New(seed uint64, f fn.Registered) *World {
	r := rand.New(rand.NewPCG(seed, 4))
	w := &World{API: NewAPI(time.Date(2026, 7, 1, 10, 0, r.IntN(60), 0, time.UTC)), random: r, decide: f}
	w.truth = NewTruth(w.API)
	pick := func(s ...string) string { return s[r.IntN(len(s))] }
	j := events.ScheduledJob{
		Namespace: "shop", Name: "nightly",
		Schedule:          w.schedule(),
		ConcurrencyPolicy: v1alpha1.ConcurrencyPolicy(pick("Allow", "Forbid", "Replace", "Queue")),
		CatchUp:           v1alpha1.CatchUpPolicy(pick("Latest", "All", "None")),
		OnScheduleChange:  v1alpha1.ScheduleChangePolicy(pick("CatchUp", "Wait")),
		SuccessfulJobs:    int32(r.IntN(3)), FailedJobs: int32(r.IntN(2)), JitterSeconds: int32(r.IntN(2) * r.IntN(20)),
	}
	if r.IntN(3) == 0 {
		j.StartingDeadlineSeconds = new(int64(r.IntN(300)))
	}
	if r.IntN(4) == 0 { // it takes over from another controller, or begins later
		j.StartAfter = w.Now.Truncate(time.Second).Add(time.Duration(r.IntN(900)-600) * time.Second)
	}
	if j.ConcurrencyPolicy == v1alpha1.QueueConcurrent {
		j.CatchUp, j.QueueLimit = v1alpha1.CatchUpLatest, int32(1+r.IntN(4))
	}
	if r.IntN(4) == 0 {
		j.PauseAfterFailures = int32(1 + r.IntN(3))
	}
	if r.IntN(6) == 0 {
		w.chooseOnce(&j)
	}
	w.leaveOut(&j)
	w.Create(j)
	w.fired = w.Now
	if at := j.RunAt; !at.IsZero() && !at.After(w.Now) {
		w.fired = at.Add(-time.Second)
	}
	if after := j.StartAfter; !after.IsZero() && after.Before(w.Now) {
		w.fired = after
	}
	return w
}

func (w *World) schedule() string {
	return []string{"* * * * *", "*/5 * * * *", everySeven, "*/2 * * * * *", "0 * * * *"}[w.random.IntN(5)]
}

// everySeven is a schedule that stands alone: with no other, and nothing that it leaves out.
const everySeven = "@every 7s"

func (w *World) log(format string, args ...any) {
	w.Trace = append(w.Trace, w.Now.Format(time.TimeOnly)+" "+fmt.Sprintf(format, args...))
}

// Live makes n things happen, then lets everything calm down, and returns the law that was broken.
func (w *World) Live(n int) error {
	for range n {
		w.happen()
		w.turn(true)
		if w.truth.broken != nil || w.Object == nil {
			return w.truth.broken
		}
	}
	return w.calm()
}

// happen makes one thing happen.
func (w *World) happen() {
	running := w.Running()
	if w.random.IntN(20) == 0 {
		w.startByHand()
	}
	if w.random.IntN(20) == 0 {
		w.removeFinished()
	}
	switch n := w.random.IntN(100); {
	case n < 45:
		w.pass(time.Duration(w.random.IntN(90)) * time.Second)
	case n < 50:
		w.pass(time.Duration(w.random.IntN(4000)) * time.Second)
	case n < 70 && len(running) > 0:
		name := running[w.random.IntN(len(running))]
		if w.Jobs[name].Deleting { // its Pods are gone
			w.end(name, "")
		} else {
			w.end(name, []events.RunResult{events.RunComplete, events.RunComplete, events.RunFailed}[w.random.IntN(3)])
		}
	case n < 72 && len(running) > 0:
		if name := running[w.random.IntN(len(running))]; w.Known(name) {
			w.end(name, "")
		}
	case n < 76:
		w.Refuse = []string{"", "", "Forbidden", "Invalid"}[w.random.IntN(4)]
		w.log("refuse %q", w.Refuse)
	case n < 80:
		w.Edit(func(j *events.ScheduledJob) { j.Suspended = !j.Suspended })
		w.log("suspended %v", w.Object.Suspended)
	case n < 82:
		w.Edit(func(*events.ScheduledJob) {}) // another template
		w.log("another template")
	case n >= 96:
		if w.truth.Edited = true; !w.Object.RunAt.IsZero() {
			w.moveOn()
			return
		}
		w.Edit(func(j *events.ScheduledJob) {
			j.Schedule, j.Schedules = w.schedule(), nil
			w.leaveOut(j)
		})
		w.log("schedule %s%q except %q, from %v to %v", w.Object.Schedule, w.Object.Schedules, w.Object.Exclude, w.Object.NotBefore, w.Object.NotAfter)
	case n < 85:
		w.truth.Forgot()
		w.state = nil
		w.log("memory lost")
	case n >= 90:
		w.BusDown = !w.BusDown
		w.log("the events stream is away: %v", w.BusDown)
	case n < 87:
		w.truth.Forgot()
		w.state, w.Facts, w.old = nil, nil, nil
		w.log("bus lost")
		w.Facts = append(w.Facts, w.List("relist"))
	}
}

// removeFinished is a user who deletes a Job that has ended, whether or not a status has counted it.
func (w *World) removeFinished() {
	for _, name := range w.Names() {
		if j := w.Jobs[name]; j.Result != "" && j.Owner == w.Object.UID && w.Known(name) {
			w.log("a user deletes %s", name)
			w.truth.Gone(name)
			w.Remove(name)
			return
		}
	}
}

// end finishes a Job, or deletes it if there is no result.
func (w *World) end(name string, result events.RunResult) {
	w.truth.Ended(name, result)
	if result == "" {
		w.log("%s is gone", name)
		w.Remove(name)
		return
	}
	w.log("%s: %s", name, result)
	w.Finish(name, result)
}

// pass advances time; the alarm fires for the latest time that is due.
func (w *World) pass(d time.Duration) {
	w.Now = w.Now.Add(d)
	if !w.Timer.IsZero() && !w.Timer.After(w.Now) {
		w.Timer = time.Time{}
		w.Facts = append(w.Facts, events.TimerFired{Name: "wake"})
	}
	if last, ok := w.Times().Prev(w.Now); ok && last.After(w.fired) && !w.Object.Paused() {
		w.fired = last
		w.Facts = append(w.Facts, events.ScheduleDue{Nominal: last})
	}
}

// turn is one turn of a worker. A rough one takes some of the facts, in any order, some twice, and dies between two effects.
func (w *World) turn(rough bool) (effects int) {
	w.Now = w.Now.Add(time.Microsecond) // no two inventories are asked for at once
	batch := w.Facts
	w.Facts = nil
	if rough {
		batch = w.disturb(batch)
	}
	w.truth.received(batch)
	w.truth.DecidedAt = w.Now
	d, err := w.decide.Decide(w.state, batch, w.Now)
	if err != nil {
		panic(err)
	}
	w.state = d.State
	if err := w.decide.Valid(w.state); err != nil {
		w.truth.fail("%v", err)
	}
	if rough { // the engine carries them out at the same time
		w.random.Shuffle(len(d.Effects), func(i, k int) { d.Effects[i], d.Effects[k] = d.Effects[k], d.Effects[i] })
	}
	w.truth.decides(d.Effects)
	for _, e := range d.Effects {
		if rough && w.random.IntN(8) == 0 {
			w.log("not done: %v", e)
			continue
		}
		_, timer := e.(effect.SetTimer)
		_, said := e.(effect.Announce)
		if !timer && (!said || !w.BusDown) { // what the bus refuses is announced again in every turn
			effects++
			w.log("%v", e)
		}
		w.truth.Before(e)
		answer := w.Act(e)
		w.truth.After(e)
		if !rough || w.random.IntN(8) > 0 {
			w.Facts = append(w.Facts, answer...)
		}
	}
	return effects
}

func (w *World) disturb(batch []events.Event) []events.Event {
	var now []events.Event
	for _, e := range batch {
		if w.random.IntN(5) == 0 {
			w.Facts = append(w.Facts, e) // later
			continue
		}
		now = append(now, e)
		w.old = append(w.old, e)
	}
	for len(w.old) > 0 && w.random.IntN(3) == 0 {
		now = append(now, w.old[w.random.IntN(len(w.old))])
	}
	w.random.Shuffle(len(now), func(i, k int) { now[i], now[k] = now[k], now[i] })
	return now
}

// resume ends a suspension, and a pause: by any edit.
func (w *World) resume() {
	if w.Object.Stopped() {
		w.Edit(func(j *events.ScheduledJob) { j.Suspended = false })
		w.log("resumed")
	}
}

// calm ends all faults and every Job, and lets the worker come to rest: then status and ledger must be right. A stream of events
// that is away stays away until all is decided, since nothing may wait for it.
func (w *World) calm() error {
	w.Refuse = ""
	w.resume()
	w.log("calm")
	w.pass(time.Minute) // what was refused rests for as long at most
	for round := range 200 {
		w.resume()
		w.Facts = append(w.Facts, w.List(fmt.Sprint("calm", round)), events.TimerFired{Name: "wake"})
		for range 500 {
			if w.turn(false) == 0 && len(w.Facts) == 0 {
				break
			}
			if w.truth.broken != nil || w.Object == nil {
				return w.truth.broken
			}
		}
		running := w.Running()
		rests := w.Timer.Sub(w.Now) // refused effects are repeated within a minute
		switch {
		case len(running) > 0 || !w.truth.Settled():
		case w.BusDown:
			w.BusDown = false
			w.log("the events stream is back, %d verdicts were never announced", len(w.Unannounced))
			w.pass(time.Minute) // refused announcements are repeated within a minute
		case rests <= 0 || rests > 2*time.Minute || round > 50:
			return w.truth.Check()
		}
		for _, name := range running {
			w.end(name, map[bool]events.RunResult{false: events.RunComplete}[w.Jobs[name].Deleting])
		}
		if len(running) == 0 && w.Timer.After(w.Now) { // something rests
			w.pass(w.Timer.Sub(w.Now))
		}
	}
	return fmt.Errorf("never comes to rest")
}
