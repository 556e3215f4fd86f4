package act

import (
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/scheduledjob"
	"github.com/jobstream/jobstream/internal/cluster"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
)

// TestScheduledJobThatCannotBeRead: one that does not fit the Go types does not block any other.
func TestScheduledJobThatCannotBeRead(t *testing.T) {
	const bad, good = `{"apiVersion":"jobstream.dev/v1alpha1","kind":"ScheduledJob",
		"metadata":{"name":"leap","namespace":"ns","uid":"u1","resourceVersion":"7","generation":3,"creationTimestamp":"2026-11-21T12:00:00Z"},
		"spec":{"runAt":"2026-02-30T00:00:00Z"},"status":{"observedGeneration":2}}`,
		`{"apiVersion":"jobstream.dev/v1alpha1","kind":"ScheduledJob","metadata":{"name":"good","namespace":"ns","uid":"u2","resourceVersion":"8"},"spec":{"schedule":"@daily"}}`
	w := newWorld(t)
	w.Requests.Inject(func(q *http.Request) (*http.Response, error) {
		if !strings.Contains(q.URL.Path, "/scheduledjobs") {
			return nil, nil
		}
		a := clustertest.Answer(q, http.StatusOK, metav1.Status{})
		body := `{"apiVersion":"jobstream.dev/v1alpha1","kind":"ScheduledJobList","metadata":{"resourceVersion":"9"},"items":[` + bad + "," + good + `]}`
		switch {
		case clustertest.IsWatch(q, "scheduledjobs"):
			body = `{"type":"MODIFIED","object":` + bad + "}\n" + `{"type":"ADDED","object":` + good + "}\n"
		case strings.HasSuffix(q.URL.Path, "/leap"):
			body = bad
		}
		a.Body = io.NopCloser(strings.NewReader(body))
		return a, nil
	})
	isBad := func(j events.ScheduledJob) bool {
		return j.Name == "leap" && j.UID == "u1" && j.Version == 7 && j.Generation == 3 && j.Created.Equal(clustertest.Noon) && j.Status.ObservedGeneration == 2 &&
			strings.HasPrefix(j.Invalid, "the spec cannot be read: ") && strings.Contains(j.Invalid, "out of range")
	}
	key := events.Key{Function: scheduledjob.Name, Namespace: "ns", UID: "u1"}
	if j := clustertest.Only[events.ScheduleListed](t, w.act(key, effect.TakeInventory{ID: "x"})).ScheduledJob; j == nil || !isBad(*j) {
		t.Errorf("listed %+v", j)
	}
	key.UID = "u2"
	if j := clustertest.Only[events.ScheduleListed](t, w.act(key, effect.TakeInventory{ID: "x"})).ScheduledJob; j == nil || j.Schedule != "@daily" || j.Invalid != "" {
		t.Errorf("listed %+v", j)
	}
	key.UID = "u1" // at another version than the effect knows
	if j := clustertest.Only[events.ScheduledJobObserved](t, w.act(key, effect.WriteScheduleStatus{ScheduledJob: "leap", Version: 6})).ScheduledJob; !isBad(j) {
		t.Errorf("got %+v", j)
	}
	stream, err := w.actor.schedules.In("").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Stop()
	if j := (<-stream.ResultChan()).Object.(*cluster.ScheduledJob); !isBad(j.Project()) {
		t.Errorf("watched %+v", j)
	}
	if j := (<-stream.ResultChan()).Object.(*cluster.ScheduledJob); j.Name != "good" || j.Project().Invalid != "" {
		t.Errorf("watched %+v", j)
	}
}

// TestStatusOfAScheduledJobThatCannotBeRead: its status can report what is wrong. The schema accepts this quantity.
func TestStatusOfAScheduledJobThatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	body := `{"apiVersion":"jobstream.dev/v1alpha1","kind":"ScheduledJob","metadata":{"name":"odd"},"spec":{"schedule":"@daily","jobTemplate":{"spec":{"template":
		{"spec":{"restartPolicy":"Never","containers":[{"name":"main","image":"none","resources":{"requests":{"cpu":"1e1.5"}}}]}}}}}}`
	sj := w.Schedule(w.Admin.RESTClient().Post().Body([]byte(body)))
	key := events.Key{Function: scheduledjob.Name, Namespace: w.NS, UID: sj.UID}
	saw := clustertest.Only[events.ScheduledJobObserved](t, w.act(key, scheduleStatusEffect(sj))).ScheduledJob
	if saw.Status.Successful != 2 || !strings.Contains(saw.Invalid, "cannot be read") {
		t.Errorf("%+v", saw)
	}
	raw, err := w.Admin.RESTClient().Get().Namespace(w.NS).Resource(v1alpha1.ScheduledJobResource).Name("odd").Do(t.Context()).Raw()
	if err != nil || !strings.Contains(string(raw), "1e1.5") || !strings.Contains(string(raw), "@daily") {
		t.Errorf("its spec was changed: %s, %v", raw, err)
	}
}
