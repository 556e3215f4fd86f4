package act

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/cluster"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
	"github.com/jobstream/jobstream/internal/engine"
)

// jobsPath and podsPath are the paths of the lists of the test's namespace: while no other namespace asks, only this one is
// listed.
func (w *world) jobsPath() string { return "/apis/batch/v1/namespaces/" + w.NS + "/jobs" }

func (w *world) podsPath() string { return "/api/v1/namespaces/" + w.NS + "/pods" }

// lists returns how often the Jobs, or the Pods, of the namespace or of all were listed.
func (w *world) lists(resource string) int {
	path := w.podsPath()
	if resource == "jobs" {
		path = w.jobsPath()
	}
	return w.Requests.Count("GET "+path) + w.Requests.Count("GET "+strings.Replace(path, "/namespaces/"+w.NS, "", 1))
}

func TestTakeInventory(t *testing.T) {
	w := newWorld(t)
	j, key := w.CreateJob("pi")

	t.Run("of a Job that has never started is one GET", func(t *testing.T) {
		got := clustertest.Only[events.JobListed](t, w.act(key, effect.TakeInventory{ID: "i1", Job: "pi"}))
		if got.ID != "i1" || got.Name != "pi" || got.Job == nil || got.Job.UID != j.UID || got.Version != 0 || got.Pods != nil {
			t.Errorf("%+v", got)
		}
		if w.lists("jobs")+w.lists("pods") != 0 {
			t.Error("it was listed")
		}
	})

	j = w.StartJob(j)
	running := w.createPod(j, key, 0)
	loose := w.createPod(j, key, 1) // no longer held, and not finished
	w.act(key, effect.RemoveFinalizer{Name: loose.Name, UID: loose.UID})
	held := w.createPod(j, key, 2) // finished, and not counted
	w.EndPod(held.Name, corev1.PodFailed)
	settled := w.createPod(j, key, 3)
	w.EndPod(settled.Name, corev1.PodSucceeded)
	w.act(key, effect.RemoveFinalizer{Name: settled.Name, UID: settled.UID})
	other, otherKey := w.CreateJob("other")
	w.createPod(w.StartJob(other), otherKey, 0)

	snapshot := func(t *testing.T, got events.JobListed) {
		t.Helper()
		names := map[string]events.Pod{}
		for _, p := range got.Pods {
			names[p.Name] = p
		}
		if len(got.Pods) != 3 || names[running.Name].UID != running.UID || names[loose.Name].Held || names[held.Name].Phase != events.Failed {
			t.Errorf("Pods %+v", got.Pods)
		}
		if got.Name != "pi" || got.JobsVersion == 0 || got.Version < got.JobsVersion {
			t.Errorf("%+v", got)
		}
	}
	t.Run("holds the Pods that are held or unfinished", func(t *testing.T) {
		got := clustertest.Only[events.JobListed](t, w.act(key, effect.TakeInventory{ID: "i2", Job: "pi"}))
		snapshot(t, got)
		if got.ID != "i2" || got.Job == nil || got.Job.Status.StartTime == nil {
			t.Errorf("%+v", got)
		}
	})
	t.Run("needs no name", func(t *testing.T) {
		snapshot(t, clustertest.Only[events.JobListed](t, w.act(key, effect.TakeInventory{ID: "i3"})))
	})
	t.Run("of a Job that is gone, or another one, still shows its Pods", func(t *testing.T) {
		w.DeleteJob("pi")
		w.CreateJob("pi")
		got := clustertest.Only[events.JobListed](t, w.act(key, effect.TakeInventory{ID: "i4", Job: "pi"}))
		snapshot(t, got)
		if got.Job != nil {
			t.Errorf("%+v", got.Job)
		}
	})
	t.Run("of a Job that does not exist is empty", func(t *testing.T) {
		got := clustertest.Only[events.JobListed](t, w.act(events.Key{Function: "job", Namespace: w.NS, UID: someoneElse}, effect.TakeInventory{ID: "i5", Job: "x"}))
		if got.Job != nil || got.Pods != nil || got.JobsVersion == 0 || got.Version == 0 || got.Name != "x" {
			t.Errorf("%+v", got)
		}
	})
}

// TestInventoryIsShared holds the first list until all other callers have asked: these share the second one.
func TestInventoryIsShared(t *testing.T) {
	w := newWorld(t)
	j, key := w.CreateJob("pi", func(j *batchv1.Job) { j.Spec.Suspend = new(false) })
	w.StartJob(j)
	var lists atomic.Int32
	first, release := make(chan struct{}), make(chan struct{})
	answer := sync.OnceFunc(func() { close(release) })
	w.Requests.Inject(func(q *http.Request) (*http.Response, error) {
		if q.URL.Path == w.jobsPath() && lists.Add(1) == 1 {
			close(first)
			<-release
		}
		return nil, nil
	})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer answer()
	ask := func() {
		wg.Go(func() {
			facts, err := w.actor.Act(t.Context(), key, effect.TakeInventory{ID: "x"})
			if err != nil {
				t.Error(err)
				return
			}
			if got := clustertest.Only[events.JobListed](t, facts); got.Job == nil || got.Job.UID != key.UID {
				t.Errorf("%+v", got)
			}
		})
	}
	ask()
	<-first
	const many = 50
	for range many {
		ask()
	}
	clustertest.Eventually(t, func() string {
		w.actor.inventory[""].mu.Lock()
		defer w.actor.inventory[""].mu.Unlock()
		if r := w.actor.inventory[""].next; r == nil || r.waiting != many {
			return "all callers to ask"
		}
		return ""
	})
	answer()
	wg.Wait()
	if n := lists.Load(); n != 2 {
		t.Errorf("%d lists for %d who asked", n, many+1)
	}

	t.Run("one who leaves does not end it for others, and the last ends it", func(t *testing.T) {
		began, over := make(chan struct{}), make(chan struct{})
		w.Requests.Inject(func(q *http.Request) (*http.Response, error) {
			close(began)
			<-q.Context().Done()
			close(over)
			return nil, q.Context().Err()
		})
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			_, err := w.actor.Act(ctx, key, effect.TakeInventory{ID: "y"})
			left <- err
		}()
		<-began
		leave()
		if retry := (engine.Retry{}); !errors.As(<-left, &retry) || !errors.Is(retry, context.Canceled) {
			t.Errorf("%v", retry)
		}
		<-over
	})
	t.Run("begins again where the server forgets the version", func(t *testing.T) {
		var n atomic.Int32
		w.Requests.Inject(func(q *http.Request) (*http.Response, error) {
			if q.URL.Path == w.podsPath() && n.Add(1) == 1 {
				return clustertest.Answer(q, http.StatusGone, metav1.Status{Status: "Failure", Reason: metav1.StatusReasonExpired, Code: http.StatusGone}), nil
			}
			return nil, nil
		})
		before := w.lists("jobs")
		clustertest.Only[events.JobListed](t, w.act(key, effect.TakeInventory{ID: "z"}))
		if w.lists("jobs") != before+2 {
			t.Error("the Jobs were not listed again before the Pods")
		}
	})
	t.Run("is tried again later where the server cannot", func(t *testing.T) {
		w.Requests.Inject(func(*http.Request) (*http.Response, error) { return nil, errors.New("the cable is out") })
		_, err := w.actor.Act(t.Context(), key, effect.TakeInventory{ID: "z"})
		if retry := (engine.Retry{}); !errors.As(err, &retry) {
			t.Errorf("%v", err)
		}
	})
}

// A single caller has its own namespace listed and nothing else: a tenant who creates Pods of Jobs that do not exist pays for the
// lists there. Callers at the same time share one list of everything.
func TestInventoryOfOneNamespaceListsNoOther(t *testing.T) {
	w, other := newWorld(t), newWorld(t)
	j, key := w.CreateJob("pi")
	w.StartJob(j)
	clustertest.Only[events.JobListed](t, w.act(key, effect.TakeInventory{ID: "x"}))
	if n, everywhere := w.Requests.Count("GET "+w.podsPath()), w.Requests.Count("GET /api/v1/pods"); n != 1 || everywhere != 0 {
		t.Errorf("the namespace was listed %d times, everything %d times", n, everywhere)
	}
	r := &round{asked: map[cluster.Identity]struct{}{cluster.IdentityOfKey(key): {}, {Namespace: other.NS, UID: "u"}: {}}}
	if l := w.actor.inventory[""].within(r); l.Namespace != "" {
		t.Errorf("of two namespaces only %q is listed", l.Namespace)
	}
}

// TestTakeInventoryOfManyPods reads more Pods than a page holds.
func TestTakeInventoryOfManyPods(t *testing.T) {
	if testing.Short() {
		t.Skip("creates hundreds of Pods")
	}
	w := newWorld(t)
	j, key := w.CreateJob("wide")
	j = w.StartJob(j)
	const many = cluster.PageSize + 20
	g, ctx := errgroup.WithContext(t.Context())
	for serial := range many {
		g.Go(func() error {
			_, err := w.actor.Act(ctx, key, clustertest.CreateEffect(j, serial))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	got := clustertest.Only[events.JobListed](t, w.act(key, effect.TakeInventory{ID: "i"}))
	serials := map[int]bool{}
	for _, p := range got.Pods {
		serials[p.Serial] = true
	}
	if len(serials) != many || len(got.Pods) != many || w.lists("pods") < 2 {
		t.Errorf("%d Pods, %d serials, %d pages", len(got.Pods), len(serials), w.lists("pods"))
	}
}

// TestListsArePaged: every page asks for the next one of the same list.
func TestListsArePaged(t *testing.T) {
	fetched := 0
	v, err := cluster.Pages(t.Context(), func(_ context.Context, o metav1.ListOptions) (*corev1.PodList, error) {
		fetched++
		l := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "77"}}
		switch {
		case o.Limit != cluster.PageSize || o.LabelSelector != "l":
			t.Errorf("options %+v", o)
		case o.Continue == "":
			l.Continue = "more"
		case o.Continue == "more":
			l.Continue = "and more"
		}
		return l, nil
	}, "l", func(*corev1.PodList) error { return nil })
	if v != 77 || err != nil || fetched != 3 {
		t.Errorf("version %d, error %v, %d pages", v, err, fetched)
	}
}

// TestInventoriesOfKinds: the inventory of a Job does not depend on ScheduledJobs, and that of a ScheduledJob not on Pods, also
// if both are taken at the same time.
func TestInventoriesOfKinds(t *testing.T) {
	w := newWorld(t)
	j, pi := w.CreateJob("pi")
	w.StartJob(j)
	sj, nightly := w.CreateSchedule("nightly")
	both := func(fails string) (ofJob, ofSchedule []events.Event, jobErr, scheduleErr error) {
		first, release := make(chan struct{}), make(chan struct{})
		var lists atomic.Int32
		w.Requests.Inject(func(q *http.Request) (*http.Response, error) {
			if strings.HasSuffix(q.URL.Path, "/jobs") && lists.Add(1) == 1 {
				close(first)
				<-release
			}
			if strings.HasSuffix(q.URL.Path, fails) {
				return clustertest.Answer(q, http.StatusServiceUnavailable, clustertest.EtcdAway), nil
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
		if err != nil || clustertest.Only[events.JobListed](t, ofJob).Job == nil {
			t.Errorf("%+v, %v", ofJob, err)
		}
		if retry := (engine.Retry{}); !errors.As(later, &retry) {
			t.Errorf("%v", later)
		}
	})
	t.Run("Pods cannot be listed", func(t *testing.T) {
		_, ofSchedule, later, err := both("/pods")
		if err != nil || clustertest.Only[events.ScheduleListed](t, ofSchedule).ScheduledJob.UID != sj.UID {
			t.Errorf("%+v, %v", ofSchedule, err)
		}
		if retry := (engine.Retry{}); !errors.As(later, &retry) {
			t.Errorf("%v", later)
		}
	})
}

// An inventory tells a Job that it is beyond the limit of adopting Jobs, though the Job is the only one asked for.
func TestInventoryOfOneJobTooMany(t *testing.T) {
	w := newWorld(t)
	keys := make([]events.Key, events.MaxAdoptingJobs+1)
	for n := range keys {
		_, keys[n] = w.CreateJob(fmt.Sprintf("j%02d", n), clustertest.Picky("pi"))
	}
	orphan := w.ForeignPod("orphan", map[string]string{"app": "pi"})
	late := 0
	for _, key := range keys {
		r := clustertest.Only[events.JobListed](t, w.act(key, effect.TakeInventory{ID: "i"}))
		if r.AdoptsNone {
			late++
		}
		if shown := len(r.Pods) == 1 && r.Pods[0].UID == orphan.UID; shown == r.AdoptsNone {
			t.Errorf("%+v", r)
		}
	}
	if late != 1 {
		t.Errorf("%d come too late", late)
	}
}
