// Package stage puts one Job and its Pods, in any state, on the simulator's API server and lets jobstream's Job function work on
// them: facts arrive at once, effects never fail, and nothing else changes unless a test changes it.
package stage

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/functions/job"
	"github.com/jobstream/jobstream/internal/sim"
)

// maxTurns is how many turns may follow each other before the test fails: every turn changes something.
const maxTurns = 500

// Stage is that world.
type Stage struct {
	API *sim.API
	// Now is the time, Timer when the Job's one timer fires, zero for never.
	Now, Timer time.Time
	// Effects are all effects carried out, in their order.
	Effects []effect.Effect

	fn    fn.Registered
	key   events.Key
	pods  map[types.UID]events.Pod
	state []byte
	inbox []events.Event
}

// New places the Job, with the UID job-1, and its Pods, among them orphans that were its own or that its selector selects. The
// function has not observed them yet.
func New(now time.Time, j events.Job, pods []events.Pod) *Stage {
	s := &Stage{Now: now, fn: fn.Register(job.New(job.DefaultLimits())), pods: map[types.UID]events.Pod{}}
	s.API = sim.NewAPI(func() time.Time { return s.Now })
	s.API.Emit = s.receive
	stored := s.API.CreateJob(j)
	s.key = sim.Key(stored.UID)
	s.API.UpdateJob(stored.UID, func(x *events.Job) { x.Created, x.Generation = j.Created, j.Generation })
	for _, p := range pods {
		s.API.AddPod(stored.UID, p)
		delete(s.pods, s.find(p.Name).UID)
		s.API.UpdatePod(p.Name, func(x *events.Pod) {
			version := x.Version
			*x = p
			x.Version = version
		})
	}
	s.inbox = nil
	return s
}

func (s *Stage) receive(_ events.Key, e events.Event) {
	s.inbox = append(s.inbox, e)
	s.note(e)
}

// note updates the list of Pods. One that the Job has released is gone from it.
func (s *Stage) note(e events.Event) {
	switch e := e.(type) {
	case events.PodObserved:
		s.pods[e.Pod.UID] = e.Pod
	case events.PodGone:
		delete(s.pods, e.Pod.UID)
	}
}

func (s *Stage) find(name string) events.Pod {
	for _, p := range s.pods {
		if p.Name == name {
			return p
		}
	}
	return events.Pod{}
}

// Job returns the current Job, nil if it is gone.
func (s *Stage) Job() *events.Job { return s.API.List("", s.key.UID).Job }

// Edit changes the Job as a user does.
func (s *Stage) Edit(change func(*events.Job)) { s.API.UpdateJob(s.key.UID, change) }

// Pods returns the existing Pods, by name.
func (s *Stage) Pods() []events.Pod {
	return slices.SortedFunc(maps.Values(s.pods), func(a, b events.Pod) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
}

// Wake makes the function examine the Job.
func (s *Stage) Wake() { s.inbox = append(s.inbox, events.TimerFired{Name: "wake"}) }

// Forget loses the function's state.
func (s *Stage) Forget() { s.state = nil }

// Turns lets the function decide and act until nothing is left to do. It returns an error if that never happens, or if it
// panics.
func (s *Stage) Turns() error {
	for range maxTurns {
		if len(s.inbox) == 0 {
			return nil
		}
		inbox := s.inbox
		s.inbox, s.Now = nil, s.Now.Add(time.Millisecond)
		if err := s.turn(inbox); err != nil {
			return err
		}
	}
	return fmt.Errorf("after %d turns it is not at rest, first %v, last %v", maxTurns, s.Effects[:min(12, len(s.Effects))], s.Effects[max(0, len(s.Effects)-6):])
}

func (s *Stage) turn(inbox []events.Event) error {
	d, err := s.fn.Decide(s.state, inbox, s.Now)
	if err != nil {
		return err
	}
	s.state, s.Timer = d.State, time.Time{}
	for _, e := range d.Effects {
		if t, ok := e.(effect.SetTimer); ok {
			s.Timer = t.At
			continue
		}
		s.Effects = append(s.Effects, e)
		facts, err := s.API.Act(context.Background(), s.key, e)
		if err != nil {
			return err
		}
		for _, f := range facts {
			s.inbox = append(s.inbox, f)
			s.note(f)
		}
	}
	return nil
}

// Advance lets time pass; the timer fires when it is due.
func (s *Stage) Advance(by time.Duration) error {
	end := s.Now.Add(by)
	for fires := 0; !s.Timer.IsZero() && !s.Timer.After(end); fires++ {
		if fires == maxTurns {
			return fmt.Errorf("the timer fires %d times in %v", fires, by)
		}
		if s.Timer.After(s.Now) {
			s.Now = s.Timer
		}
		s.Timer = time.Time{}
		s.Wake()
		if err := s.Turns(); err != nil {
			return err
		}
	}
	if end.After(s.Now) {
		s.Now = end
	}
	return nil
}
