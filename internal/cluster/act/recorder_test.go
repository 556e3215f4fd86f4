package act

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
)

func TestEventsForPeople(t *testing.T) {
	client, _ := clustertest.Client(t)
	recorder := NewRecorder(client, "jobstream")
	defer recorder.Close()
	w := newWorld(t, func(c *Config) { c.Recorder = recorder })
	j, key := w.CreateJob("pi")
	p := w.createPod(j, key, 0)
	w.createPod(j, key, 0) // found, not created
	w.act(key, effect.DeletePod{Name: p.Name, UID: p.UID, Version: p.Version, RemoveFinalizer: true})
	q := w.createPod(j, key, 1)
	late := effect.Report{Warning: true, Reason: "PendingDeadlineExceeded", Message: "it does not start"}
	w.act(key, effect.DeletePod{Name: q.Name, UID: q.UID, Version: q.Version + 1, Report: late}) // stale
	w.act(key, effect.DeletePod{Name: q.Name, UID: q.UID, Version: q.Version, Report: late})
	w.act(key, statusEffect(j, func(e *effect.WriteJobStatus) {
		start(e)
		e.Reports = []effect.Report{{Reason: "Completed", Message: "Job completed"},
			{Warning: true, Reason: "BackoffLimitExceeded", Message: strings.Repeat("x", 5000)}}
	}))
	w.act(key, statusEffect(j, func(e *effect.WriteJobStatus) { // stale: no Event may report it
		start(e)
		e.Reports = []effect.Report{{Reason: "Never", Message: "it did not happen"}}
	}))
	want := []string{
		"Normal SuccessfulCreate Created pod: " + p.Name + " x1",
		"Normal SuccessfulDelete Deleted pod: " + p.Name + " x1",
		"Normal SuccessfulCreate Created pod: " + q.Name + " x1",
		"Warning PendingDeadlineExceeded it does not start x1", // in the place of SuccessfulDelete
		"Normal Completed Job completed x1",
		"Warning BackoffLimitExceeded " + strings.Repeat("x", 1021) + "... x1",
	}
	clustertest.Eventually(t, func() string {
		list, err := w.CoreV1().Events(w.NS).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		for _, e := range list.Items {
			got[fmt.Sprintf("%s %s %s x%d", e.Type, e.Reason, e.Message, e.Count)] = true
			if o := e.InvolvedObject; o.UID != j.UID || o.Kind != "Job" || o.APIVersion != "batch/v1" || o.Name != "pi" || e.Source.Component != "jobstream" {
				t.Fatalf("%+v", e)
			}
		}
		for _, s := range want {
			if !got[s] {
				return "the Event " + s
			}
		}
		if len(got) != len(want) {
			t.Fatalf("Events %v", got)
		}
		return ""
	})
}

// TestManyCreatedPodsDoNotSilenceTheEnd: client-go's own spam filter would.
func TestManyCreatedPodsDoNotSilenceTheEnd(t *testing.T) {
	client, _ := clustertest.Client(t)
	recorder := NewRecorder(client, "jobstream")
	defer recorder.Close()
	w := newWorld(t)
	j, _ := w.CreateJob("pi")
	about := &corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: w.NS, Name: j.Name, UID: j.UID}
	for i := range 100 {
		recorder.Report(about, effect.Report{Reason: "SuccessfulCreate", Message: fmt.Sprint("Created pod: ", i)})
	}
	recorder.Report(about, effect.Report{Reason: "Completed", Message: "Job completed"})
	clustertest.Eventually(t, func() string {
		list, err := w.CoreV1().Events(w.NS).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(list.Items); n > 30 {
			t.Fatalf("%d Events", n)
		}
		for _, e := range list.Items {
			if e.Reason == "Completed" {
				return ""
			}
		}
		return "the Event Completed"
	})
}
