package cluster

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/engine"
)

const listScheduledJobs = "/apis/jobstream.dev/v1alpha1/scheduledjobs"

// fail answers with 503 to every request that is meant.
func (r *requests) fail(meant func(*http.Request) bool) {
	r.inject(func(q *http.Request) (*http.Response, error) {
		if !meant(q) {
			return nil, nil
		}
		return answer(q, http.StatusServiceUnavailable, etcdAway), nil
	})
}

var etcdAway = metav1.Status{Status: "Failure", Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable, Message: "etcd is away"}

// hears waits until the key has been told anything.
func (x *watching) hears(t *testing.T, key events.Key) {
	t.Helper()
	eventually(t, func() string {
		if len(x.sink.about(key)) == 0 {
			return "a fact about " + key.String() + "; log:\n" + x.log.String()
		}
		return ""
	})
}

// sessions is how often everything was listed.
func (x *watching) sessions() int { return strings.Count(x.log.String(), "listed everything") }

// TestWatcherWhileScheduledJobsFail: whatever is wrong with the list of ScheduledJobs, Jobs get on, and nothing of theirs is
// listed again.
func TestWatcherWhileScheduledJobsFail(t *testing.T) {
	w := newWorld(t)
	client, schedules, seen := testClients(t)
	seen.fail(func(q *http.Request) bool { return q.URL.Path == listScheduledJobs })
	alarm := &memoryAlarm{}
	x := startWatcher(t, &memorySink{}, client, seen, func(c *WatcherConfig) {
		c.ScheduledJobs, c.Alarm, c.lookAgain = schedules, alarm, 20*time.Millisecond
	})
	_, pi := w.createJob("pi")
	x.hears(t, pi)
	sj, nightly := w.createSchedule("nightly")
	if log := x.log.String(); strings.Count(log, "level=WARN") != 1 || !strings.Contains(log, "etcd is away") || x.Failing() != 1 {
		t.Errorf("%d lists and watches fail; log:\n%s", x.Failing(), log)
	}

	knows := func() {
		t.Helper()
		x.hears(t, nightly)
		eventually(t, func() string {
			if _, known := alarm.of(sj.UID); !known || x.Failing() != 0 {
				return "the alarm to know it, and nothing to fail; log:\n" + x.log.String()
			}
			return ""
		})
	}
	seen.inject(nil)
	knows()

	if n := x.sessions(); n != 1 {
		t.Errorf("everything was listed %d times", n)
	}
}

// TestWatcherWhileScheduledJobsHang: a list of ScheduledJobs that nobody answers, because of a conversion webhook, holds up Jobs for a moment
// only. By itself it may take its time.
func TestWatcherWhileScheduledJobsHang(t *testing.T) {
	w := newWorld(t)
	sj, nightly := w.createSchedule("nightly")
	client, schedules, seen := testClients(t)
	const hangs = time.Second
	var lists atomic.Int32
	seen.inject(func(q *http.Request) (*http.Response, error) {
		if q.URL.Path != listScheduledJobs || q.URL.Query().Get("watch") != "" {
			return nil, nil
		}
		lists.Add(1)
		select {
		case <-q.Context().Done():
			return nil, q.Context().Err()
		case <-time.After(hangs):
			return nil, nil
		}
	})
	alarm := &memoryAlarm{}
	_, pi := w.createJob("pi")
	x := startWatcher(t, &memorySink{}, client, seen, func(c *WatcherConfig) {
		c.ScheduledJobs, c.Alarm, c.lookAgain, c.schedulesTimeout = schedules, alarm, 20*time.Millisecond, 50*time.Millisecond
	})
	x.hears(t, pi)
	if log := x.log.String(); lists.Load() > 2 || strings.Count(log, "cannot list ScheduledJobs") != 1 || x.Failing() != 1 {
		t.Errorf("%d lists of ScheduledJobs had been asked for, %d lists and watches fail; log:\n%s", lists.Load(), x.Failing(), log)
	}
	x.hears(t, nightly)
	if _, known := alarm.of(sj.UID); !known {
		t.Error("the alarm does not know it")
	}
}

// TestWatcherWhoseWatchOfScheduledJobsEnds: they are listed again by themselves, and the alarm fires meanwhile for those that it
// knows.
func TestWatcherWhoseWatchOfScheduledJobsEnds(t *testing.T) {
	w := newWorld(t)
	sj, nightly := w.createSchedule("nightly")
	client, schedules, seen := testClients(t)
	var gone, heals atomic.Bool
	seen.inject(func(q *http.Request) (*http.Response, error) {
		if isWatch(q, "scheduledjobs") && gone.CompareAndSwap(false, true) {
			return answer(q, http.StatusGone, metav1.Status{Status: "Failure", Code: http.StatusGone, Reason: metav1.StatusReasonExpired}), nil
		}
		if q.URL.Path == listScheduledJobs && gone.Load() && !heals.Load() {
			return answer(q, http.StatusServiceUnavailable, etcdAway), nil
		}
		return nil, nil
	})
	alarm := &memoryAlarm{}
	x := startWatcher(t, &memorySink{}, client, seen, func(c *WatcherConfig) {
		c.ScheduledJobs, c.Alarm, c.lookAgain = schedules, alarm, 20*time.Millisecond
	})
	eventually(t, func() string {
		if x.Failing() != 1 {
			return "the list to fail; log:\n" + x.log.String()
		}
		return ""
	})
	if _, known := alarm.of(sj.UID); !known {
		t.Error("the alarm has forgotten the ScheduledJob")
	}
	_, late := w.createJob("late")
	x.hears(t, late)
	x.Relist()
	eventually(t, func() string {
		if x.sessions() < 2 {
			return "a complete list; log:\n" + x.log.String()
		}
		return ""
	})
	if _, known := alarm.of(sj.UID); !known {
		t.Error("the alarm has forgotten the ScheduledJob")
	}
	before := len(of[events.ScheduleListed](x.sink, nightly))
	heals.Store(true)
	eventually(t, func() string {
		if x.Failing() != 0 || len(of[events.ScheduleListed](x.sink, nightly)) == before {
			return "a new snapshot; log:\n" + x.log.String()
		}
		return ""
	})
	if n := x.sessions(); n != 2 {
		t.Errorf("everything was listed %d times", n)
	}
}

// TestWatcherWhileAListFails: a list that is made for safety, and fails, is tried again beside the watches.
func TestWatcherWhileAListFails(t *testing.T) {
	w := newWorld(t)
	client, seen := testClient(t)
	x := startWatcher(t, &memorySink{}, client, seen)
	seen.fail(func(q *http.Request) bool { return q.URL.Path == "/api/v1/pods" && q.URL.Query().Get("watch") == "" })
	x.Relist()
	eventually(t, func() string {
		if x.Failing() != 1 {
			return "the list to fail; log:\n" + x.log.String()
		}
		return ""
	})
	j, key := w.createJob("pi")
	w.createPod(w.startJob(j), key, 0)
	eventually(t, func() string {
		if len(of[events.JobObserved](x.sink, key)) == 0 || len(of[events.PodObserved](x.sink, key)) == 0 {
			return "what the watches show; log:\n" + x.log.String()
		}
		return ""
	})
	seen.inject(nil)
	eventually(t, func() string {
		if x.sessions() < 2 || x.Failing() != 0 || len(of[events.JobListed](x.sink, key)) == 0 {
			return "the list; log:\n" + x.log.String()
		}
		return ""
	})
}

// TestWatcherWhileOneNamespaceFails: what keeps us from the unmarked Pods of one namespace holds up nobody but the Jobs that
// would adopt them.
func TestWatcherWhileOneNamespaceFails(t *testing.T) {
	w, peaceful := newWorld(t), newWorld(t)
	_, closed := w.createJob("closed", picky("pi"))
	_, beside := w.createJob("beside")
	client, seen := testClient(t)
	forbid := func(q *http.Request) (*http.Response, error) {
		if q.URL.Path == "/api/v1/namespaces/"+w.ns+"/pods" && strings.HasPrefix(q.URL.Query().Get("labelSelector"), "!") {
			return answer(q, http.StatusForbidden, metav1.Status{Status: "Failure", Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "not here"}), nil
		}
		return nil, nil
	}
	seen.inject(forbid)
	x := startWatcher(t, &memorySink{}, client, seen)
	x.hears(t, beside)
	if got := of[events.JobListed](x.sink, closed); len(got) != 0 {
		t.Errorf("a snapshot that cannot know all Pods: %+v", got)
	}
	_, key := peaceful.createJob("pi", picky("pi"))
	p := peaceful.foreignPod("orphan", map[string]string{"app": "pi"})
	x.sees(t, key, p)
	if log := x.log.String(); strings.Count(log, "level=WARN") != 1 || !strings.Contains(log, "not here") || x.Failing() != 1 {
		t.Errorf("%d lists and watches fail; log:\n%s", x.Failing(), log)
	}
	orphan := w.foreignPod("orphan", map[string]string{"app": "pi"})
	seen.inject(nil)
	x.sees(t, closed, orphan)
	eventually(t, func() string {
		if len(of[events.JobListed](x.sink, closed)) == 0 || x.sessions() < 2 { // which is logged when all snapshots are out
			return "its snapshot; log:\n" + x.log.String()
		}
		return ""
	})
	if n := x.sessions(); n != 2 {
		t.Errorf("everything was listed %d times; log:\n%s", n, x.log.String())
	}

	t.Run("nor their inventories", func(t *testing.T) {
		w.requests.inject(forbid)
		refused := only[events.EffectRefused](t, w.act(closed, effect.TakeInventory{ID: "i"}))
		if refused.Reason != "Forbidden" || !strings.Contains(refused.Message, "not here") {
			t.Errorf("%+v", refused)
		}
		if got := only[events.JobListed](t, w.act(beside, effect.TakeInventory{ID: "i"})); got.Job == nil {
			t.Errorf("%+v", got)
		}
	})
}

// TestInventoriesOfKinds: what is asked of a Job does not depend on ScheduledJobs, and what is asked of these not on Pods, also
// where both are asked at the same time.
func TestInventoriesOfKinds(t *testing.T) {
	w := newWorld(t)
	j, pi := w.createJob("pi")
	w.startJob(j)
	sj, nightly := w.createSchedule("nightly")
	both := func(fails string) (ofJob, ofSchedule []events.Event, jobErr, scheduleErr error) {
		first, release := make(chan struct{}), make(chan struct{})
		var lists atomic.Int32
		w.requests.inject(func(q *http.Request) (*http.Response, error) {
			if strings.HasSuffix(q.URL.Path, "/jobs") && lists.Add(1) == 1 {
				close(first)
				<-release
			}
			if strings.HasSuffix(q.URL.Path, fails) {
				return answer(q, http.StatusServiceUnavailable, etcdAway), nil
			}
			return nil, nil
		})
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = w.actor.Act(t.Context(), pi, effect.TakeInventory{ID: "first"}) })
		<-first
		wg.Go(func() { ofJob, jobErr = w.actor.Act(t.Context(), pi, effect.TakeInventory{ID: "i"}) })
		wg.Go(func() { ofSchedule, scheduleErr = w.actor.Act(t.Context(), nightly, effect.TakeInventory{ID: "i"}) })
		time.AfterFunc(100*time.Millisecond, func() { close(release) }) // both have asked by then; if not, it is an easier case
		wg.Wait()
		return ofJob, ofSchedule, jobErr, scheduleErr
	}
	t.Run("ScheduledJobs cannot be listed", func(t *testing.T) {
		ofJob, _, err, later := both("/scheduledjobs")
		if err != nil || only[events.JobListed](t, ofJob).Job == nil {
			t.Errorf("%+v, %v", ofJob, err)
		}
		if retry := (engine.Retry{}); !errors.As(later, &retry) {
			t.Errorf("%v", later)
		}
	})
	t.Run("Pods cannot be listed", func(t *testing.T) {
		_, ofSchedule, later, err := both("/pods")
		if err != nil || only[events.ScheduleListed](t, ofSchedule).ScheduledJob.UID != sj.UID {
			t.Errorf("%+v, %v", ofSchedule, err)
		}
		if retry := (engine.Retry{}); !errors.As(later, &retry) {
			t.Errorf("%v", later)
		}
	})
}
