// Package script plays transcripts of the Job function: the files in functions/job/testdata. A command is an occurrence; the
// output below it is what the function did about it, effect by effect, until nothing was left to do.
package script

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/functions/job"
	"github.com/jobstream/jobstream/internal/sim"
)

// Stage is the world of a script: the simulator's API server, one worker that never fails, and facts that arrive at once.
type Stage struct {
	fn    fn.Registered
	api   *sim.API
	now   time.Time
	uid   types.UID
	state []byte
	inbox []events.Event
	facts []events.Event // all facts ever delivered, for repeats
	timer time.Time
	quota bool
	// refused is what a webhook refuses: an effect's kind, and the name of the Pod.
	refused map[string]bool
	blind   bool // the trigger sees nothing
	crash   bool // the next worker dies before it has done anything
	lost    bool // the next worker that creates a Pod dies at once, and no watch sees the Pod
	deaf    bool // the bus confirms no announcement
	tight   bool // the bus takes no state that has taken inventory
	// reports are the Kubernetes Events of the stored statuses.
	reports []string
	out     strings.Builder

	// Written, if not nil, receives every status write.
	Written func(before, after events.Job)
	// Seen, if not nil, receives every fact that a trigger would have published, and when.
	Seen func(at time.Time, e events.Event)
}

// New returns an empty world.
func New() *Stage {
	s := &Stage{fn: fn.Register(job.New(limits())), refused: map[string]bool{}, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	s.api = sim.NewAPI(func() time.Time { return s.now })
	s.api.Emit = func(_ events.Key, e events.Event) {
		if s.facts = append(s.facts, e); !s.blind {
			s.inbox = append(s.inbox, e)
		}
		if s.Seen != nil && !s.blind {
			s.Seen(s.now, e)
		}
	}
	s.api.Wrote = func(before, after events.Job) {
		if s.Written != nil {
			s.Written(before, after)
		}
	}
	s.api.Refuse = func(effect.CreatePod) (string, string) {
		if s.quota {
			return "Forbidden", "exceeded quota: compute"
		}
		return "", ""
	}
	return s
}

// Play carries out one command and returns its output.
func (s *Stage) Play(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	s.out.Reset()
	switch d.Cmd {
	case "job":
		j := events.Job{Name: "pi", Parallelism: 1, BackoffLimit: 6, Completions: new(int32(1)), Generation: 1}
		edit(t, d, &j)
		s.uid = s.api.CreateJob(j).UID
	case "edit": // a user changes the spec
		s.api.UpdateJob(s.uid, func(j *events.Job) { edit(t, d, j); j.Generation++ })
	case "pod":
		for _, change := range d.CmdArgs[1:] {
			s.pod(t, d, d.CmdArgs[0].Key, change.Key)
		}
	case "touch": // a user writes the Job without changing anything
		s.api.UpdateJob(s.uid, func(*events.Job) {})
	case "fail-target": // another controller declares the Job failed
		s.api.UpdateJob(s.uid, declareFailed)
	case "declare-suspended": // another controller writes the status of a suspended Job
		s.api.UpdateJob(s.uid, declareSuspended)
	case "stranger": // "stranger NAME app=batch [ended] [owned] [held] [serial=1]": a Pod that the reconciler has not created
		s.api.AddPod(foreignPod(t, s.uid, d))
	case "values": // "values NAME count=3 [mutable]": a ConfigMap of per-completion values
		s.api.SetValues(values(t, d))
	case "announce-pods": // the end of each Pod is announced, too
		l := limits()
		l.AnnouncePods = true
		s.fn = fn.Register(job.New(l))
	case "announcements": // "announcements unconfirmed": the bus confirms none, until "announcements confirmed"
		if s.deaf = d.CmdArgs[0].Key == "unconfirmed"; !s.deaf {
			s.inbox = append(s.inbox, events.TimerFired{Name: "announce"})
		}
	case "add-condition": // another controller adds a condition
		s.api.UpdateJob(s.uid, func(j *events.Job) { addCondition(j, d.CmdArgs[0].Key) })
	case "delete-job":
		s.api.DeleteJob(s.uid)
	case "quota":
		s.quota = d.CmdArgs[0].Key == "on"
	case "refuse": // "refuse RemoveFinalizer NAME on": a webhook refuses that, until "off"
		s.refused[d.CmdArgs[0].Key+" "+d.CmdArgs[1].Key] = d.CmdArgs[2].Key == "on"
	case "advance":
		by, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		s.advance(by)
		return s.result()
	case "forget": // the memory is lost, then a timer fires; with "quietly" nothing follows
		s.state = nil
		if len(d.CmdArgs) == 0 {
			s.inbox = append(s.inbox, events.TimerFired{Name: "wake"})
		}
	case "repeat": // every fact so far is delivered again, oldest first
		s.inbox = append(s.inbox, s.facts...)
	case "deliver": // "deliver NAME": the Pod's current state arrives though the watch is off
		s.deliver(d.CmdArgs[0].Key)
	case "unread": // a fact arrives that only a newer reconciler can decode
		s.inbox = append(s.inbox, events.TimerFired{Name: events.Unread, At: s.now})
	case "crash": // the next worker dies between its commit and its first effect
		s.crash = true
		return s.result()
	case "crowd": // "crowd on": earlier Jobs with selectors of their own are too many, until "crowd off"
		s.api.Crowded = d.CmdArgs[0].Key == "on"
		return s.result()
	case "lingering": // the template has a finalizer of the user's own, which keeps deleted Pods
		s.api.Lingering = true
	case "too-large": // "too-large on": the bus takes neither the state nor what an inventory brings, until "too-large off"
		s.tighten(d.CmdArgs[0].Key == "on")
	case "unanswered": // the next worker that creates a Pod dies before the answer arrives, and the watch is off from then on
		s.lost = true
		return s.result()
	case "redelivery": // the facts of the dead worker are delivered again; its decision is committed, so they only cause a turn
		s.inbox = append(s.inbox, events.TimerFired{Name: "wake"})
	case "late": // "late NAME [PHASE]": the first observation of a Pod, or of the Pod in that phase, is delivered again
		s.inbox = append(s.inbox, s.firstObservation(t, d))
	case "watch": // "watch off": no change is seen until "watch on" relists
		if s.blind = d.CmdArgs[0].Key == "off"; !s.blind {
			s.inbox = append(s.inbox, s.api.List("relist", s.uid))
		}
	case "relist":
		s.inbox = append(s.inbox, s.relist(t, d)...)
	case "status":
		return s.status()
	case "conditions": // the Job's conditions with their messages
		return s.conditions()
	case "reports": // the Kubernetes Events since the last "reports"
		out := strings.Join(s.reports, "\n") + "\n"
		s.reports = nil
		return out
	default:
		d.Fatalf(t, "unknown command %q", d.Cmd)
	}
	s.turns()
	return s.result()
}

// deliver makes the newest observation of the Pod a fact.
func (s *Stage) deliver(pod string) {
	for _, p := range s.api.List("", s.uid).Pods {
		if p.Name == pod {
			s.inbox = append(s.inbox, events.PodObserved{Pod: p})
		}
	}
}

func (s *Stage) firstObservation(t *testing.T, d *datadriven.TestData) events.Event {
	t.Helper()
	for _, e := range s.facts {
		p, ok := e.(events.PodObserved)
		if ok && p.Pod.Name == d.CmdArgs[0].Key && (len(d.CmdArgs) == 1 || string(p.Pod.Phase) == d.CmdArgs[1].Key) {
			return e
		}
	}
	d.Fatalf(t, "no such Pod has been observed: %v", d.CmdArgs)
	return nil
}

// mostRounds exceeds what any behaviour takes.
const mostRounds = 1000

// turns decides and acts until nothing is left to do.
func (s *Stage) turns() {
	for rounds := 0; len(s.inbox) > 0; rounds++ {
		if rounds == mostRounds {
			panic("the function never comes to rest:\n" + s.out.String())
		}
		inbox := s.inbox
		s.inbox = nil
		if s.tight && slices.ContainsFunc(inbox, func(e events.Event) bool { return e.Type() == events.TypeJobListed }) {
			inbox = append(inbox, s.tooLarge())
		}
		d, err := s.fn.Decide(s.state, inbox, s.now)
		if err != nil {
			panic(err)
		}
		s.state, s.timer = d.State, time.Time{}
		if s.crash {
			s.crash = false
			fmt.Fprintf(&s.out, "lost: %v\n", d.Effects)
			continue
		}
		for _, e := range d.Effects {
			fmt.Fprintln(&s.out, e)
			switch e := e.(type) {
			case effect.SetTimer:
				s.timer = e.At
				continue
			case effect.WriteJobStatus:
				for _, r := range e.Reports {
					s.reports = append(s.reports, r.Reason+": "+r.Message)
				}
			case effect.Announce:
				if s.deaf {
					continue
				}
			}
			facts := s.act(e)
			if _, makes := e.(effect.CreatePod); makes && s.lost {
				s.lost, s.blind, s.inbox = false, true, nil
				return
			}
			s.inbox = append(s.inbox, facts...)
		}
	}
}

// act carries out an effect, unless a webhook refuses it.
func (s *Stage) act(e effect.Effect) []events.Event {
	if name := effect.Subject(e); s.refused[e.Kind()+" "+name] {
		return []events.Event{events.EffectRefused{Effect: e.Kind(), Serial: events.NoSerial, Name: name, Reason: "Forbidden",
			Message: "a webhook denied the request", At: s.now}}
	}
	facts, err := s.api.Act(context.Background(), sim.Key(s.uid), e)
	if err != nil {
		panic(err)
	}
	return facts
}

// relist reads "relist [of=2 parts=(1,0)]": a snapshot, or these parts, in this order, of one with so many Pods in each.
func (s *Stage) relist(t *testing.T, d *datadriven.TestData) (facts []events.Event) {
	t.Helper()
	share, wanted := events.Share{}, []string{"0"}
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "of":
			share.Pods = atoi(t, d, a.Vals[0])
		case "parts":
			wanted = a.Vals
		}
	}
	parts := s.api.List("relist", s.uid).Split(share)
	for _, n := range wanted {
		facts = append(facts, parts[atoi(t, d, n)])
	}
	return facts
}

func (s *Stage) tighten(on bool) {
	if s.tight = on; on {
		s.inbox = append(s.inbox, s.tooLarge())
	}
}

// tooLarge returns the engine's answer when the bus does not take the state.
func (s *Stage) tooLarge() events.Event {
	return events.EffectRefused{Effect: effect.SaveState, Reason: effect.StateTooLarge, Message: "raise max_payload of the NATS server", At: s.now}
}

// advance advances time; the timer fires when it is due.
func (s *Stage) advance(by time.Duration) {
	end := s.now.Add(by)
	for !s.timer.IsZero() && !s.timer.After(end) {
		s.now, s.timer = s.timer, time.Time{}
		fmt.Fprintf(&s.out, "%s the timer fires\n", s.now.Format(time.TimeOnly))
		s.inbox = append(s.inbox, events.TimerFired{Name: "wake"})
		s.turns()
	}
	s.now = end
}

func (s *Stage) result() string {
	if s.out.Len() == 0 {
		return "(nothing)\n"
	}
	return s.out.String()
}
