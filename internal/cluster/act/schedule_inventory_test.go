package act

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/scheduledjob"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
	"github.com/jobstream/jobstream/internal/engine"
)

func TestTakeScheduleInventory(t *testing.T) {
	w := newWorld(t)
	sj, key := w.CreateSchedule("nightly")
	running := w.MakeRun(sj, clustertest.Noon)
	done := w.Finish(w.StartJob(w.MakeRun(sj, clustertest.Noon.Add(time.Hour))))
	other, _ := w.CreateSchedule("other")
	w.MakeRun(other, clustertest.Noon)
	w.CreateJob("stranger")

	t.Run("shows all its Jobs, and lists no Pods", func(t *testing.T) {
		r := clustertest.Only[events.ScheduleListed](t, w.act(key, effect.TakeInventory{ID: "i1", Job: "nightly"}))
		results := map[string]events.RunResult{}
		for _, run := range r.Runs {
			results[run.Name] = run.Result
		}
		if len(r.Runs) != 2 || results[running.Name] != "" || results[done.Name] != events.RunComplete {
			t.Errorf("Jobs %+v", r.Runs)
		}
		if r.ID != "i1" || r.Name != "nightly" || r.ScheduledJob == nil || r.ScheduledJob.UID != sj.UID || r.SchedulesVersion == 0 || r.Version < events.Version(done.ResourceVersion) {
			t.Errorf("%+v", r)
		}
		if n := w.lists("pods"); n != 0 {
			t.Errorf("Pods were listed %d times", n)
		}
	})
	t.Run("of a Job lists no ScheduledJobs", func(t *testing.T) {
		j, key := w.CreateJob("pi")
		w.StartJob(j)
		before := w.Requests.Count("GET /apis/jobstream.dev/v1alpha1/namespaces/" + w.NS + "/scheduledjobs")
		clustertest.Only[events.JobListed](t, w.act(key, effect.TakeInventory{ID: "i2", Job: "pi"}))
		if after := w.Requests.Count("GET /apis/jobstream.dev/v1alpha1/namespaces/" + w.NS + "/scheduledjobs"); after != before {
			t.Error("they were listed")
		}
	})
	t.Run("of one that does not exist", func(t *testing.T) {
		unknown := events.Key{Function: scheduledjob.Name, Namespace: w.NS, UID: someoneElse}
		r := clustertest.Only[events.ScheduleListed](t, w.act(unknown, effect.TakeInventory{ID: "i3", Job: "x"}))
		if r.ScheduledJob != nil || r.Runs != nil || r.Name != "x" || r.SchedulesVersion == 0 {
			t.Errorf("%+v", r)
		}
	})
	var code int
	var reason metav1.StatusReason
	w.Requests.Inject(func(q *http.Request) (*http.Response, error) {
		if strings.HasSuffix(q.URL.Path, "/scheduledjobs") {
			return clustertest.Answer(q, code, metav1.Status{Status: "Failure", Code: int32(code), Reason: reason, Message: "no"}), nil
		}
		return nil, nil
	})
	defer w.Requests.Inject(nil)
	t.Run("where the kind is gone, so is the ScheduledJob", func(t *testing.T) {
		code, reason = http.StatusNotFound, metav1.StatusReasonNotFound
		if r := clustertest.Only[events.ScheduleListed](t, w.act(key, effect.TakeInventory{ID: "i4", Job: "nightly"})); r.ScheduledJob != nil || r.ID != "i4" || len(r.Runs) != 2 {
			t.Errorf("%+v", r)
		}
	})
	t.Run("where the reconciler may not read it, nothing is known", func(t *testing.T) {
		code, reason = http.StatusForbidden, metav1.StatusReasonForbidden
		if refused := clustertest.Only[events.EffectRefused](t, w.act(key, effect.TakeInventory{ID: "i5", Job: "nightly"})); refused.Effect != "TakeInventory" || refused.Reason != "Forbidden" {
			t.Errorf("%+v", refused)
		}
	})
	t.Run("where the server cannot, it is tried again", func(t *testing.T) {
		code, reason = http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable
		_, err := w.actor.Act(t.Context(), key, effect.TakeInventory{ID: "i6"})
		if retry := (engine.Retry{}); !errors.As(err, &retry) {
			t.Errorf("%v", err)
		}
	})
}
