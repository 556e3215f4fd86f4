package job_test

import (
	"context"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/functions/job"
	"github.com/jobstream/jobstream/internal/sim"
)

// A world is one Job in the simulator's API server, and the function that runs it. It is for what no transcript in testdata can
// show: Pods that no user would create, answers that the simulator does not give, thousands of Pods.
type world struct {
	t     *testing.T
	fn    fn.Registered
	api   *sim.API
	now   time.Time
	uid   types.UID
	state []byte
	inbox []events.Event
	timer time.Time
	// most is the largest state that is accepted, in bytes; 0 for any.
	most int
	// rests reports whether the function may forget the Job.
	rests bool
	// done is every effect that was wanted, in order.
	done []effect.Effect
	// answer, if not nil, may answer an effect instead of the API server.
	answer func(effect.Effect) (facts []events.Event, answered bool)
}

// newWorld has a Job of one Pod that has started a minute ago, except for what change makes of it. No function has observed it
// yet.
func newWorld(t *testing.T, l job.Limits, change func(*events.Job)) *world {
	t.Helper()
	w := &world{t: t, fn: fn.Register(job.New(l)), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	w.api = sim.NewAPI(func() time.Time { return w.now })
	j := events.Job{Name: "pi", Parallelism: 1, Completions: new(int32(1)), BackoffLimit: 6, Generation: 1,
		Status: batchv1.JobStatus{StartTime: &metav1.Time{Time: w.now.Add(-time.Minute)}}}
	change(&j)
	w.uid = w.api.CreateJob(j).UID
	w.api.Emit = func(_ events.Key, e events.Event) { w.inbox = append(w.inbox, e) }
	return w
}

// with creates a Pod of the Job that has not been observed, and returns it.
func (w *world) with(name string, change func(*events.Pod)) events.Pod {
	p := events.Pod{Name: name, Owner: "pi", Serial: events.NoSerial, Index: events.NoIndex, Phase: events.Running, Scheduled: true, Held: true}
	change(&p)
	return w.api.AddPod(w.uid, p)
}

// status changes the Job's status as another controller would have left it.
func (w *world) status(change func(*batchv1.JobStatus)) {
	w.api.UpdateJob(w.uid, func(j *events.Job) { change(&j.Status) })
}

// wake begins with an empty state and no events.
func (w *world) wake() {
	w.t.Helper()
	w.inbox, w.state = []events.Event{events.TimerFired{Name: "wake"}}, nil
	w.settle()
}

// settle decides and acts until nothing is left to do, and fails the test if it takes so many turns that it would never end: time
// stands still meanwhile.
func (w *world) settle() {
	w.t.Helper()
	for turn := 0; len(w.inbox) > 0; turn++ {
		if turn == 100 {
			w.t.Fatalf("spins: %v", w.done[len(w.done)-6:])
		}
		w.act(w.decide())
	}
}

// decide makes one decision on all pending events.
func (w *world) decide() []effect.Effect {
	w.t.Helper()
	batch := w.inbox
	w.inbox, w.timer = nil, time.Time{}
	d, err := w.fn.Decide(w.state, batch, w.now)
	if err == nil && w.most > 0 && len(d.State) > w.most { // what the engine does then
		d, err = w.fn.Decide(d.State, []events.Event{events.EffectRefused{Effect: effect.SaveState, Serial: events.NoSerial, Reason: effect.StateTooLarge, At: w.now}}, w.now)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.state, w.rests = d.State, d.Rests
	return d.Effects
}

// remembers returns the state that results from these facts.
func (w *world) remembers(facts ...events.Event) string {
	w.t.Helper()
	d, err := w.fn.Decide(w.state, facts, w.now)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(d.State)
}

// act carries out what was decided.
func (w *world) act(effects []effect.Effect) {
	w.t.Helper()
	for _, e := range effects {
		w.done = append(w.done, e)
		if timer, ok := e.(effect.SetTimer); ok {
			w.timer = timer.At
			continue
		}
		if w.answer != nil {
			if facts, answered := w.answer(e); answered {
				w.inbox = append(w.inbox, facts...)
				continue
			}
		}
		facts, err := w.api.Act(context.Background(), sim.Key(w.uid), e)
		if err != nil {
			w.t.Fatal(err)
		}
		w.inbox = append(w.inbox, facts...)
	}
}

// receive delivers an event.
func (w *world) receive(facts ...events.Event) {
	w.t.Helper()
	w.inbox = append(w.inbox, facts...)
	w.settle()
}

// wait lets time pass; the timer fires when it is due.
func (w *world) wait(by time.Duration) {
	w.t.Helper()
	for end := w.now.Add(by); ; {
		if w.timer.IsZero() || w.timer.After(end) {
			w.now = end
			return
		}
		w.now = w.timer
		w.receive(events.TimerFired{Name: "wake"})
	}
}

// job returns the Job as it is now.
func (w *world) job() events.Job { return *w.api.List("", w.uid).Job }

// pods returns the Pods of the Job that are held or have not ended.
func (w *world) pods() []events.Pod { return w.api.List("", w.uid).Pods }

// change changes a Pod as its node or a user does, and delivers the observation.
func (w *world) change(name string, change func(*events.Pod)) {
	w.t.Helper()
	w.api.UpdatePod(name, change)
	w.settle()
}

// ends makes a Pod succeed or fail.
func (w *world) ends(name string, how events.PodPhase) {
	w.t.Helper()
	w.change(name, func(p *events.Pod) { p.Phase, p.Ready, p.Finished = how, false, w.now })
}

// count returns how many effects of that type were wanted so far.
func count[E effect.Effect](w *world) int {
	return len(slices.DeleteFunc(slices.Clone(w.done), func(e effect.Effect) bool { _, ok := e.(E); return !ok }))
}

// counted holds the Job's counters against how many Pods have really ended.
func (w *world) counted(succeeded, failed int32) {
	w.t.Helper()
	s := w.job().Status
	if u := s.UncountedTerminatedPods; s.Succeeded != succeeded || s.Failed != failed || u != nil && len(u.Succeeded)+len(u.Failed) > 0 {
		w.t.Errorf("counted %d succeeded, %d failed, uncounted %v; %d have succeeded, %d have failed", s.Succeeded, s.Failed, u, succeeded, failed)
	}
}
