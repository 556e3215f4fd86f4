package act

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
)

// asking returns a Job that asks for the values of its failed indexes.
func asking(j *batchv1.Job) {
	indexed(j)
	j.Annotations = map[string]string{v1alpha1.PerCompletionEnvAnnotation: "fruit", v1alpha1.PublishFailedValuesAnnotation: "true"}
}

// finish returns the end of the Job as a state has it: with the indexes, without values.
func finish(w *world, j *batchv1.Job, indexes ...int) events.JobFinished {
	e := events.JobFinished{Job: events.Reference{Namespace: w.NS, Name: j.Name, UID: j.UID}, Result: events.JobFailed, FailedValues: &events.FailedValues{ConfigMap: "fruit"}}
	for _, i := range indexes {
		e.FailedValues.Indexes = append(e.FailedValues.Indexes, events.IndexValues{Index: i})
	}
	return e
}

// TestValuesOfFailedIndexes: they are in the event if the Job itself asks for them and the ConfigMap still has them, and in nothing else.
func TestValuesOfFailedIndexes(t *testing.T) {
	for _, c := range []struct {
		name    string
		job     func(*batchv1.Job)
		arrange func(w *world, j *batchv1.Job)
		want    map[int]string // FRUIT by index; nil if the field is left out
	}{
		{"usual", asking, func(w *world, _ *batchv1.Job) { w.configMap("fruit", fruit) }, map[int]string{0: "apple", 1: "banana"}},
		{"the ConfigMap is too short", asking, func(w *world, _ *batchv1.Job) { w.configMap("fruit", map[string]string{"FRUIT": "apple"}) }, map[int]string{0: "apple"}},
		{"the ConfigMap is gone", asking, func(*world, *batchv1.Job) {}, nil},
		{"the ConfigMap is mutable", asking, func(w *world, _ *batchv1.Job) {
			w.configMap("fruit", fruit, func(c *corev1.ConfigMap) { c.Immutable = nil })
		}, nil},
		{"the Job is gone", asking, func(w *world, j *batchv1.Job) {
			w.configMap("fruit", fruit)
			if err := w.BatchV1().Jobs(w.NS).Delete(w.Context(), j.Name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}); err != nil {
				w.Fatal(err)
			}
		}, nil},
		{"a forged state asks, the Job does not", func(j *batchv1.Job) {
			asking(j)
			delete(j.Annotations, v1alpha1.PublishFailedValuesAnnotation)
		}, func(w *world, _ *batchv1.Job) { w.configMap("fruit", fruit) }, nil},
		{"a forged state asks for a ConfigMap that the Job does not name", func(j *batchv1.Job) {
			asking(j)
			j.Annotations[v1alpha1.PerCompletionEnvAnnotation] = "other"
		}, func(w *world, _ *batchv1.Job) { w.configMap("fruit", fruit) }, nil},
		{"a Job of another controller", func(j *batchv1.Job) {
			asking(j)
			j.Spec.ManagedBy = new("example.com/other")
		}, func(w *world, _ *batchv1.Job) { w.configMap("fruit", fruit) }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			j, _ := w.CreateJob("pi", c.job)
			c.arrange(w, j)
			e := finish(w, j, 0, 1)
			for range 2 { // an announcement may be repeated, with the same words
				var got events.JobFinished
				err := w.actor.Announcing(busThat(func(p events.Public) error { got = p.(events.JobFinished); return nil })).Announce(t.Context(), e)
				if err != nil || got.Job != e.Job {
					t.Fatalf("%+v, %v", got, err)
				}
				var values map[int]string
				if v := got.FailedValues; v != nil {
					values = map[int]string{}
					for _, x := range v.Indexes {
						values[x.Index] = x.Values["FRUIT"]
					}
				}
				if !reflect.DeepEqual(values, c.want) {
					t.Errorf("%v, want %v", values, c.want)
				}
			}
			if n := w.Requests.Count("GET /api/v1/namespaces/" + w.NS + "/configmaps/fruit"); c.want != nil && n != 1 {
				t.Errorf("%d GETs of the ConfigMap", n)
			}
			for _, x := range e.FailedValues.Indexes {
				if x.Values != nil {
					t.Errorf("the event of the state has got values: %+v", x)
				}
			}
		})
	}
}

// TestValuesThatCannotBeReadNow: the announcement is repeated, rather than made without them.
func TestValuesThatCannotBeReadNow(t *testing.T) {
	w := newWorld(t)
	j, _ := w.CreateJob("pi", asking)
	w.configMap("fruit", map[string]string{"FRUIT": "s3cret"})
	code := http.StatusServiceUnavailable
	w.Requests.Inject(func(q *http.Request) (*http.Response, error) {
		if strings.Contains(q.URL.Path, "/configmaps/") {
			return clustertest.Answer(q, code, metav1.Status{Status: "Failure", Code: int32(code)}), nil
		}
		return nil, nil
	})
	announced := 0
	announcer := w.actor.Announcing(busThat(func(events.Public) error { announced++; return nil }))
	if err := announcer.Announce(t.Context(), finish(w, j, 0)); err == nil || announced != 0 || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("unavailable: announced %d times, %v", announced, err)
	}
	code = http.StatusForbidden // no retry helps: the event goes without
	if err := announcer.Announce(t.Context(), finish(w, j, 0)); err != nil || announced != 1 {
		t.Errorf("forbidden: announced %d times, %v", announced, err)
	}
}

// TestValuesAreBounded: at most ten variables of an index, and 256 bytes of each value.
func TestValuesAreBounded(t *testing.T) {
	w := newWorld(t)
	j, _ := w.CreateJob("pi", asking)
	data := map[string]string{}
	for i := range 30 {
		data["V"+string(rune('A'+i%26))+string(rune('A'+i/26))] = strings.Repeat("ü", 400) + "\nshort"
	}
	w.configMap("fruit", data)
	var got events.JobFinished
	if err := w.actor.Announcing(busThat(func(p events.Public) error { got = p.(events.JobFinished); return nil })).Announce(t.Context(), finish(w, j, 0, 1)); err != nil {
		t.Fatal(err)
	}
	if got.FailedValues == nil || len(got.FailedValues.Indexes) != 2 {
		t.Fatalf("%+v", got.FailedValues)
	}
	for _, x := range got.FailedValues.Indexes {
		if len(x.Values) != 10 || x.Values["VAA"] == "" || x.Values["VZA"] != "" {
			t.Errorf("%d variables: %v", len(x.Values), x.Values)
		}
		for name, value := range x.Values {
			if len(value) > 256 || !utf8.ValidString(value) || x.Index == 0 && !strings.HasSuffix(value, "ü…") || x.Index == 1 && value != "short" {
				t.Errorf("index %d: %s is %q", x.Index, name, value)
			}
		}
	}
	start := events.JobStarted{Job: got.Job, Start: time.Unix(1000, 0)}
	if err := w.actor.Announcing(busThat(func(p events.Public) error {
		if !reflect.DeepEqual(p, start) {
			t.Errorf("another event has changed: %+v", p)
		}
		return nil
	})).Announce(t.Context(), start); err != nil {
		t.Error(err)
	}
}
