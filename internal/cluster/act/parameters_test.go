package act

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/pod"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
	"github.com/jobstream/jobstream/internal/engine"
)

// configMap creates an immutable ConfigMap, or replaces the one of that name.
func (w *world) configMap(name string, data map[string]string, change ...func(*corev1.ConfigMap)) {
	w.Helper()
	w.dropConfigMap(name)
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data, Immutable: new(true)}
	for _, f := range change {
		f(c)
	}
	if _, err := w.CoreV1().ConfigMaps(w.NS).Create(w.Context(), c, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) dropConfigMap(name string) {
	_ = w.CoreV1().ConfigMaps(w.NS).Delete(w.Context(), name, metav1.DeleteOptions{}) // there may be none
}

var fruit = map[string]string{"FRUIT": "apple\nbanana\n"}

func TestReadParameters(t *testing.T) {
	w := newWorld(t)
	_, key := w.CreateJob("pi")
	ask := func(name string) []events.Event { return w.act(key, effect.ReadParameters{ConfigMap: name}) }

	t.Run("good", func(t *testing.T) {
		w.configMap("good", fruit)
		got := clustertest.Only[events.ParametersObserved](t, ask("good"))
		if got.Name != "good" || got.Count != 2 || got.At.Unix() != 1000 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("good and made again with more", func(t *testing.T) {
		w.configMap("good", map[string]string{"FRUIT": "apple\nbanana\ncherry"})
		if got := clustertest.Only[events.ParametersObserved](t, ask("good")); got.Count != 3 {
			t.Errorf("%+v", got)
		}
	})
	for _, c := range []struct {
		name   string
		make   func()
		reason string
		says   []string
	}{
		{"missing", func() {}, "ConfigMapNotFound", []string{"does not exist", "create it"}},
		{"mutable", func() { w.configMap("mutable", fruit, func(c *corev1.ConfigMap) { c.Immutable = nil }) },
			"InvalidParameters", []string{"not immutable", "set immutable: true"}},
		{"uneven", func() { w.configMap("uneven", map[string]string{"FRUIT": "s3cret\nbanana", "SIZE": "1"}) },
			"InvalidParameters", []string{"FRUIT has 2 values, SIZE has 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.make()
			refused := clustertest.Only[events.EffectRefused](t, ask(c.name))
			if refused.Effect != "ReadParameters" || refused.Serial != events.NoSerial || refused.Reason != c.reason || refused.At.Unix() != 1000 {
				t.Errorf("%+v", refused)
			}
			for _, text := range append(c.says, "the ConfigMap "+c.name, v1alpha1.PerCompletionEnvAnnotation) {
				if !strings.Contains(refused.Message, text) {
					t.Errorf("%q does not say %q", refused.Message, text)
				}
			}
			if strings.Contains(refused.Message, "s3cret") {
				t.Errorf("%q tells a value", refused.Message)
			}
		})
	}
	t.Run("forbidden", func(t *testing.T) {
		w.Requests.Inject(func(q *http.Request) (*http.Response, error) {
			return clustertest.Answer(q, 403, metav1.Status{Status: "Failure", Code: 403, Reason: metav1.StatusReasonForbidden, Message: "configmaps is forbidden"}), nil
		})
		if refused := clustertest.Only[events.EffectRefused](t, ask("good")); refused.Reason != "Forbidden" {
			t.Errorf("%+v", refused)
		}
	})
	t.Run("no answer", func(t *testing.T) {
		w.Requests.Inject(func(*http.Request) (*http.Response, error) { return nil, errors.New("the cable is out") })
		_, err := w.actor.Act(t.Context(), key, effect.ReadParameters{ConfigMap: "good"})
		if retry := (engine.Retry{}); !errors.As(err, &retry) {
			t.Errorf("%v", err)
		}
	})
}

func indexed(j *batchv1.Job) {
	mode := batchv1.IndexedCompletion
	j.Spec.CompletionMode, j.Spec.Completions, j.Spec.Parallelism = &mode, new(int32(2)), new(int32(2))
}

func indexEffect(j *batchv1.Job, serial, index int, parameters string) effect.CreatePod {
	return effect.CreatePod{Job: j.Name, Name: pod.Name(j.Name, j.UID, serial, index), Serial: serial, Index: index, Generation: j.Generation, Parameters: parameters}
}

func TestCreatePodWithParameters(t *testing.T) {
	var mu sync.Mutex
	now := time.Unix(1000, 0)
	pass := func(d time.Duration) { mu.Lock(); defer mu.Unlock(); now = now.Add(d) }
	w := newWorld(t, func(c *Config) { c.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now } })
	j, key := w.CreateJob("pi", indexed, func(j *batchv1.Job) {
		j.Spec.Completions = new(int32(3))
		j.Annotations = map[string]string{v1alpha1.PerCompletionEnvAnnotation: "fruit"}
	})
	get := "GET /api/v1/namespaces/" + w.NS + "/configmaps/fruit"
	env := func(name string) map[string]string {
		out := map[string]string{}
		for _, v := range w.LivePod(name).Spec.Containers[0].Env {
			out[v.Name] = v.Value
		}
		return out
	}
	create := func(t *testing.T, serial, index int) string {
		t.Helper()
		return clustertest.Only[events.PodObserved](t, w.act(key, indexEffect(j, serial, index, "fruit"))).Pod.Name
	}
	w.configMap("fruit", fruit)

	t.Run("each Pod gets those of its index, for one GET", func(t *testing.T) {
		for serial, want := range []string{"apple", "banana", "apple"} {
			if got := env(create(t, serial, serial%2)); got["FRUIT"] != want {
				t.Errorf("serial %d got %v", serial, got)
			}
		}
		if n := w.Requests.Count(get); n != 1 {
			t.Errorf("%d GETs", n)
		}
	})
	t.Run("values of a ConfigMap that was made again are used after a minute", func(t *testing.T) {
		w.configMap("fruit", map[string]string{"FRUIT": "cherry\ndate"})
		pass(maxParametersAge)
		if got := env(create(t, 10, 1)); got["FRUIT"] != "date" {
			t.Errorf("got %v", got)
		}
	})
	t.Run("or at once, after they were read on request", func(t *testing.T) {
		w.configMap("fruit", map[string]string{"FRUIT": "elderberry\nfig"})
		w.act(key, effect.ReadParameters{ConfigMap: "fruit"})
		if got := env(create(t, 11, 1)); got["FRUIT"] != "fig" {
			t.Errorf("got %v", got)
		}
	})
	refuses := func(t *testing.T, serial, index int, reason, text string) {
		t.Helper()
		posts := w.Requests.Count("POST /api/v1/namespaces/" + w.NS + "/pods")
		refused := clustertest.Only[events.EffectRefused](t, w.act(key, indexEffect(j, serial, index, "fruit")))
		if refused.Effect != "CreatePod" || refused.Serial != serial || refused.Reason != reason || !strings.Contains(refused.Message, text) {
			t.Errorf("%+v", refused)
		}
		if w.Requests.Count("POST /api/v1/namespaces/"+w.NS+"/pods") != posts {
			t.Error("a Pod was made")
		}
	}
	t.Run("no Pod without a value for its index", func(t *testing.T) { refuses(t, 12, 2, "InvalidParameters", "none for index 2") })
	t.Run("no Pod with values that may be wrong", func(t *testing.T) {
		w.configMap("fruit", fruit, func(c *corev1.ConfigMap) { c.Immutable = nil })
		pass(maxParametersAge)
		refuses(t, 13, 1, "InvalidParameters", "not immutable")
	})
	t.Run("no Pod with the values of a ConfigMap that the Job does not name", func(t *testing.T) {
		e := indexEffect(j, 16, 1, "secrets")
		if saw := clustertest.Only[events.JobObserved](t, w.act(key, e)).Job; saw.Options.Parameters != "fruit" || w.LivePod(e.Name) != nil {
			t.Errorf("%+v", saw)
		}
	})
	t.Run("no Pod without the ConfigMap", func(t *testing.T) {
		w.dropConfigMap("fruit")
		refuses(t, 14, 1, "ConfigMapNotFound", "create it")
	})
	t.Run("later, where the ConfigMap cannot be read now", func(t *testing.T) {
		w.Requests.Inject(func(q *http.Request) (*http.Response, error) {
			if strings.Contains(q.URL.Path, "/configmaps/") {
				return clustertest.Answer(q, 503, metav1.Status{Status: "Failure", Code: 503, Reason: metav1.StatusReasonServiceUnavailable}), nil
			}
			return nil, nil
		})
		_, err := w.actor.Act(t.Context(), key, indexEffect(j, 15, 1, "fruit"))
		if retry := (engine.Retry{}); !errors.As(err, &retry) {
			t.Errorf("%v", err)
		}
	})
}

// TestParametersOfManyJobs: the cache holds a few ConfigMaps only, and a dropped one costs a GET.
func TestParametersOfManyJobs(t *testing.T) {
	w := newWorld(t)
	_, key := w.CreateJob("pi")
	for i := range cachedParameters + 5 {
		data := maps.Clone(fruit)
		data[fmt.Sprintf("V%d", i)] = "1\n2"
		w.configMap(fmt.Sprintf("c%d", i), data)
		clustertest.Only[events.ParametersObserved](t, w.act(key, effect.ReadParameters{ConfigMap: fmt.Sprintf("c%d", i)}))
	}
	if n := w.actor.parameters.maps.Len(); n != cachedParameters {
		t.Errorf("%d are remembered", n)
	}
}
