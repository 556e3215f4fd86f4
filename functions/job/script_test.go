package job_test

import (
	"context"
	"fmt"
	"strconv"
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

// TestScripts runs the transcripts in testdata: one behaviour each. A command is something that happens; below the line
// stands what the function has done about it, effect by effect, until nothing was left to do. Rewrite them with
//
//	go test ./functions/job -run TestScripts -rewrite
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := newStage()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return s.play(t, d)
		})
	})
}

// stage is a script's world: the simulator's API server, one worker that never fails, and facts that arrive at once.
type stage struct {
	fn    fn.Registered
	api   *sim.API
	now   time.Time
	uid   types.UID
	state []byte
	inbox []events.Event
	facts []events.Event // all that were ever delivered, for repeats
	timer time.Time
	quota bool
	out   strings.Builder
}

func newStage() *stage {
	s := &stage{fn: fn.Register(job.New(job.DefaultLimits())), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	s.api = sim.NewAPI(func() time.Time { return s.now })
	s.api.Emit = func(_ events.Key, e events.Event) { s.inbox, s.facts = append(s.inbox, e), append(s.facts, e) }
	s.api.Refuse = func(effect.CreatePod) (string, string) {
		if s.quota {
			return "Forbidden", "exceeded quota: compute"
		}
		return "", ""
	}
	return s
}

func (s *stage) play(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	s.out.Reset()
	switch d.Cmd {
	case "job":
		s.uid = s.api.CreateJob(parseJob(t, d)).UID
	case "pod":
		for _, change := range d.CmdArgs[1:] {
			s.pod(t, d, d.CmdArgs[0].Key, change.Key)
		}
	case "scale":
		n := atoi(t, d, d.CmdArgs[0].Key)
		s.api.UpdateJob(s.uid, func(j *events.Job) { j.Parallelism = int32(n) })
	case "touch": // somebody writes the Job without changing anything
		s.api.UpdateJob(s.uid, func(*events.Job) {})
	case "fail-target": // somebody else declares the Job failed
		s.api.UpdateJob(s.uid, declareFailed)
	case "delete-job":
		s.api.DeleteJob(s.uid)
	case "quota":
		s.quota = d.CmdArgs[0].Key == "on"
	case "advance":
		by, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		s.advance(by)
		return s.result()
	case "forget": // the memory is lost, and the next thing that happens is a timer's ring, or with "quietly" nothing
		s.state = nil
		if len(d.CmdArgs) == 0 {
			s.inbox = append(s.inbox, events.TimerFired{Name: "wake"})
		}
	case "repeat": // every fact that ever was is delivered again, oldest first
		s.inbox = append(s.inbox, s.facts...)
	case "relist":
		s.inbox = append(s.inbox, s.api.List("relist", s.uid))
	case "status":
		return s.status()
	default:
		d.Fatalf(t, "unknown command %q", d.Cmd)
	}
	s.turns()
	return s.result()
}

// turns decides and acts until nothing is left to do.
func (s *stage) turns() {
	for len(s.inbox) > 0 {
		inbox := s.inbox
		s.inbox = nil
		d, err := s.fn.Decide(s.state, inbox, s.now)
		if err != nil {
			panic(err)
		}
		s.state, s.timer = d.State, time.Time{}
		for _, e := range d.Effects {
			fmt.Fprintln(&s.out, e)
			if t, ok := e.(effect.SetTimer); ok {
				s.timer = t.At
				continue
			}
			facts, err := s.api.Act(context.Background(), sim.Key(s.uid), e)
			if err != nil {
				panic(err)
			}
			s.inbox = append(s.inbox, facts...)
		}
	}
}

// advance lets time pass; the timer rings when it is due.
func (s *stage) advance(by time.Duration) {
	end := s.now.Add(by)
	for !s.timer.IsZero() && !s.timer.After(end) {
		s.now, s.timer = s.timer, time.Time{}
		fmt.Fprintf(&s.out, "%s the timer rings\n", s.now.Format(time.TimeOnly))
		s.inbox = append(s.inbox, events.TimerFired{Name: "wake"})
		s.turns()
	}
	s.now = end
}

func (s *stage) result() string {
	if s.out.Len() == 0 {
		return "(nothing)\n"
	}
	return s.out.String()
}

func (s *stage) status() string {
	list := s.api.List("", s.uid)
	var b strings.Builder
	if list.Job == nil {
		b.WriteString("no Job\n")
	} else {
		fmt.Fprintln(&b, strings.TrimPrefix(effect.WriteJobStatus{Version: list.Job.Version, Status: list.Job.Status}.String(), "WriteJobStatus "))
	}
	for _, p := range list.Pods {
		fmt.Fprintf(&b, "%s serial=%d %s held=%v deleting=%v\n", p.Name, p.Serial, p.Phase, p.Held, p.Deleting)
	}
	return b.String()
}

// pod changes the Pod with that serial as its node or a user does.
func (s *stage) pod(t *testing.T, d *datadriven.TestData, serial, change string) {
	t.Helper()
	name := ""
	for _, p := range s.api.List("", s.uid).Pods {
		if strconv.Itoa(p.Serial) == serial {
			name = p.Name
		}
	}
	if name == "" {
		d.Fatalf(t, "no Pod with serial %s is held or runs", serial)
	}
	s.api.UpdatePod(name, func(p *events.Pod) {
		switch change {
		case "runs":
			p.Phase, p.Scheduled, p.Ready, p.ReadySince = events.Running, true, true, s.now
		case "succeeds":
			p.Phase, p.Ready, p.Finished = events.Succeeded, false, s.now
		case "fails":
			p.Phase, p.Ready, p.Finished = events.Failed, false, s.now
		case "restarts":
			p.Restarts++
		case "is-deleted":
			p.Deleting, p.Finished = true, s.now
		case "loses-finalizer":
			p.Held = false
		default:
			d.Fatalf(t, "unknown change %q", change)
		}
	})
}
