package watch

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
)

const listScheduledJobs = "/apis/jobstream.dev/v1alpha1/scheduledjobs"

// awaitsFact waits until a fact for the key was published.
func (x *watching) awaitsFact(t *testing.T, key events.Key) {
	t.Helper()
	clustertest.Eventually(t, func() string {
		if len(x.sink.about(key)) == 0 {
			return "a fact about " + key.String() + "; log:\n" + x.log.String()
		}
		return ""
	})
}

// sessions returns how often everything was listed.
func (x *watching) sessions() int { return strings.Count(x.log.String(), "listed everything") }

// TestWatcherWhileScheduledJobsFail: whatever is wrong with the list of ScheduledJobs, Jobs go on, and are not listed again.
func TestWatcherWhileScheduledJobsFail(t *testing.T) {
	w := newWorld(t)
	client, schedules, seen := clustertest.Clients(t)
	seen.Fail(func(q *http.Request) bool { return q.URL.Path == listScheduledJobs })
	alarm := &memoryAlarm{}
	x := startWatcher(t, &memorySink{}, client, seen, func(c *Config) {
		c.ScheduledJobs, c.Alarm, c.lookAgain = schedules, alarm, 20*time.Millisecond
	})
	_, pi := w.CreateJob("pi")
	x.awaitsFact(t, pi)
	sj, nightly := w.CreateSchedule("nightly")
	if log := x.log.String(); strings.Count(log, "level=WARN") != 1 || !strings.Contains(log, "etcd is away") || x.Failing() != 1 {
		t.Errorf("%d lists and watches fail; log:\n%s", x.Failing(), log)
	}

	knows := func() {
		t.Helper()
		x.awaitsFact(t, nightly)
		clustertest.Eventually(t, func() string {
			if _, known := alarm.of(sj.UID); !known || x.Failing() != 0 {
				return "the alarm to know it, and nothing to fail; log:\n" + x.log.String()
			}
			return ""
		})
	}
	seen.Inject(nil)
	knows()

	if n := x.sessions(); n != 1 {
		t.Errorf("everything was listed %d times", n)
	}
}

// TestWatcherWhileScheduledJobsHang: a list of ScheduledJobs that is never answered, because of a conversion webhook, delays Jobs
// for a moment only. The separate retry of that list may take its time.
func TestWatcherWhileScheduledJobsHang(t *testing.T) {
	w := newWorld(t)
	sj, nightly := w.CreateSchedule("nightly")
	client, schedules, seen := clustertest.Clients(t)
	const timeout = 50 * time.Millisecond
	answer := make(chan struct{})
	var lists atomic.Int32
	seen.Inject(func(q *http.Request) (*http.Response, error) {
		if q.URL.Path != listScheduledJobs || q.URL.Query().Get("watch") != "" {
			return nil, nil
		}
		lists.Add(1)
		select {
		case <-answer:
		case <-q.Context().Done():
		}
		select {
		case <-time.After(2 * timeout): // and longer than a list of Jobs would wait
			return nil, nil
		case <-q.Context().Done():
			return nil, q.Context().Err()
		}
	})
	alarm := &memoryAlarm{}
	_, pi := w.CreateJob("pi")
	x := startWatcher(t, &memorySink{}, client, seen, func(c *Config) {
		c.ScheduledJobs, c.Alarm, c.lookAgain, c.schedulesTimeout = schedules, alarm, 20*time.Millisecond, timeout
	})
	x.awaitsFact(t, pi)
	if log := x.log.String(); lists.Load() > 2 || strings.Count(log, "cannot list ScheduledJobs") != 1 || x.Failing() != 1 {
		t.Errorf("%d lists of ScheduledJobs had been asked for, %d lists and watches fail; log:\n%s", lists.Load(), x.Failing(), log)
	}
	close(answer)
	x.awaitsFact(t, nightly)
	if _, known := alarm.of(sj.UID); !known {
		t.Error("the alarm does not know it")
	}
}

// TestWatcherWhoseWatchOfScheduledJobsEnds: they are listed again separately, and the alarm fires meanwhile for those that it
// knows.
func TestWatcherWhoseWatchOfScheduledJobsEnds(t *testing.T) {
	w := newWorld(t)
	sj, nightly := w.CreateSchedule("nightly")
	client, schedules, seen := clustertest.Clients(t)
	var gone, heals atomic.Bool
	seen.Inject(func(q *http.Request) (*http.Response, error) {
		if clustertest.IsWatch(q, "scheduledjobs") && gone.CompareAndSwap(false, true) {
			return clustertest.Answer(q, http.StatusGone, metav1.Status{Status: "Failure", Code: http.StatusGone, Reason: metav1.StatusReasonExpired}), nil
		}
		if q.URL.Path == listScheduledJobs && gone.Load() && !heals.Load() {
			return clustertest.Answer(q, http.StatusServiceUnavailable, clustertest.EtcdAway), nil
		}
		return nil, nil
	})
	alarm := &memoryAlarm{}
	x := startWatcher(t, &memorySink{}, client, seen, func(c *Config) {
		c.ScheduledJobs, c.Alarm, c.lookAgain = schedules, alarm, 20*time.Millisecond
	})
	clustertest.Eventually(t, func() string {
		if x.Failing() != 1 {
			return "the list to fail; log:\n" + x.log.String()
		}
		return ""
	})
	if _, known := alarm.of(sj.UID); !known {
		t.Error("the alarm has forgotten the ScheduledJob")
	}
	_, late := w.CreateJob("late")
	x.awaitsFact(t, late)
	x.Relist()
	clustertest.Eventually(t, func() string {
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
	clustertest.Eventually(t, func() string {
		if x.Failing() != 0 || len(of[events.ScheduleListed](x.sink, nightly)) == before {
			return "a new snapshot; log:\n" + x.log.String()
		}
		return ""
	})
	if n := x.sessions(); n != 2 {
		t.Errorf("everything was listed %d times", n)
	}
}

// TestWatcherWhileAListFails: a routine relist that fails is tried again beside the watches.
func TestWatcherWhileAListFails(t *testing.T) {
	w := newWorld(t)
	client, seen := clustertest.Client(t)
	x := startWatcher(t, &memorySink{}, client, seen)
	seen.Fail(func(q *http.Request) bool { return q.URL.Path == "/api/v1/pods" && q.URL.Query().Get("watch") == "" })
	x.Relist()
	clustertest.Eventually(t, func() string {
		if x.Failing() != 1 {
			return "the list to fail; log:\n" + x.log.String()
		}
		return ""
	})
	j, key := w.CreateJob("pi")
	w.EndPod(w.createPod(w.StartJob(j), key, 0).Name, corev1.PodRunning)
	clustertest.Eventually(t, func() string {
		if len(of[events.JobObserved](x.sink, key)) == 0 || len(of[events.PodObserved](x.sink, key)) == 0 {
			return "what the watches show; log:\n" + x.log.String()
		}
		return ""
	})
	seen.Inject(nil)
	clustertest.Eventually(t, func() string {
		if x.sessions() < 2 || x.Failing() != 0 || len(of[events.JobListed](x.sink, key)) == 0 {
			return "the list; log:\n" + x.log.String()
		}
		return ""
	})
}

// TestWatcherWhileOneNamespaceFails: if the unmarked Pods of one namespace cannot be read, only Jobs that would adopt them wait.
func TestWatcherWhileOneNamespaceFails(t *testing.T) {
	w, peaceful := newWorld(t), newWorld(t)
	_, closed := w.CreateJob("closed", clustertest.Picky("pi"))
	_, beside := w.CreateJob("beside")
	client, seen := clustertest.Client(t)
	forbid := func(q *http.Request) (*http.Response, error) {
		if q.URL.Path == "/api/v1/namespaces/"+w.NS+"/pods" && strings.HasPrefix(q.URL.Query().Get("labelSelector"), "!") {
			return clustertest.Answer(q, http.StatusForbidden, metav1.Status{Status: "Failure", Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "not here"}), nil
		}
		return nil, nil
	}
	seen.Inject(forbid)
	x := startWatcher(t, &memorySink{}, client, seen)
	x.awaitsFact(t, beside)
	if got := of[events.JobListed](x.sink, closed); len(got) != 0 {
		t.Errorf("a snapshot that cannot know all Pods: %+v", got)
	}
	_, key := peaceful.CreateJob("pi", clustertest.Picky("pi"))
	p := peaceful.ForeignPod("orphan", map[string]string{"app": "pi"})
	x.sees(t, key, p)
	if log := x.log.String(); strings.Count(log, "level=WARN") != 1 || !strings.Contains(log, "not here") || x.Failing() != 1 {
		t.Errorf("%d lists and watches fail; log:\n%s", x.Failing(), log)
	}
	orphan := w.ForeignPod("orphan", map[string]string{"app": "pi"})
	seen.Inject(nil)
	x.sees(t, closed, orphan)
	clustertest.Eventually(t, func() string {
		if len(of[events.JobListed](x.sink, closed)) == 0 || x.sessions() < 2 { // logged when all snapshots are published
			return "its snapshot; log:\n" + x.log.String()
		}
		return ""
	})
	if n := x.sessions(); n != 2 {
		t.Errorf("everything was listed %d times; log:\n%s", n, x.log.String())
	}

	t.Run("nor their inventories", func(t *testing.T) {
		w.Requests.Inject(forbid)
		refused := clustertest.Only[events.EffectRefused](t, w.act(closed, effect.TakeInventory{ID: "i"}))
		if refused.Reason != "Forbidden" || !strings.Contains(refused.Message, "not here") {
			t.Errorf("%+v", refused)
		}
		if got := clustertest.Only[events.JobListed](t, w.act(beside, effect.TakeInventory{ID: "i"})); got.Job == nil {
			t.Errorf("%+v", got)
		}
	})
}
