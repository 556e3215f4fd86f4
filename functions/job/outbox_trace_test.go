package job

import (
	"bytes"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
)

// TestTheTraceSurvives: two replicas, and one that has lost its state in between, announce the same start and end in the same
// bytes, and so the same trace. A replica that takes over a saved state continues with it.
func TestTheTraceSurvives(t *testing.T) {
	object := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pi", UID: "job-1", ResourceVersion: "5", CreationTimestamp: metav1.NewTime(noon.Add(-9 * time.Minute)),
		Annotations: map[string]string{v1alpha1.TraceparentAnnotation: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}}}
	object.Status.StartTime = &metav1.Time{Time: noon.Add(-8 * time.Minute)}
	object.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: "True", LastTransitionTime: metav1.NewTime(noon.Add(-time.Minute))}}
	for name, change := range map[string]func(*batchv1.Job){
		"a Job":          func(j *batchv1.Job) { j.Annotations = nil },
		"one annotated":  func(*batchv1.Job) {},
		"a run":          func(j *batchv1.Job) { makeRun(j, noon) },
		"a run, retried": func(j *batchv1.Job) { makeRun(j, noon); j.Name = "again" },
	} {
		t.Run(name, func(t *testing.T) {
			o := object.DeepCopy()
			change(o)
			j := events.ProjectJob(o, events.Claim{Unmanaged: true})
			first, second, takenOver := announced(t, nil, j, false), announced(t, nil, j, false), announced(t, nil, j, true)
			if len(first) != 2 {
				t.Fatalf("%d events, want a start and an end", len(first))
			}
			for i := range first {
				if !bytes.Equal(first[i], second[i]) || !bytes.Equal(first[i], takenOver[i]) {
					t.Errorf("three replicas announce\n%s\n%s\n%s", first[i], second[i], takenOver[i])
				}
				if want := `"traceparent":"` + events.JobTrace(o).String() + `"`; !bytes.Contains(first[i], []byte(want)) {
					t.Errorf("%s is not in %s", want, first[i])
				}
			}
		})
	}
}

func makeRun(j *batchv1.Job, nominal time.Time) {
	j.Name = "nightly-" + events.NominalHash(nominal)
	j.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ScheduledJobKind, Name: "nightly", UID: types.UID("schedule-1"), Controller: new(true)}}
	j.Annotations = map[string]string{batchv1.CronJobScheduledTimestampAnnotation: nominal.Format(time.RFC3339)}
}

// announced returns what a state announces about an observation, encoded. With handover, another replica takes the state over
// before anything is confirmed.
func announced(t *testing.T, state []byte, j events.Job, handover bool) (out [][]byte) {
	t.Helper()
	facts := []events.Event{events.JobObserved{Job: j}}
	for range 10 {
		d, err := fn.Register(New(DefaultLimits())).Decide(state, facts, noon)
		if err != nil {
			t.Fatal(err)
		}
		state, facts = d.State, nil
		if handover {
			handover, facts = false, []events.Event{events.TimerFired{Name: "announce"}}
			continue
		}
		for _, e := range d.Effects {
			if a, ok := e.(effect.Announce); ok {
				b, err := events.EncodePublic("c", a.Event)
				if err != nil {
					t.Fatal(err)
				}
				out, facts = append(out, b), append(facts, events.Announced{ID: events.PublicID(a.Event)})
			}
		}
		if facts == nil {
			break
		}
	}
	return out
}
