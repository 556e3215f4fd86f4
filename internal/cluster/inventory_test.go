package cluster

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/engine"
)

// jobsPath and podsPath are the paths of the lists of the test's namespace: where nobody else asks, no other is listed.
func (w *world) jobsPath() string { return "/apis/batch/v1/namespaces/" + w.ns + "/jobs" }

func (w *world) podsPath() string { return "/api/v1/namespaces/" + w.ns + "/pods" }

// lists is how often the Jobs, or the Pods, of the namespace were listed, or of all.
func (w *world) lists(resource string) int {
	path := w.podsPath()
	if resource == "jobs" {
		path = w.jobsPath()
	}
	return w.requests.count("GET "+path) + w.requests.count("GET "+strings.Replace(path, "/namespaces/"+w.ns, "", 1))
}

func TestTakeInventory(t *testing.T) {
	w := newWorld(t)
	j, key := w.createJob("pi")

	t.Run("of a Job that has never started is one GET", func(t *testing.T) {
		got := only[events.JobListed](t, w.act(key, effect.TakeInventory{ID: "i1", Job: "pi"}))
		if got.ID != "i1" || got.Name != "pi" || got.Job == nil || got.Job.UID != j.UID || got.Version != 0 || got.Pods != nil {
			t.Errorf("%+v", got)
		}
		if w.lists("jobs")+w.lists("pods") != 0 {
			t.Error("it was listed")
		}
	})

	j = w.startJob(j)
	running := w.createPod(j, key, 0)
	loose := w.createPod(j, key, 1) // released, and not finished
	w.act(key, effect.RemoveFinalizer{Name: loose.Name, UID: loose.UID})
	held := w.createPod(j, key, 2) // finished, and not counted
	w.endPod(held.Name, corev1.PodFailed)
	settled := w.createPod(j, key, 3)
	w.endPod(settled.Name, corev1.PodSucceeded)
	w.act(key, effect.RemoveFinalizer{Name: settled.Name, UID: settled.UID})
	other, otherKey := w.createJob("other")
	w.createPod(w.startJob(other), otherKey, 0)

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
		got := only[events.JobListed](t, w.act(key, effect.TakeInventory{ID: "i2", Job: "pi"}))
		snapshot(t, got)
		if got.ID != "i2" || got.Job == nil || got.Job.Status.StartTime == nil {
			t.Errorf("%+v", got)
		}
	})
	t.Run("needs no name", func(t *testing.T) {
		snapshot(t, only[events.JobListed](t, w.act(key, effect.TakeInventory{ID: "i3"})))
	})
	t.Run("of a Job that is gone, or another one, still shows its Pods", func(t *testing.T) {
		w.deleteJob("pi")
		w.createJob("pi")
		got := only[events.JobListed](t, w.act(key, effect.TakeInventory{ID: "i4", Job: "pi"}))
		snapshot(t, got)
		if got.Job != nil {
			t.Errorf("%+v", got.Job)
		}
	})
	t.Run("of a Job that nobody knows is empty", func(t *testing.T) {
		got := only[events.JobListed](t, w.act(events.Key{Function: "job", Namespace: w.ns, UID: someoneElse}, effect.TakeInventory{ID: "i5", Job: "x"}))
		if got.Job != nil || got.Pods != nil || got.JobsVersion == 0 || got.Version == 0 || got.Name != "x" {
			t.Errorf("%+v", got)
		}
	})
}

// TestInventoryIsShared holds the first list until everybody else has asked: these share the second one.
func TestInventoryIsShared(t *testing.T) {
	w := newWorld(t)
	j, key := w.createJob("pi", func(j *batchv1.Job) { j.Spec.Suspend = new(false) })
	w.startJob(j)
	var lists atomic.Int32
	first, release := make(chan struct{}), make(chan struct{})
	w.requests.inject(func(q *http.Request) (*http.Response, error) {
		if q.URL.Path == w.jobsPath() && lists.Add(1) == 1 {
			close(first)
			<-release
		}
		return nil, nil
	})
	var wg sync.WaitGroup
	ask := func() {
		wg.Go(func() {
			facts, err := w.actor.Act(t.Context(), key, effect.TakeInventory{ID: "x"})
			if err != nil {
				t.Error(err)
				return
			}
			if got := only[events.JobListed](t, facts); got.Job == nil || got.Job.UID != key.UID {
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
	eventually(t, func() string {
		w.actor.inventory[""].mu.Lock()
		defer w.actor.inventory[""].mu.Unlock()
		if r := w.actor.inventory[""].next; r == nil || r.waiting != many {
			return "everybody to ask"
		}
		return ""
	})
	close(release)
	wg.Wait()
	if n := lists.Load(); n != 2 {
		t.Errorf("%d lists for %d who asked", n, many+1)
	}

	t.Run("one who leaves does not end it for others, and the last ends it", func(t *testing.T) {
		began, over := make(chan struct{}), make(chan struct{})
		w.requests.inject(func(q *http.Request) (*http.Response, error) {
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
		w.requests.inject(func(q *http.Request) (*http.Response, error) {
			if q.URL.Path == w.podsPath() && n.Add(1) == 1 {
				return answer(q, http.StatusGone, metav1.Status{Status: "Failure", Reason: metav1.StatusReasonExpired, Code: http.StatusGone}), nil
			}
			return nil, nil
		})
		before := w.lists("jobs")
		only[events.JobListed](t, w.act(key, effect.TakeInventory{ID: "z"}))
		if w.lists("jobs") != before+2 {
			t.Error("the Jobs were not listed again before the Pods")
		}
	})
	t.Run("is tried again later where the server cannot", func(t *testing.T) {
		w.requests.inject(func(*http.Request) (*http.Response, error) { return nil, errors.New("the cable is out") })
		_, err := w.actor.Act(t.Context(), key, effect.TakeInventory{ID: "z"})
		if retry := (engine.Retry{}); !errors.As(err, &retry) {
			t.Errorf("%v", err)
		}
	})
}

// Who asks alone has its own namespace listed, and nothing else: a tenant who makes Pods of Jobs that do not exist pays for it
// there. Those who ask together share one list of everything.
func TestInventoryOfOneNamespaceListsNoOther(t *testing.T) {
	w, other := newWorld(t), newWorld(t)
	j, key := w.createJob("pi")
	w.startJob(j)
	only[events.JobListed](t, w.act(key, effect.TakeInventory{ID: "x"}))
	if n, everywhere := w.requests.count("GET "+w.podsPath()), w.requests.count("GET /api/v1/pods"); n != 1 || everywhere != 0 {
		t.Errorf("the namespace was listed %d times, everything %d times", n, everywhere)
	}
	r := &round{asked: map[identity]struct{}{ofKey(key): {}, {other.ns, "u"}: {}}}
	if l := w.actor.inventory[""].within(r); l.namespace != "" {
		t.Errorf("of two namespaces only %q is listed", l.namespace)
	}
}

// answer is what an API server says in JSON.
func answer(q *http.Request, code int, status metav1.Status) *http.Response {
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return &http.Response{StatusCode: code, Request: q, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(jsonOf(status)))}
}

// TestTakeInventoryOfManyPods reads more Pods than a page holds.
func TestTakeInventoryOfManyPods(t *testing.T) {
	if testing.Short() {
		t.Skip("creates hundreds of Pods")
	}
	w := newWorld(t)
	j, key := w.createJob("wide")
	j = w.startJob(j)
	const many = pageSize + 20
	g, ctx := errgroup.WithContext(t.Context())
	for serial := range many {
		g.Go(func() error {
			_, err := w.actor.Act(ctx, key, createEffect(j, serial))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	got := only[events.JobListed](t, w.act(key, effect.TakeInventory{ID: "i"}))
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
	v, err := pages(t.Context(), func(_ context.Context, o metav1.ListOptions) (*corev1.PodList, error) {
		fetched++
		l := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "77"}}
		switch {
		case o.Limit != pageSize || o.LabelSelector != "l":
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
