package act

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/scheduledjob"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
	"github.com/jobstream/jobstream/internal/engine"
)

func scheduleStatusEffect(j *v1alpha1.ScheduledJob, reports ...effect.Report) effect.WriteScheduleStatus {
	until := metav1.NewTime(clustertest.Noon)
	return effect.WriteScheduleStatus{ScheduledJob: j.Name, Version: events.Version(j.ResourceVersion), Reports: reports,
		Status: v1alpha1.ScheduledJobStatus{ObservedGeneration: j.Generation, DecidedUntil: &until, Successful: 2,
			Active: []corev1.ObjectReference{{Name: "a-job", UID: someoneElse}}}}
}

func TestWriteScheduleStatus(t *testing.T) {
	w := newWorld(t)
	recorder := NewRecorder(w.Interface, "jobstream")
	defer recorder.Close()
	w.actor.recorder = recorder
	sj, key := w.CreateSchedule("nightly")

	t.Run("and only that", func(t *testing.T) {
		saw := clustertest.Only[events.ScheduledJobObserved](t, w.act(key, scheduleStatusEffect(sj, effect.Report{Reason: "SawCompletedJob", Message: "Saw completed job: x"}))).ScheduledJob
		live := w.LiveSchedule("nightly")
		if saw.Version != events.Version(live.ResourceVersion) || !saw.Status.DecidedUntil.Time.Equal(clustertest.Noon) || saw.Status.Successful != 2 {
			t.Errorf("saw %+v", saw)
		}
		if live.Status.Active[0].Name != "a-job" || live.Generation != sj.Generation || live.Spec.Schedule != sj.Spec.Schedule || live.Spec.JobTemplate.Spec.Template.Spec.Containers[0].Image != "none" {
			t.Errorf("is %+v", live)
		}
		clustertest.Eventually(t, func() string {
			list, err := w.CoreV1().Events(w.NS).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if len(list.Items) == 0 {
				return "the Event"
			}
			about := list.Items[0].InvolvedObject
			if about.Kind != "ScheduledJob" || about.APIVersion != "jobstream.dev/v1alpha1" || about.UID != key.UID || about.Name != "nightly" {
				t.Errorf("the Event is about %+v", about)
			}
			return ""
		})
	})
	t.Run("again without reading it again", func(t *testing.T) {
		before := len(w.Requests.Seen)
		clustertest.Only[events.ScheduledJobObserved](t, w.act(key, scheduleStatusEffect(w.LiveSchedule("nightly"))))
		if requests := w.Requests.Seen[before:]; len(requests) != 1 || !strings.HasPrefix(requests[0], "PUT ") {
			t.Errorf("%q", requests)
		}
	})
	t.Run("not onto one that has moved on", func(t *testing.T) {
		old := w.LiveSchedule("nightly") // which the Actor has cached
		edited := w.EditSchedule("nightly", func(j *v1alpha1.ScheduledJob) { j.Spec.Suspend = new(true) })
		e := scheduleStatusEffect(old)
		e.Status.Successful = 99
		for range 2 { // at first by a conflict, then from the cache
			saw := clustertest.Only[events.ScheduledJobObserved](t, w.act(key, e)).ScheduledJob
			if !saw.Suspended || saw.Version != events.Version(edited.ResourceVersion) || w.LiveSchedule("nightly").Status.Successful == 99 {
				t.Errorf("%+v", saw)
			}
		}
	})
	t.Run("not onto one that is gone, or another one", func(t *testing.T) {
		gone, key := w.expiredSchedule("gone", 0)
		w.DeleteSchedule("gone")
		clustertest.Only[events.ScheduledJobGone](t, w.act(key, scheduleStatusEffect(gone)))
		again, _ := w.expiredSchedule("gone", 0)
		clustertest.Only[events.ScheduledJobGone](t, w.act(key, scheduleStatusEffect(again)))
		if w.LiveSchedule("gone").Status.DecidedUntil != nil {
			t.Error("another one got the status")
		}
	})
	t.Run("that the server finds invalid is said", func(t *testing.T) {
		e := scheduleStatusEffect(w.LiveSchedule("nightly"))
		e.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "Perhaps", Reason: "X", LastTransitionTime: metav1.NewTime(clustertest.Noon)}}
		if refused := clustertest.Only[events.EffectRefused](t, w.act(key, e)); refused.Effect != "WriteScheduleStatus" || !strings.Contains(refused.Message, "status.conditions") {
			t.Errorf("%+v", refused)
		}
		clustertest.Eventually(t, func() string {
			list, err := w.CoreV1().Events(w.NS).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if slices.ContainsFunc(list.Items, func(e corev1.Event) bool { return e.Reason == "FailedStatusUpdate" && e.InvolvedObject.UID == key.UID }) {
				return ""
			}
			return "an Event"
		})
	})
	t.Run("a server that cannot answer is complained about", func(t *testing.T) {
		w.Requests.Inject(func(*http.Request) (*http.Response, error) { return nil, errors.New("the cable is out") })
		defer w.Requests.Inject(nil)
		_, err := w.actor.Act(t.Context(), key, scheduleStatusEffect(w.LiveSchedule("nightly")))
		if retry := (engine.Retry{}); !errors.As(err, &retry) {
			t.Errorf("%v", err)
		}
		clustertest.Eventually(t, func() string {
			list, err := w.CoreV1().Events(w.NS).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if slices.ContainsFunc(list.Items, func(e corev1.Event) bool {
				return e.Reason == "FailedUpdate" && e.InvolvedObject.Name == "nightly" && e.InvolvedObject.Kind == "ScheduledJob"
			}) {
				return ""
			}
			return "an Event"
		})
	})
}

// expiredSchedule creates a ScheduledJob that has run once, and whose time to live, in seconds, counts from the Actor's clock.
func (w *world) expiredSchedule(name string, ttl int32) (*v1alpha1.ScheduledJob, events.Key) {
	w.Helper()
	j, key := w.CreateSchedule(name, func(j *v1alpha1.ScheduledJob) {
		j.Spec.Schedule, j.Spec.RunAt, j.Spec.TTLSecondsAfterFinished = "", new(metav1.NewTime(time.Unix(900, 0))), &ttl
	})
	return w.SettleSchedule(name, func(s *v1alpha1.ScheduledJobStatus) {
		s.ObservedGeneration = j.Generation
		s.Conditions = []metav1.Condition{{Type: v1alpha1.FinishedCondition, Status: metav1.ConditionTrue, Reason: "Done", LastTransitionTime: metav1.NewTime(time.Unix(1000, 0))}}
	}), key
}

func TestDeleteScheduledJob(t *testing.T) {
	w := newWorld(t)
	del := func(j *v1alpha1.ScheduledJob) effect.DeleteScheduledJob {
		return effect.DeleteScheduledJob{ScheduledJob: j.Name, Version: events.Version(j.ResourceVersion)}
	}
	sj, key := w.expiredSchedule("once", 0)

	t.Run("not one whose time to live is not over", func(t *testing.T) {
		sj, key := w.expiredSchedule("young", 3600)
		if saw := clustertest.Only[events.ScheduledJobObserved](t, w.act(key, del(sj))).ScheduledJob; saw.Deleting {
			t.Errorf("%+v", saw)
		}
	})
	t.Run("nor one that runs again and again", func(t *testing.T) {
		sj, key := w.CreateSchedule("nightly")
		if saw := clustertest.Only[events.ScheduledJobObserved](t, w.act(key, del(sj))).ScheduledJob; saw.Deleting {
			t.Errorf("%+v", saw)
		}
	})
	t.Run("not if a user has changed it meanwhile", func(t *testing.T) {
		edited := w.EditSchedule("once", func(j *v1alpha1.ScheduledJob) { j.Spec.Suspend = new(true) })
		if saw := clustertest.Only[events.ScheduledJobObserved](t, w.act(key, del(sj))).ScheduledJob; saw.Deleting || saw.Version != events.Version(edited.ResourceVersion) {
			t.Errorf("%+v", saw)
		}
		if saw := clustertest.Only[events.ScheduledJobObserved](t, w.act(key, del(edited))).ScheduledJob; saw.Deleting {
			t.Errorf("its generation has not been observed: %+v", saw)
		}
		sj = w.SettleSchedule("once", func(s *v1alpha1.ScheduledJobStatus) { s.ObservedGeneration = edited.Generation })
	})
	t.Run("in the foreground", func(t *testing.T) {
		for range 2 {
			if saw := clustertest.Only[events.ScheduledJobObserved](t, w.act(key, del(sj))).ScheduledJob; !saw.Deleting {
				t.Errorf("%+v", saw)
			}
		}
		if live := w.LiveSchedule("once"); !slices.Contains(live.Finalizers, metav1.FinalizerDeleteDependents) {
			t.Errorf("%+v", live.ObjectMeta)
		}
	})
	t.Run("one that is gone, or another one", func(t *testing.T) {
		gone, key := w.CreateSchedule("gone")
		w.DeleteSchedule("gone")
		clustertest.Only[events.ScheduledJobGone](t, w.act(key, del(gone)))
		again, _ := w.CreateSchedule("gone")
		clustertest.Only[events.ScheduledJobGone](t, w.act(key, del(again)))
		if w.LiveSchedule("gone").DeletionTimestamp != nil {
			t.Error("another one was deleted")
		}
	})
}

// TestWithoutAClientOfScheduledJobs: an Actor for Jobs only returns an error, and does nothing else.
func TestWithoutAClientOfScheduledJobs(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.ScheduledJobs = nil })
	key := events.Key{Function: scheduledjob.Name, Namespace: w.NS, UID: someoneElse}
	for _, e := range []effect.Effect{effect.CreateJob{}, effect.FindRun{}, effect.DeleteRun{}, effect.WriteScheduleStatus{}, effect.DeleteScheduledJob{}, effect.TakeInventory{}} {
		if facts, err := w.actor.Act(t.Context(), key, e); len(facts) != 0 || err == nil || !strings.Contains(err.Error(), "Config.ScheduledJobs") {
			t.Errorf("%s: %v, %v", e.Kind(), facts, err)
		}
	}
}
