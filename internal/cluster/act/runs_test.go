package act

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
	"github.com/jobstream/jobstream/internal/engine"
)

func TestCreateJob(t *testing.T) {
	w := newWorld(t)
	sj, key := w.CreateSchedule("nightly", func(j *v1alpha1.ScheduledJob) { j.Spec.TimeZone = new("Asia/Kolkata") })
	e := clustertest.CreateJobEffect(sj, clustertest.Noon)
	gets := "GET /apis/jobstream.dev/v1alpha1/namespaces/" + w.NS + "/scheduledjobs/nightly"

	t.Run("from the template", func(t *testing.T) {
		run := clustertest.Only[events.RunObserved](t, w.act(key, e)).Run
		j := w.LiveJob(e.Name)
		if run.Name != e.Name || run.UID != j.UID || !run.Nominal.Equal(clustertest.Noon) || run.Version != events.Version(j.ResourceVersion) || run.Result != "" {
			t.Errorf("saw %+v", run)
		}
		if !metav1.IsControlledBy(j, sj) || *j.Spec.ManagedBy != v1alpha1.DefaultManagedBy ||
			j.Annotations[batchv1.CronJobScheduledTimestampAnnotation] != "2026-11-21T17:30:00+05:30" ||
			j.Spec.Template.Annotations[v1alpha1.ScheduledJobAnnotation] != "nightly" {
			t.Errorf("made %+v", j)
		}
	})
	t.Run("once", func(t *testing.T) {
		again := clustertest.Only[events.RunObserved](t, w.act(key, e)).Run
		if again.UID != w.LiveJob(e.Name).UID {
			t.Errorf("%+v", again)
		}
	})
	t.Run("with one look at the ScheduledJob for many", func(t *testing.T) {
		before := w.Requests.Count(gets)
		for i := range 3 {
			clustertest.Only[events.RunObserved](t, w.act(key, clustertest.CreateJobEffect(sj, clustertest.Noon.Add(time.Duration(i+1)*time.Hour))))
		}
		if after := w.Requests.Count(gets); after != before {
			t.Errorf("it was read %d times more", after-before)
		}
	})
	t.Run("with the template as it is now", func(t *testing.T) {
		sj = w.EditSchedule("nightly", func(j *v1alpha1.ScheduledJob) { j.Spec.JobTemplate.Spec.Parallelism = new(int32(7)) })
		e := clustertest.CreateJobEffect(sj, clustertest.Noon.Add(5*time.Hour))
		clustertest.Only[events.RunObserved](t, w.act(key, e))
		if j := w.LiveJob(e.Name); *j.Spec.Parallelism != 7 {
			t.Errorf("parallelism %d", *j.Spec.Parallelism)
		}
	})
	t.Run("not where it was suspended meanwhile, until it is resumed", func(t *testing.T) {
		sj = w.EditSchedule("nightly", func(j *v1alpha1.ScheduledJob) { j.Spec.Suspend = new(true) })
		e := clustertest.CreateJobEffect(sj, clustertest.Noon.Add(6*time.Hour))
		if saw := clustertest.Only[events.ScheduledJobObserved](t, w.act(key, e)).ScheduledJob; !saw.Suspended {
			t.Errorf("%+v", saw)
		}
		w.EditSchedule("nightly", func(j *v1alpha1.ScheduledJob) { j.Spec.Suspend = new(false) })
		clustertest.Only[events.RunObserved](t, w.act(key, e))
	})
	t.Run("not where it is gone, or another one", func(t *testing.T) {
		_, key := w.CreateSchedule("brief")
		w.DeleteSchedule("brief")
		other, _ := w.CreateSchedule("brief")
		if gone := clustertest.Only[events.ScheduledJobGone](t, w.act(key, clustertest.CreateJobEffect(other, clustertest.Noon))); gone.Name != "brief" || gone.Version != 0 {
			t.Errorf("%+v", gone)
		}
	})
}

func TestCreateJobThatIsRefused(t *testing.T) {
	w := newWorld(t)
	sj, key := w.CreateSchedule("nightly")
	e := clustertest.CreateJobEffect(sj, clustertest.Noon)

	t.Run("its name is that of a Job of a deleted namesake", func(t *testing.T) {
		left := w.MakeRun(sj, clustertest.Noon)
		w.DeleteSchedule("nightly")
		sj, key = w.CreateSchedule("nightly")
		refused := clustertest.Only[events.EffectRefused](t, w.act(key, e))
		if refused.Effect != "CreateJob" || refused.Name != e.Name || refused.Reason != "AlreadyExists" ||
			!strings.Contains(refused.Message, e.Name) || !strings.Contains(refused.Message, "ScheduledJob nightly (UID ") || !strings.Contains(refused.Message, "delete it") {
			t.Errorf("%+v", refused)
		}
		w.DeleteJob(left.Name)
		clustertest.Only[events.RunObserved](t, w.act(key, e))
	})
	t.Run("its name is that of a Job that a user created", func(t *testing.T) {
		e := clustertest.CreateJobEffect(sj, clustertest.Noon.Add(time.Hour))
		w.CreateJob(e.Name)
		if refused := clustertest.Only[events.EffectRefused](t, w.act(key, e)); !strings.Contains(refused.Message, "a Job that no object controls: delete it") {
			t.Errorf("%+v", refused)
		}
	})
	t.Run("its template is invalid", func(t *testing.T) {
		sj, key := w.CreateSchedule("bad", func(j *v1alpha1.ScheduledJob) {
			j.Spec.JobTemplate.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "", Value: "secret"}}
		})
		refused := clustertest.Only[events.EffectRefused](t, w.act(key, clustertest.CreateJobEffect(sj, clustertest.Noon)))
		if refused.Reason != "Invalid" || !strings.Contains(refused.Message, "spec.template.spec.containers[0].env[0].name") || strings.Contains(refused.Message, "secret") {
			t.Errorf("%+v", refused)
		}
	})
	t.Run("a quota", func(t *testing.T) {
		name := corev1.ResourceName("count/jobs.batch")
		q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{name: resource.MustParse("0")}}}
		q, err := w.CoreV1().ResourceQuotas(w.NS).Create(t.Context(), q, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		q.Status = corev1.ResourceQuotaStatus{Hard: q.Spec.Hard, Used: corev1.ResourceList{name: resource.MustParse("0")}} // as kube-controller-manager does
		if _, err := w.CoreV1().ResourceQuotas(w.NS).UpdateStatus(t.Context(), q, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		n := 2
		clustertest.Eventually(t, func() string { // admission learns of quotas through a watch
			n++
			facts := w.act(key, clustertest.CreateJobEffect(sj, clustertest.Noon.Add(time.Duration(n)*time.Hour)))
			if refused, ok := facts[0].(events.EffectRefused); ok && refused.Reason == "Forbidden" && strings.Contains(refused.Message, "exceeded quota") {
				return ""
			}
			return "the quota"
		})
	})
	t.Run("a server that cannot do it now is asked again later", func(t *testing.T) {
		w.Requests.Inject(func(q *http.Request) (*http.Response, error) {
			if q.Method == http.MethodPost {
				return clustertest.Answer(q, http.StatusInternalServerError, metav1.Status{Status: "Failure", Code: http.StatusInternalServerError}), nil
			}
			return nil, nil
		})
		defer w.Requests.Inject(nil)
		_, err := w.actor.Act(t.Context(), key, clustertest.CreateJobEffect(sj, clustertest.Noon.Add(-time.Hour)))
		if retry := (engine.Retry{}); !errors.As(err, &retry) {
			t.Errorf("%v", err)
		}
	})
}

func TestFindRun(t *testing.T) {
	w := newWorld(t)
	sj, key := w.CreateSchedule("nightly")
	made := w.MakeRun(sj, clustertest.Noon)
	if run := clustertest.Only[events.RunObserved](t, w.act(key, effect.FindRun{Name: made.Name})).Run; run.UID != made.UID || !run.Nominal.Equal(clustertest.Noon) {
		t.Errorf("%+v", run)
	}
	w.CreateJob("stranger")
	for _, name := range []string{"stranger", "absent"} {
		if missing := clustertest.Only[events.RunMissing](t, w.act(key, effect.FindRun{Name: name, ID: "7"})); missing.Name != name || missing.ID != "7" {
			t.Errorf("%+v", missing)
		}
	}
}

func TestDeleteRun(t *testing.T) {
	w := newWorld(t)
	sj, key := w.CreateSchedule("nightly")

	t.Run("at once", func(t *testing.T) {
		j := w.MakeRun(sj, clustertest.Noon)
		for range 2 {
			if run := clustertest.Only[events.RunGone](t, w.act(key, effect.DeleteRun{Name: j.Name, UID: j.UID})).Run; run.Name != j.Name || run.UID != j.UID {
				t.Errorf("%+v", run)
			}
		}
	})
	t.Run("after its Pods", func(t *testing.T) {
		j := w.MakeRun(sj, clustertest.Noon.Add(time.Hour))
		for range 2 {
			run := clustertest.Only[events.RunObserved](t, w.act(key, effect.DeleteRun{Name: j.Name, UID: j.UID, Foreground: true})).Run
			if run.UID != j.UID || !run.Deleting || run.Version <= events.Version(j.ResourceVersion) {
				t.Errorf("%+v", run)
			}
		}
	})
	t.Run("not one that has changed since it was seen", func(t *testing.T) {
		j := w.MakeRun(sj, clustertest.Noon.Add(90*time.Minute))
		seen := events.Version(j.ResourceVersion)
		j.Labels["changed"] = "yes"
		if _, err := w.BatchV1().Jobs(w.NS).Update(t.Context(), j, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		run := clustertest.Only[events.RunObserved](t, w.act(key, effect.DeleteRun{Name: j.Name, UID: j.UID, Version: seen, Foreground: true})).Run
		if run.Deleting || run.Version <= seen {
			t.Errorf("%+v", run)
		}
		run = clustertest.Only[events.RunObserved](t, w.act(key, effect.DeleteRun{Name: j.Name, UID: j.UID, Version: run.Version, Foreground: true})).Run
		if !run.Deleting {
			t.Errorf("%+v", run)
		}
	})
	t.Run("never another one of the same name", func(t *testing.T) {
		j := w.MakeRun(sj, clustertest.Noon.Add(2*time.Hour))
		if run := clustertest.Only[events.RunGone](t, w.act(key, effect.DeleteRun{Name: j.Name, UID: someoneElse})).Run; run.UID != someoneElse {
			t.Errorf("%+v", run)
		}
		if w.LiveJob(j.Name).DeletionTimestamp != nil {
			t.Error("it was deleted")
		}
	})
	t.Run("one that was taken away is gone for its ScheduledJob", func(t *testing.T) {
		j := w.MakeRun(sj, clustertest.Noon.Add(3*time.Hour))
		j.OwnerReferences, j.Finalizers = nil, []string{"example.com/held"}
		if _, err := w.BatchV1().Jobs(w.NS).Update(t.Context(), j, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		clustertest.Only[events.RunGone](t, w.act(key, effect.DeleteRun{Name: j.Name, UID: j.UID}))
	})
}
