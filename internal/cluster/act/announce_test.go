package act

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
)

// busThat is a bus that confirms announcements or returns an error.
type busThat func(events.Public) error

func (f busThat) Announce(_ context.Context, p events.Public) error { return f(p) }

var confirms = busThat(func(events.Public) error { return nil })

// TestStartsAndEndsForPeople: each start and end that the bus has confirmed gets an Event, and nothing else does. There is only
// one, even if the same process repeats the announcement, or another one that has lost its state.
func TestStartsAndEndsForPeople(t *testing.T) {
	w := newWorld(t)
	j, _ := w.CreateJob("pi")
	job := events.Reference{Namespace: w.NS, Name: j.Name, UID: j.UID}
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	start, resumed := events.JobStarted{Job: job, Start: noon}, events.JobStarted{Job: job, Start: noon.Add(time.Minute)}
	end := events.JobFinished{Job: job, Result: events.JobFailed, Reason: "BackoffLimitExceeded", Failed: 7, Start: resumed.Start, End: noon.Add(2 * time.Minute), DurationSeconds: 60}
	pod := events.PodFinish(events.Job{Namespace: w.NS, Name: j.Name, UID: j.UID}, events.Pod{Name: "pi-1", UID: "p", Index: events.NoIndex, Finished: noon}, events.PodFailed)

	for _, process := range []string{"the first", "one that has lost its memory"} {
		client, _ := clustertest.Client(t)
		recorder := NewRecorder(client, "jobstream")
		for _, p := range []events.Public{start, start, resumed, pod, end, end, events.TickDecided{ScheduledJob: job}} {
			if err := recorder.Announcing(confirms).Announce(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		refuses := busThat(func(events.Public) error { return errors.New("not confirmed") })
		if err := recorder.Announcing(refuses).Announce(t.Context(), events.JobStarted{Job: job, Start: noon.Add(time.Hour)}); err == nil {
			t.Error("the error of the bus is kept back")
		}
		// The last report is written last: after it, no other Event can follow.
		about := &corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: w.NS, Name: j.Name, UID: j.UID}
		recorder.Report(about, effect.Report{Reason: "Last", Message: process})
		clustertest.Eventually(t, func() string {
			if !slices.Contains(eventsOf(w, j), "Normal Last "+process+" x1 ") {
				return "the last Event of " + process
			}
			return ""
		})
		recorder.Close()
	}
	got := slices.DeleteFunc(eventsOf(w, j), func(s string) bool { return s[:11] == "Normal Last" })
	want := []string{
		"Normal JobStart Started at 2026-01-02T12:00:00Z x1 " + events.PublicID(start),
		"Normal JobStart Started at 2026-01-02T12:01:00Z x1 " + events.PublicID(resumed),
		"Warning JobFinish Failed (BackoffLimitExceeded) at 2026-01-02T12:02:00Z after 60 s: 0 succeeded, 7 failed x1 " + events.PublicID(end),
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestAnEventDelaysNothing: an Event that the API server rejects causes no announcement to be repeated or delayed.
func TestAnEventDelaysNothing(t *testing.T) {
	client, _ := clustertest.Client(t)
	recorder := NewRecorder(client, "jobstream")
	defer recorder.Close()
	a := recorder.Announcing(confirms)
	nowhere := events.Reference{Namespace: "there-is-none", Name: "pi", UID: "u"}
	for i := range 5000 { // more than client-go queues
		p := events.JobStarted{Job: nowhere, Start: time.Unix(int64(i), 0)}
		if err := a.Announce(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
}

// eventsOf returns the Events about the Job, sorted.
func eventsOf(w *world, j *batchv1.Job) (out []string) {
	w.Helper()
	list, err := w.CoreV1().Events(w.NS).List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	for _, e := range list.Items {
		if e.InvolvedObject.UID == j.UID {
			out = append(out, fmt.Sprintf("%s %s %s x%d %s", e.Type, e.Reason, e.Message, e.Count, e.Annotations[v1alpha1.EventIDAnnotation]))
		}
	}
	slices.Sort(out)
	return out
}
