package engine_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/functions/job"
	"github.com/jobstream/jobstream/internal/engine"
	"github.com/jobstream/jobstream/internal/sim"
)

// inVain answers effects with facts that the function knows already. It stops after a thousand, so that a loop ends.
func inVain() func(effect.Effect) engine.Answer {
	n := 0
	return func(e effect.Effect) engine.Answer {
		if n++; n > 1000 {
			return gone(e)
		}
		return engine.Answer{Facts: []events.Event{events.TimerFired{Name: "wake"}}}
	}
}

// Effects that were done and answered, and are wanted again unchanged, back off like failed ones. Otherwise they would be done as
// fast as the API server answers.
func TestEffectsInVainBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, counter())
		b.act = inVain()
		b.Deliver(fact{b, "a"})
		synctest.Wait()
		if got := <-b.turned; got.Effects != 1 || got.Err == nil || b.count("ack a") != 1 {
			t.Errorf("%d effects, error %v, journal %q", got.Effects, got.Err, b.lines)
		}
		<-time.After(time.Minute)
		if n := b.count("act RemoveFinalizer a"); n != 6 { // at once and after 1, 3, 7, 15 and 31 s
			t.Errorf("done %d times in a minute", n)
		}
	})
}

// Effects that make progress do not back off for minutes because of others that do not.
func TestProgressKeepsTheRestShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, stuck := start(t, counter()), inVain()
		b.act = func(e effect.Effect) engine.Answer {
			if e.(effect.RemoveFinalizer).Name == "stuck" {
				return stuck(e)
			}
			return gone(e)
		}
		b.Deliver(fact{b, "stuck"})
		for range 60 {
			b.Deliver(fact{b, "a"})
			<-time.After(time.Second)
		}
		if n := b.count("act RemoveFinalizer a"); n < 25 {
			t.Errorf("done %d times in a minute", n)
		}
	})
}

// Nor do failing effects: while others of the key succeed, the API server is there, and the failing one is tried again soon. Alone
// it is tried less and less often.
func TestAFailingEffectIsTriedOftenWhileOthersSucceed(t *testing.T) {
	for _, c := range []struct {
		name        string
		others      bool
		least, most int
	}{
		{"others succeed", true, 14, 31},
		{"it is alone", false, 5, 5}, // at once and after 1, 3, 7 and 15 s
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := start(t, counter())
				b.act = func(e effect.Effect) engine.Answer {
					if e.(effect.RemoveFinalizer).Name == "fails" {
						return engine.Answer{Err: engine.Retry{Err: errors.New("a webhook does not answer")}}
					}
					return gone(e)
				}
				b.Deliver(fact{b, "fails"})
				for range 30 {
					if c.others {
						b.Deliver(fact{b, "succeeds"})
					}
					<-time.After(time.Second)
				}
				if n := b.count("act RemoveFinalizer fails"); n < c.least || n > c.most {
					t.Errorf("tried %d times in 30 s, want %d to %d", n, c.least, c.most)
				}
			})
		})
	}
}

// A state that is ahead of the cluster ignores every true fact: a client has forged it, or the cluster was restored from a
// backup. It is deleted after everything has been in vain for two minutes, and the Job goes on.
func TestAStateAheadOfTheClusterIsForgotten(t *testing.T) {
	for name, forge := range map[string]func(j events.Job, p events.Pod) events.Event{
		"of the Job": func(j events.Job, _ events.Pod) events.Event {
			j.Version, j.Suspended = 1<<63, true
			return events.JobObserved{Job: j}
		},
		"of a Pod": func(_ events.Job, p events.Pod) events.Event {
			p.Version, p.Phase = 1<<63, events.Succeeded
			return events.PodObserved{Pod: p}
		},
		"of all Pods": func(j events.Job, _ events.Pod) events.Event {
			return events.JobListed{ID: "forged", Name: j.Name, Job: &j, JobsVersion: j.Version, Version: 1 << 63}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				j, pods := c.look()
				if len(pods) != 2 {
					t.Fatalf("it has %d Pods", len(pods))
				}
				c.Deliver(told{fact{c.bench, "forged"}, forge(j, pods[0])})
				<-time.After(time.Second)
				before := c.requests()
				<-time.After(5 * time.Minute)
				if n := c.requests() - before; n > 100 {
					t.Errorf("%d requests in five minutes", n)
				}
				c.succeed()
				<-time.After(10 * time.Minute)
				j, _ = c.look()
				if _, done := j.Condition(batchv1.JobComplete); !done || c.count("forget") != 1 {
					t.Errorf("forgotten %d times, the Job is %+v", c.count("forget"), j.Status)
				}
			})
		})
	}
}

// An API server that is away for minutes proves nothing about the state: one turn in vain after that is not the eighth.
func TestFailuresAreNoReasonToForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, tries, vain := start(t, counter()), 0, inVain()
		b.act = func(e effect.Effect) engine.Answer {
			if tries++; tries%8 != 0 {
				return engine.Answer{Err: engine.Retry{Err: errors.New("the server is away")}}
			}
			return vain(e)
		}
		b.Deliver(fact{b, "a"})
		<-time.After(50 * time.Minute) // a turn each minute: seven in vain at most
		if n := b.count("act RemoveFinalizer a"); n < 48 || b.count("forget") > 0 {
			t.Errorf("%d tries, forgotten %d times", n, b.count("forget"))
		}
		<-time.After(time.Hour)
		if b.count("forget") == 0 {
			t.Error("never forgotten, whatever was in vain")
		}
	})
}

// Effects on the bus do not back off with effects on the cluster that are in vain: announcements and timers are still made.
func TestEffectsOnTheBusDoNotBackOffWithThoseOnTheCluster(t *testing.T) {
	type state struct{ Tried, Announced bool }
	stubborn := fn.Register(fn.Function[state]{Name: "count", Version: 1,
		Observe: func(s state, e events.Event) state {
			switch e.(type) {
			case events.PodGone:
				s.Tried = true
			case events.Announced:
				s.Announced = true
			}
			return s
		},
		Plan: func(s state, _ time.Time) (state, []effect.Effect) {
			out := []effect.Effect{effect.RemoveFinalizer{Name: "a"}}
			if s.Tried {
				out = append(out, effect.SetTimer{Name: "wake", At: time.Unix(1<<32, 0)})
			}
			if s.Tried && !s.Announced {
				out = append(out, effect.Announce{Event: tickOf("a")})
			}
			return s, out
		}})
	synctest.Test(t, func(t *testing.T) {
		b := start(t, stubborn)
		b.act = gone
		b.Deliver(fact{b, "a"})
		synctest.Wait()
		if b.count("act RemoveFinalizer a") != 1 || b.count("announce a") != 1 || b.count("timer wake") != 1 || b.count("ack a") != 1 {
			t.Errorf("journal %q", b.lines)
		}
		<-time.After(time.Minute)
		if n := b.count("announce a"); n != 1 {
			t.Errorf("announced %d times, journal %q", n, b.lines)
		}
		if n := b.count("act RemoveFinalizer a"); n != 6 {
			t.Errorf("done %d times in a minute", n)
		}
	})
}

// cluster is a runner of the job function, over the simulator's API server with one Job, which serves one request at a time, and
// a bus that confirms every announcement and fires timers.
type cluster struct {
	*bench
	one    sync.Mutex
	api    *sim.API
	uid    types.UID
	served int
	timers map[string]*time.Timer
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{api: sim.NewAPI(time.Now), timers: map[string]*time.Timer{}}
	c.bench = start(t, fn.Register(job.New(job.DefaultLimits())), func(cfg *engine.Config) {
		cfg.Actor, cfg.Announcer, cfg.Timers = engine.ActorFunc(c.act), c, c
	})
	c.one.Lock()
	c.api.Emit = func(_ events.Key, e events.Event) { c.Deliver(told{fact{c.bench, "fact"}, e}) }
	c.uid = c.api.CreateJob(events.Job{Name: "pi", Parallelism: 2, Completions: new(int32(2)), BackoffLimit: 6, Generation: 1}).UID
	c.one.Unlock()
	<-time.After(time.Second)
	return c
}

func (c *cluster) act(ctx context.Context, _ events.Key, e effect.Effect) ([]events.Event, error) {
	c.one.Lock()
	defer c.one.Unlock()
	if c.served++; c.served > 1000 { // so that a loop ends
		return nil, engine.Retry{Err: errors.New("too many requests")}
	}
	return c.api.Act(ctx, sim.Key(c.uid), e)
}

func (c *cluster) look() (events.Job, []events.Pod) {
	c.one.Lock()
	defer c.one.Unlock()
	all := c.api.List("", c.uid)
	return *all.Job, all.Pods
}

func (c *cluster) requests() int {
	c.one.Lock()
	defer c.one.Unlock()
	return c.served
}

// succeed makes all Pods succeed.
func (c *cluster) succeed() {
	_, pods := c.look()
	c.one.Lock()
	defer c.one.Unlock()
	for _, p := range pods {
		c.api.UpdatePod(p.Name, func(p *events.Pod) { p.Phase, p.Finished = events.Succeeded, time.Now() })
	}
}

func (*cluster) Announce(context.Context, events.Public) error { return nil }

func (c *cluster) Set(_ context.Context, _ events.Key, name string, at time.Time) error {
	c.one.Lock()
	defer c.one.Unlock()
	if old := c.timers[name]; old != nil {
		old.Stop()
	}
	c.timers[name] = time.AfterFunc(time.Until(at), func() {
		c.Deliver(told{fact{c.bench, "fired"}, events.TimerFired{Name: name, At: at}})
	})
	return nil
}

// told is an answer whose fact changes nothing.
type told struct {
	fact
	event events.Event
}

func (f told) Event() events.Event { return f.event }
