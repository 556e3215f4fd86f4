package oracle_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/sim"
	"github.com/jobstream/jobstream/test/oracle"
	"github.com/jobstream/jobstream/test/oracle/draw"
	"github.com/jobstream/jobstream/test/oracle/stage"
)

// TestAnySoundStatus begins with any status that the API server would store, from any writer, and any Pods: from there on every
// status write of jobstream is accepted, and the Job comes to its end. It finds what would keep a Job stuck for ever.
func TestAnySoundStatus(t *testing.T) {
	rapid.Check(t, anySoundStatus)
	t.Logf("judged: %v", judged)
}

// judged counts the judged writes, by the condition that they added.
var judged = map[string]int{}

// FuzzAnySoundStatus is the same, guided by coverage: go test ./oracle -run '^$' -fuzz FuzzAnySoundStatus
func FuzzAnySoundStatus(f *testing.F) { f.Fuzz(rapid.MakeFuzz(anySoundStatus)) }

func anySoundStatus(t *rapid.T) {
	real := draw.Job(t)
	draw.Options(t, real)
	real.Status = draw.Status(t, real)
	if rapid.IntRange(0, 5).Draw(t, "a user has removed jobstream's annotations") < 5 {
		metav1.SetMetaDataAnnotation(&real.ObjectMeta, v1alpha1.NextSerialAnnotation, strconv.Itoa(draw.MaxPods))
	}
	real = draw.Edited(t, real)
	var pods []events.Pod
	drawn := draw.Pods(t, real)
	if rapid.IntRange(0, 2).Draw(t, "strangers") == 2 {
		draw.ForeignPods(t, drawn)
	}
	for _, p := range drawn {
		pods = append(pods, events.ProjectPod(p))
	}
	p := &play{t: t, s: stage.New(draw.Now, events.ProjectJob(real, ours), pods)}
	p.s.API.Wrote = p.judge
	p.s.API.Refuse = func(effect.CreatePod) (string, string) {
		if p.quota {
			return "Forbidden", "exceeded quota"
		}
		return "", ""
	}
	p.s.API.SetValues("values", &sim.Values{Count: rapid.IntRange(0, 6).Draw(t, "values")})
	p.s.Wake()
	p.settle()
	for range draw.Dice(t, 12, "happenings") {
		p.something()
		p.settle()
	}
	p.end()
}

// play is one such life.
type play struct {
	t *rapid.T
	s *stage.Stage
	// quota reports whether Pods are refused.
	quota bool
}

// judge lets the oracle judge a status write.
func (p *play) judge(before, after events.Job) {
	judged["status writes"]++
	for _, c := range after.Status.Conditions {
		if _, was := before.Condition(c.Type); c.Status == "True" && !was {
			judged[string(c.Type)+" "+c.Reason]++
		}
	}
	if err := oracle.Verdict(before, after); err != nil {
		p.t.Fatalf("%v\non   %v\nwith %v", err, words(before), words(after))
	}
}

func words(j events.Job) effect.WriteJobStatus {
	return effect.WriteJobStatus{Version: j.Version, Status: j.Status}
}

func (p *play) settle() {
	if err := p.s.Turns(); err != nil {
		p.t.Fatal(err)
	}
}

func (p *play) advance(by time.Duration) {
	if err := p.s.Advance(by); err != nil {
		p.t.Fatal(err)
	}
}

// something does what time, a node or a user does.
func (p *play) something() {
	pods := p.s.Pods()
	kind := draw.Dice(p.t, 14, "happens")
	switch {
	case kind < 2:
		p.advance(time.Duration(rapid.SampledFrom([]int{1, 11, 100, 700}).Draw(p.t, "seconds")) * time.Second)
	case kind < 5 && len(pods) > 0:
		pod := rapid.SampledFrom(pods).Draw(p.t, "pod")
		p.node(pod, rapid.SampledFrom([]events.PodPhase{events.Running, events.Succeeded, events.Failed}).Draw(p.t, "phase"))
	case kind < 6 && len(pods) > 0:
		pod := rapid.SampledFrom(pods).Draw(p.t, "pod")
		p.s.API.UpdatePod(pod.Name, func(x *events.Pod) { x.Deleting, x.Finished = true, p.s.Now })
	case kind < 7:
		p.s.Forget()
		p.s.Wake()
	case kind < 8:
		p.quota = !p.quota
	case kind < 9 && rapid.IntRange(0, 9).Draw(p.t, "delete the Job") == 9:
		p.s.API.LeaveJob(p.s.Job().UID, metav1.DeletePropagationForeground)
	case kind < 10 && len(pods) > 0:
		pod := rapid.SampledFrom(pods).Draw(p.t, "pod")
		p.s.API.UpdatePod(pod.Name, func(x *events.Pod) { x.Held = false })
	case kind < 11:
		p.intrude()
	case p.s.Job() != nil:
		p.edit()
	}
}

// edit makes a change that a user, or a declaration that another controller, may make.
func (p *play) edit() {
	now := *p.s.Job()
	real, err := oracle.Stored(oracle.Rebuild(now))
	if err != nil {
		p.t.Fatal(err)
	}
	next := events.ProjectJob(draw.Edited(p.t, real), ours)
	p.s.Edit(func(j *events.Job) {
		j.Suspended, j.Parallelism, j.Completions, j.ActiveDeadlineSeconds = next.Suspended, next.Parallelism, next.Completions, next.ActiveDeadlineSeconds
	})
}

// intrude writes any status that the API server stores on the current Job.
func (p *play) intrude() {
	before := oracle.Rebuild(*p.s.Job())
	after := before.DeepCopy()
	after.Status = draw.Status(p.t, after)
	if oracle.StatusUpdate(before, after) != nil {
		return
	}
	p.s.Edit(func(j *events.Job) { j.Status = after.Status })
}

// node advances the Pod's containers to that phase.
func (p *play) node(pod events.Pod, phase events.PodPhase) {
	if pod.Terminal() {
		return
	}
	p.s.API.UpdatePod(pod.Name, func(x *events.Pod) {
		x.Phase, x.Scheduled, x.Waiting = phase, true, ""
		switch phase {
		case events.Running:
			x.Ready, x.ReadySince = true, p.s.Now
		case events.Failed:
			x.Exits = []events.Exit{{Container: "main", Code: 3}}
			fallthrough
		case events.Succeeded:
			x.Ready, x.Finished = false, p.s.Now.Truncate(time.Second)
		}
	})
}

// end lets every Pod succeed and all time pass, and requires that the Job finishes and no Pod is held.
func (p *play) end() {
	p.quota = false
	p.s.API.SetValues("values", &sim.Values{Count: 6})
	p.s.Edit(func(j *events.Job) {
		j.Suspended = false
		if j.Parallelism == 0 {
			if j.Indexed && *j.Completions == 0 {
				return // it is complete
			}
			j.Parallelism = 2
		}
	})
	for range 60 {
		p.settle()
		for _, pod := range p.s.Pods() {
			p.node(pod, events.Succeeded)
		}
		p.settle()
		p.advance(10 * time.Minute)
	}
	j := p.s.Job()
	held := func(x events.Pod) bool { return x.Held }
	switch {
	case j.Deleting && !slices.ContainsFunc(p.s.Pods(), held): // it is removed with its Pods
	case !j.Finished():
		p.t.Fatalf("the Job never finishes: %v\nlast %v", words(*j), p.last())
	case slices.ContainsFunc(p.s.Pods(), held):
		p.t.Fatalf("the Job has finished and holds Pods: %v\nlast %v", p.s.Pods(), p.last())
	case !p.s.Timer.IsZero():
		p.t.Fatalf("the Job has finished and a timer is set")
	}
}

func (p *play) last() []effect.Effect { return p.s.Effects[max(0, len(p.s.Effects)-8):] }
