package act

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/deploy"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/catalog"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
)

// TestPermissions does every effect of every function as a user with exactly the permissions of the deployed reconciler.
func TestPermissions(t *testing.T) {
	w := newWorld(t)
	client, schedules := w.As(clustertest.DeployedRules(t, deploy.ReconcilerRBAC))
	actor, err := New(Config{Client: client, ScheduledJobs: schedules})
	if err != nil {
		t.Fatal(err)
	}
	w.actor = actor
	j, _ := w.CreateJob("observed")
	for _, do := range permitted {
		do(w)
	}
	recorder := NewRecorder(client, "jobstream")
	defer recorder.Close()
	for range 2 { // the second one patches the first
		recorder.Report(&corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: w.NS, Name: j.Name, UID: j.UID}, effect.Report{Reason: "Completed", Message: "m"})
	}
	clustertest.Eventually(t, func() string {
		list, err := w.CoreV1().Events(w.NS).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Items) == 1 && list.Items[0].Count == 2 {
			return ""
		}
		return "one Event that happened twice"
	})
}

// permitted has, for each function, a test of all its effects. Any error fails the test.
var permitted = map[catalog.Name]func(*world){
	catalog.Job: permittedJob, catalog.ScheduledJob: permittedScheduledJob,
}

func permittedJob(w *world) {
	j, key := w.CreateJob("pi", wide)
	j0 := clustertest.Only[events.JobObserved](w, w.act(key, statusEffect(j, start))).Job
	if live := w.LiveJob("pi"); j0.Version != events.Version(live.ResourceVersion) || len(live.ManagedFields) != 0 {
		w.Errorf("%+v", live.ObjectMeta)
	}
	p := w.createPod(j, key, 0)
	p = clustertest.Only[events.PodObserved](w, w.act(key, effect.RemoveFinalizer{Name: p.Name, UID: p.UID})).Pod
	p = clustertest.Only[events.PodObserved](w, w.act(key, effect.AddFinalizer{Name: p.Name, UID: p.UID, Version: p.Version})).Pod
	if list := clustertest.Only[events.JobListed](w, w.act(key, effect.TakeInventory{ID: "x", Job: "pi"})); len(list.Pods) != 1 {
		w.Errorf("%+v", list)
	}
	clustertest.Only[events.PodGone](w, w.act(key, effect.DeletePod{Name: p.Name, UID: p.UID, Version: p.Version, RemoveFinalizer: true}))
	picky, pickyKey := w.CreateJob("picky", clustertest.Picky("pi"))
	orphan := w.ForeignPod("orphan", map[string]string{"app": "pi"})
	if list := clustertest.Only[events.JobListed](w, w.act(pickyKey, effect.TakeInventory{ID: "x", Job: "picky"})); len(list.Pods) != 1 {
		w.Errorf("%+v", list)
	}
	clustertest.Only[events.PodObserved](w, w.act(pickyKey, clustertest.AdoptEffect(picky, orphan, 0)))
	clustertest.Only[events.PodGone](w, w.act(pickyKey, effect.ReleasePod{Name: "orphan", UID: orphan.UID}))
	w.configMap("good", fruit)
	clustertest.Only[events.ParametersObserved](w, w.act(key, effect.ReadParameters{ConfigMap: "good"}))
	done, doneKey := w.CreateJob("done")
	clustertest.Only[events.JobObserved](w, w.act(doneKey, deleteEffect(done)))
}

func permittedScheduledJob(w *world) {
	sj, schedKey := w.CreateSchedule("nightly")
	sj = w.LiveSchedule(clustertest.Only[events.ScheduledJobObserved](w, w.act(schedKey, scheduleStatusEffect(sj))).ScheduledJob.Name)
	run := clustertest.Only[events.RunObserved](w, w.act(schedKey, clustertest.CreateJobEffect(sj, clustertest.Noon))).Run
	clustertest.Only[events.RunObserved](w, w.act(schedKey, effect.FindRun{Name: run.Name}))
	if list := clustertest.Only[events.ScheduleListed](w, w.act(schedKey, effect.TakeInventory{ID: "x"})); len(list.Runs) != 1 {
		w.Errorf("%+v", list)
	}
	clustertest.Only[events.RunGone](w, w.act(schedKey, effect.DeleteRun{Name: run.Name, UID: run.UID}))
	clustertest.Only[events.ScheduledJobObserved](w, w.act(schedKey, effect.DeleteScheduledJob{ScheduledJob: "nightly", Version: events.Version(sj.ResourceVersion)}))
}
