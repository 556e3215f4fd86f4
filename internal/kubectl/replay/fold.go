package replay

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/catalog"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/internal/zone"
)

const (
	// roundsMost is how often a turn decides on its own answers: far more than any function needs to come to rest.
	roundsMost = 100
	// A decision reads and writes the whole state, 5 ms of work for each 1,000 Pods in it. So the more Pods a Job has, the fewer batches
	// its facts are folded in: batchesMost of them, less work/Pods, and never less than batchesLeast.
	batchesMost, batchesLeast, work = 5000, 200, 1_000_000
	// showWithin is how long a decision waits for facts that show its effects: a turn takes at most a second, and a watch is a little
	// behind.
	showWithin = 2 * time.Second
	// timersMost is how many timers may fire in a row without a fact between them: then the rest of the time is left out. A Job that
	// waits for a quota is planned once a minute, for days.
	timersMost = 200
)

// Transcript is the result of folding a record.
type Transcript struct {
	Record Record
	// FunctionVersion is the version of the function that has decided.
	FunctionVersion int
	// Whole reports whether the facts begin with the creation of the object. Otherwise the first turn takes an inventory of what
	// later facts show.
	Whole bool
	// PerTurn is how many facts were folded at a time.
	PerTurn int
	// Unread is how many facts this program cannot read.
	Unread int
	// Cut is when the transcript was cut because timers alone went on; zero if it was not.
	Cut time.Time
	// Strayed is when a fact was stored that shows a status to which no decision here led, although no fact is missing and each was
	// folded alone; zero if there is none. From then on the decisions may differ from those of the reconciler.
	Strayed time.Time
	Turns   []Turn
	// State is the last state, Timer when it wakes next; zero if it does not.
	State []byte
	Timer time.Time
}

// Turn is one decision, and those that followed from its answers.
type Turn struct {
	// At is when the facts were stored, or the timer fired.
	At time.Time
	// Timer reports whether the timer caused the turn; else Facts did.
	Timer bool
	// Facts are the types of the facts, Words what they show, in the words of scripts; a fact that had answered an effect before has
	// none.
	Facts []events.Type
	Words []string
	Steps []Step
	// Failed is why the function could not decide; "" if it could.
	Failed string
}

// Step is an effect that the function decided on.
type Step struct {
	Effect effect.Effect
	// Unanswered reports whether no fact shows its result.
	Unanswered bool
	// Repeated reports whether it was decided on again though a fact had shown its result.
	Repeated bool
	// Set reports whether it sets the timer for the time for which it is set already, or is as undone as in the last decision.
	Set bool
}

// Fold folds the facts of the record. The error means that the record is about a function that this program does not have.
func Fold(r Record) (Transcript, error) {
	i := slices.IndexFunc(catalog.Names(), func(n catalog.Name) bool { return string(n) == r.Function })
	if i < 0 {
		return Transcript{}, fmt.Errorf("there is no function %q: use the plugin of the reconciler's release", r.Function)
	}
	f := folder{fn: catalog.All(r.Flags.limits(), zone.Load)[i], t: Transcript{Record: r, PerTurn: 1}, words: newWords()}
	f.t.FunctionVersion = f.fn.Version
	f.world = newWorld(r)
	f.t.Whole, f.t.Unread = f.world.whole, f.world.unread
	all := f.world.facts
	batches := min(max(work/(len(f.world.pods)+1), batchesLeast), batchesMost)
	f.t.PerTurn = max(1, (len(all)+batches-1)/batches)
	for batch := range slices.Chunk(all, f.t.PerTurn) {
		f.fire(batch[len(batch)-1].Stored)
		f.fold(batch)
	}
	f.fire(r.Collected)
	if len(f.inbox) > 0 {
		f.try(f.last, true)
	}
	f.close()
	f.t.State, f.t.Timer = f.state, f.timer
	return f.t, nil
}

type folder struct {
	fn    fn.Registered
	world *world
	words *words
	state []byte
	timer time.Time // when it fires; zero if the last decision has not set it
	set   time.Time // for when it was set last
	// inbox are facts and answers about which nothing is decided yet, since which time, and last the time of the last of them.
	inbox       []events.Event
	since, last time.Time
	turn        Turn
	undone      map[string]bool // effects of the last decision that no fact shows
	t           Transcript
}

// fire fires the timers that were due by then, and takes the decisions that have waited long enough for facts that show their effects.
func (f *folder) fire(until time.Time) {
	for n := 0; ; n++ {
		switch due := !f.timer.IsZero() && !f.timer.After(until); {
		case len(f.inbox) > 0 && !f.since.Add(showWithin).After(until) && (!due || !f.since.Add(showWithin).After(f.timer)):
			f.try(f.last, true)
		case !due:
			return
		case n == timersMost:
			f.t.Cut = f.timer
			f.timer = time.Time{}
			return
		default:
			at := f.timer
			f.timer = time.Time{}
			f.offer(Turn{At: at, Timer: true}, []events.Event{events.TimerFired{Name: "wake", At: at}})
		}
	}
}

// fold folds facts that were stored about the same time.
func (f *folder) fold(batch []fact) {
	turn := Turn{At: batch[len(batch)-1].Stored}
	var inbox []events.Event
	for _, x := range batch {
		f.world.position++
		switch unknown := (events.UnknownFact{}); {
		case errors.As(x.err, &unknown): // as the bus does: it wakes the key, which takes inventory
			turn.Facts = append(turn.Facts, events.TypeTimerFired)
			turn.Words = append(turn.Words, "unread "+unknown.Type)
			inbox = append(inbox, events.TimerFired{Name: events.Unread, At: x.Stored})
		case x.err != nil:
			turn.Words = append(turn.Words, "quarantine "+x.err.Error())
		default:
			if f.t.Strayed.IsZero() && f.t.Whole && f.t.PerTurn == 1 && f.world.strays(x) {
				f.t.Strayed = x.Stored
			}
			f.world.knows(x.event)
			turn.Facts = append(turn.Facts, x.event.Type())
			if word := f.words.of(x.event, f.world.told[x.place]); word != "" {
				turn.Words = append(turn.Words, word)
			}
			if f.world.told[x.place] { // the function knows it, and is woken
				inbox = append(inbox, events.TimerFired{Name: "wake", At: x.Stored})
				continue
			}
			inbox = append(inbox, x.event)
		}
	}
	f.offer(turn, inbox)
}

// offer adds facts to those about which nothing is decided yet, and tries to decide.
func (f *folder) offer(turn Turn, inbox []events.Event) {
	if len(f.turn.Steps) > 0 || f.turn.Timer {
		f.close()
	}
	turn.Facts, turn.Words = slices.Concat(f.turn.Facts, turn.Facts), slices.Concat(f.turn.Words, turn.Words)
	f.turn = turn
	if len(f.inbox) == 0 {
		f.since = turn.At
	}
	f.inbox, f.last = append(f.inbox, inbox...), turn.At
	f.try(turn.At, false)
}

func (f *folder) close() {
	if len(f.turn.Facts)+len(f.turn.Words)+len(f.turn.Steps) > 0 || f.turn.Timer {
		f.t.Turns = append(f.t.Turns, f.turn)
	}
	f.turn = Turn{}
}

// try decides, again and again on the answers, until none are left. The reconciler folds in one turn what has arrived meanwhile, and that is
// not stored: a decision whose effects no fact shows was not taken like this, but together with the facts that follow. So it waits
// for these, unless it is forced.
func (f *folder) try(at time.Time, force bool) {
	var before []effect.Effect
	for round := 0; len(f.inbox) > 0 && round < roundsMost; round++ {
		d, err := f.decide(f.inbox, at)
		if err != nil {
			f.state, f.inbox, f.turn.Failed = nil, nil, err.Error()
			break
		}
		answers, done := f.world.answers(d.Effects, at)
		if !done && !force {
			return
		}
		again := round > 0 && reflect.DeepEqual(before, d.Effects)
		f.accept(d, answers, again)
		if before = d.Effects; again {
			f.inbox = nil // in vain: no fact shows what the API server answered in truth
		}
		f.since, f.last = at, at
	}
	f.close()
}

// accept takes a decision: its state, its effects, and what they were answered.
func (f *folder) accept(d fn.Decision, answers []answer, again bool) {
	f.state, f.timer, f.inbox = d.State, time.Time{}, nil
	undone := map[string]bool{}
	for i, e := range d.Effects {
		if timer, is := e.(effect.SetTimer); is {
			f.turn.Steps = append(f.turn.Steps, Step{Effect: e, Set: timer.At.Equal(f.set)})
			f.timer, f.set = timer.At, timer.At
			continue
		}
		a := answers[i]
		if a.none() {
			undone[e.String()] = true
		}
		f.turn.Steps = append(f.turn.Steps, Step{Effect: e, Unanswered: a.none(), Set: a.none() && f.undone[e.String()], Repeated: again && !a.none()})
		f.inbox = append(f.inbox, f.world.take(a)...)
	}
	f.undone = undone
}

// decide decides once. An error means that the state cannot be used: then it is forgotten, as the engine does.
func (f *folder) decide(inbox []events.Event, now time.Time) (d fn.Decision, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the function panicked: %v", p)
		}
	}()
	return f.fn.Decide(f.state, inbox, now)
}

// Next returns what the function decides now from the stored state, without any fact: what the reconciler waits for. ok is false if
// there is no stored state. The error explains why it cannot be used, such as another version of the function.
func Next(r Record) (effects []effect.Effect, ok bool, err error) {
	i := slices.IndexFunc(catalog.Names(), func(n catalog.Name) bool { return string(n) == r.Function })
	if r.State == nil || i < 0 {
		return nil, false, nil
	}
	f := folder{fn: catalog.All(r.Flags.limits(), zone.Load)[i], state: r.State.Data}
	version, err := fn.VersionOf(r.State.Data)
	switch {
	case err != nil:
		return nil, true, err
	case version != f.fn.Version:
		return nil, true, fmt.Errorf("version %d of the function has written it, and this plugin has version %d: use the plugin of the reconciler's release", version, f.fn.Version)
	}
	d, err := f.decide(nil, r.Collected)
	return d.Effects, true, err
}
