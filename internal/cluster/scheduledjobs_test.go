package cluster

import (
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// TestScheduledJobThatCannotBeRead: one that no types can hold is in the way of no other.
func TestScheduledJobThatCannotBeRead(t *testing.T) {
	const bad, good = `{"apiVersion":"jobstream.dev/v1alpha1","kind":"ScheduledJob",
		"metadata":{"name":"leap","namespace":"ns","uid":"u1","resourceVersion":"7","generation":3,"creationTimestamp":"2026-11-21T12:00:00Z"},
		"spec":{"runAt":"2026-02-30T00:00:00Z"},"status":{"observedGeneration":2}}`,
		`{"apiVersion":"jobstream.dev/v1alpha1","kind":"ScheduledJob","metadata":{"name":"good","namespace":"ns","uid":"u2","resourceVersion":"8"},"spec":{"schedule":"@daily"}}`
	w := newWorld(t)
	w.requests.inject(func(q *http.Request) (*http.Response, error) {
		if !strings.Contains(q.URL.Path, "/scheduledjobs") {
			return nil, nil
		}
		a := answer(q, http.StatusOK, metav1.Status{})
		body := `{"apiVersion":"jobstream.dev/v1alpha1","kind":"ScheduledJobList","metadata":{"resourceVersion":"9"},"items":[` + bad + "," + good + `]}`
		switch {
		case isWatch(q, "scheduledjobs"):
			body = `{"type":"MODIFIED","object":` + bad + "}\n" + `{"type":"ADDED","object":` + good + "}\n"
		case strings.HasSuffix(q.URL.Path, "/leap"):
			body = bad
		}
		a.Body = io.NopCloser(strings.NewReader(body))
		return a, nil
	})
	isBad := func(j events.ScheduledJob) bool {
		return j.Name == "leap" && j.UID == "u1" && j.Version == 7 && j.Generation == 3 && j.Created.Equal(noon) && j.Status.ObservedGeneration == 2 &&
			strings.HasPrefix(j.Invalid, "the spec cannot be read: ") && strings.Contains(j.Invalid, "out of range")
	}
	key := events.Key{Function: scheduledJobFunction, Namespace: "ns", UID: "u1"}
	if j := only[events.ScheduleListed](t, w.act(key, effect.TakeInventory{ID: "x"})).ScheduledJob; j == nil || !isBad(*j) {
		t.Errorf("listed %+v", j)
	}
	key.UID = "u2"
	if j := only[events.ScheduleListed](t, w.act(key, effect.TakeInventory{ID: "x"})).ScheduledJob; j == nil || j.Schedule != "@daily" || j.Invalid != "" {
		t.Errorf("listed %+v", j)
	}
	key.UID = "u1" // at another version than the effect knows
	if j := only[events.ScheduledJobObserved](t, w.act(key, effect.WriteScheduleStatus{ScheduledJob: "leap", Version: 6})).ScheduledJob; !isBad(j) {
		t.Errorf("got %+v", j)
	}
	stream, err := w.actor.schedules.in("").watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Stop()
	if j := (<-stream.ResultChan()).Object.(*wireScheduledJob); !isBad(j.project()) {
		t.Errorf("watched %+v", j)
	}
	if j := (<-stream.ResultChan()).Object.(*wireScheduledJob); j.Name != "good" || j.unreadable != "" {
		t.Errorf("watched %+v", j)
	}
}

// TestStatusOfAScheduledJobThatCannotBeRead: it can be told what is wrong. The schema takes this quantity for one.
func TestStatusOfAScheduledJobThatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	body := `{"apiVersion":"jobstream.dev/v1alpha1","kind":"ScheduledJob","metadata":{"name":"odd"},"spec":{"schedule":"@daily","jobTemplate":{"spec":{"template":
		{"spec":{"restartPolicy":"Never","containers":[{"name":"main","image":"none","resources":{"requests":{"cpu":"1e1.5"}}}]}}}}}}`
	sj := w.schedule(w.schedules.rest.Post().Body([]byte(body)))
	key := events.Key{Function: scheduledJobFunction, Namespace: w.ns, UID: sj.UID}
	saw := only[events.ScheduledJobObserved](t, w.act(key, scheduleStatusEffect(sj))).ScheduledJob
	if saw.Status.Successful != 2 || !strings.Contains(saw.Invalid, "cannot be read") {
		t.Errorf("%+v", saw)
	}
	raw, err := w.schedules.rest.Get().Namespace(w.ns).Resource(v1alpha1.ScheduledJobResource).Name("odd").Do(t.Context()).Raw()
	if err != nil || !strings.Contains(string(raw), "1e1.5") || !strings.Contains(string(raw), "@daily") {
		t.Errorf("its spec was changed: %s, %v", raw, err)
	}
}
