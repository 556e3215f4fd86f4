package act

import (
	"net/http"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
)

func statusEffect(j *batchv1.Job, change func(*effect.WriteJobStatus)) effect.WriteJobStatus {
	e := effect.WriteJobStatus{Job: j.Name, Version: events.Version(j.ResourceVersion), Status: *j.Status.DeepCopy()}
	change(&e)
	return e
}

func start(e *effect.WriteJobStatus) {
	e.Status.StartTime = new(metav1.NewTime(time.Unix(1000, 0)))
	e.Status.Active = 2
}

func TestWriteJobStatus(t *testing.T) {
	w := newWorld(t)
	j, key := w.CreateJob("pi", func(j *batchv1.Job) {
		j.Labels = map[string]string{"mine": "stays"}
		j.Annotations = map[string]string{"mine": "stays"}
	})
	last := time.Date(2026, 11, 21, 0, 0, 1, 5000, time.UTC)
	put := "PUT /apis/batch/v1/namespaces/" + w.NS + "/jobs/pi/status"
	get := "GET /apis/batch/v1/namespaces/" + w.NS + "/jobs/pi"

	first := clustertest.Only[events.JobObserved](t, w.act(key, statusEffect(j, func(e *effect.WriteJobStatus) {
		start(e)
		e.NextSerial = 2
		e.Backoff = events.Backoff{Failures: 3, Last: last}
	}))).Job
	live := w.LiveJob("pi")
	if first.Version != events.Version(live.ResourceVersion) || first.Status.Active != 2 || first.NextSerial != 2 || first.Backoff != (events.Backoff{Failures: 3, Last: last}) {
		t.Errorf("saw %+v", first)
	}
	if live.Labels["mine"] != "stays" || live.Annotations["mine"] != "stays" || live.Annotations[v1alpha1.NextSerialAnnotation] != "2" ||
		live.Annotations[v1alpha1.BackoffAnnotation] != `{"failures":3,"last":"2026-11-21T00:00:01.000005Z"}` {
		t.Errorf("is %+v", live.ObjectMeta)
	}

	t.Run("the next one needs no GET, and can forget the backoff", func(t *testing.T) {
		gets := w.Requests.Count(get)
		seen := clustertest.Only[events.JobObserved](t, w.act(key, statusEffect(live, func(e *effect.WriteJobStatus) {
			e.Status.Active, e.NextSerial = 1, 3
		}))).Job
		live = w.LiveJob("pi")
		if _, has := live.Annotations[v1alpha1.BackoffAnnotation]; has || seen.NextSerial != 3 || seen.Status.Active != 1 {
			t.Errorf("saw %+v, annotations %v", seen, live.Annotations)
		}
		if w.Requests.Count(get) != gets {
			t.Error("it was read again")
		}
	})
	t.Run("an older version writes nothing and answers with the newer one", func(t *testing.T) {
		puts := w.Requests.Count(put)
		seen := clustertest.Only[events.JobObserved](t, w.act(key, statusEffect(j, start))).Job
		if seen.Version != events.Version(live.ResourceVersion) || w.Requests.Count(put) != puts || w.LiveJob("pi").ResourceVersion != live.ResourceVersion {
			t.Errorf("saw %+v", seen)
		}
	})
	t.Run("a version that was overtaken after the Actor cached it conflicts", func(t *testing.T) {
		touched := live.DeepCopy()
		touched.Annotations["touched"] = "by the user"
		touched, err := w.BatchV1().Jobs(w.NS).Update(t.Context(), touched, metav1.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		puts := w.Requests.Count(put)
		seen := clustertest.Only[events.JobObserved](t, w.act(key, statusEffect(live, func(e *effect.WriteJobStatus) { e.Status.Active = 7 }))).Job
		if seen.Version != events.Version(touched.ResourceVersion) || seen.Status.Active != 1 || w.Requests.Count(put) != puts+1 {
			t.Errorf("saw %+v after %d PUTs", seen, w.Requests.Count(put)-puts)
		}
		live = touched
	})
	t.Run("invalid", func(t *testing.T) {
		refused := clustertest.Only[events.EffectRefused](t, w.act(key, statusEffect(live, func(e *effect.WriteJobStatus) {
			e.Status.Active = -1
			e.Status.CompletedIndexes = "what is this"
		})))
		if refused.Effect != "WriteJobStatus" || refused.Serial != events.NoSerial || refused.Reason != "Invalid" ||
			!strings.Contains(refused.Message, "field status.active: FieldValueInvalid") || strings.Contains(refused.Message, "what") {
			t.Errorf("%+v", refused)
		}
	})
	t.Run("of a Job that is gone, or another one", func(t *testing.T) {
		w.DeleteJob("pi")
		clustertest.Only[events.JobGone](t, w.act(key, statusEffect(live, start)))
		again, againKey := w.CreateJob("pi")
		clustertest.Only[events.JobGone](t, w.act(key, statusEffect(live, start)))
		clustertest.Only[events.JobGone](t, w.act(key, statusEffect(again, start))) // right version, wrong UID
		clustertest.Only[events.JobObserved](t, w.act(againKey, statusEffect(again, start)))
	})
	t.Run("of a Job that was recreated unknown to the cache", func(t *testing.T) {
		j, key := w.CreateJob("fast")
		seen := clustertest.Only[events.JobObserved](t, w.act(key, statusEffect(j, start))).Job
		w.DeleteJob("fast")
		w.CreateJob("fast")
		e := statusEffect(j, start)
		e.Version = seen.Version
		clustertest.Only[events.JobGone](t, w.act(key, e))
		if now := w.LiveJob("fast"); now.Status.StartTime != nil {
			t.Errorf("wrote into another Job: %+v", now.Status)
		}
	})
}

func wide(j *batchv1.Job) { j.Spec.Parallelism, j.Spec.Completions = new(int32(10)), new(int32(500)) }

func TestWriteJobStatusAndFieldOwnership(t *testing.T) {
	managers := func(j *batchv1.Job) (out []string) {
		for _, m := range j.ManagedFields {
			out = append(out, string(m.Operation)+" "+m.Manager)
		}
		return out
	}
	t.Run("it is taken off a large Job once", func(t *testing.T) {
		w := newWorld(t)
		j, key := w.CreateJob("large", wide)
		taken := "PATCH /apis/batch/v1/namespaces/" + w.NS + "/jobs/large"
		seen := clustertest.Only[events.JobObserved](t, w.act(key, statusEffect(j, start))).Job
		live := w.LiveJob("large")
		if len(live.ManagedFields) != 0 || seen.Version != events.Version(live.ResourceVersion) || live.Status.Active != 2 || live.Generation != 1 {
			t.Errorf("managers %v, status %+v", managers(live), live.Status)
		}
		w.act(key, statusEffect(live, func(e *effect.WriteJobStatus) { e.Status.Active, e.NextSerial = 3, 4 }))
		if live = w.LiveJob("large"); len(live.ManagedFields) != 0 || live.Status.Active != 3 || w.Requests.Count(taken) != 1 {
			t.Errorf("managers %v, status %+v, %d patches of the Job", managers(live), live.Status, w.Requests.Count(taken))
		}
	})
	t.Run("a small one is not worth it", func(t *testing.T) {
		w := newWorld(t)
		j, key := w.CreateJob("small")
		w.act(key, statusEffect(j, start))
		if got := managers(w.LiveJob("small")); len(got) != 2 {
			t.Errorf("managers %v", got)
		}
	})
	t.Run("a conflict there is one of the effect", func(t *testing.T) {
		w := newWorld(t)
		j, key := w.CreateJob("large", wide)
		w.act(key, effect.TakeInventory{ID: "x", Job: "large"}) // now it is cached at this version
		touched := j.DeepCopy()
		touched.Annotations = map[string]string{"touched": "by the user"}
		touched, err := w.BatchV1().Jobs(w.NS).Update(t.Context(), touched, metav1.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		seen := clustertest.Only[events.JobObserved](t, w.act(key, statusEffect(j, start))).Job
		if live := w.LiveJob("large"); seen.Version != events.Version(touched.ResourceVersion) || live.ResourceVersion != touched.ResourceVersion {
			t.Errorf("saw %+v", seen)
		}
	})
	t.Run("a server that refuses that is not asked again", func(t *testing.T) {
		w := newWorld(t)
		j, key := w.CreateJob("large", wide)
		path := "/apis/batch/v1/namespaces/" + w.NS + "/jobs/large"
		w.Requests.Inject(func(q *http.Request) (*http.Response, error) {
			if q.Method == "PATCH" && q.URL.Path == path {
				return clustertest.Answer(q, 403, metav1.Status{Status: "Failure", Code: 403, Reason: metav1.StatusReasonForbidden}), nil
			}
			return nil, nil
		})
		w.act(key, statusEffect(j, start))
		live := w.LiveJob("large")
		w.act(key, statusEffect(live, func(e *effect.WriteJobStatus) { e.Status.Active = 3 }))
		if live = w.LiveJob("large"); live.Status.Active != 3 || len(live.ManagedFields) != 2 || w.Requests.Count("PATCH "+path) != 1 {
			t.Errorf("status %+v, managers %v, %d patches of the Job", live.Status, managers(live), w.Requests.Count("PATCH "+path))
		}
	})
	t.Run("applied Jobs keep it", func(t *testing.T) {
		w := newWorld(t)
		manifest := `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"applied"},"spec":{"managedBy":"jobstream.dev/reconciler",
			"parallelism":20,"completions":20,"ttlSecondsAfterFinished":9,
			"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"none"}]}}}}`
		apply := func(manifest string) *batchv1.Job {
			t.Helper()
			j, err := w.BatchV1().Jobs(w.NS).Patch(t.Context(), "applied", types.ApplyPatchType, []byte(manifest), metav1.PatchOptions{FieldManager: "other"})
			if err != nil {
				t.Fatal(err)
			}
			return j
		}
		j := apply(manifest)
		key := events.Key{Function: "job", Namespace: w.NS, UID: j.UID}
		w.act(key, statusEffect(j, start))
		got := managers(w.LiveJob("applied"))
		if len(got) != 2 || got[0] != "Apply other" || !strings.HasPrefix(got[1], "Update ") {
			t.Errorf("managers %v", got)
		}
		// A field that its owner no longer applies is removed: that is the purpose of the entry that was kept.
		if j = apply(strings.Replace(manifest, `"ttlSecondsAfterFinished":9,`, "", 1)); j.Spec.TTLSecondsAfterFinished != nil || j.Status.Active != 2 {
			t.Errorf("%+v", j.Spec)
		}
	})
	t.Run("by request, all keep it", func(t *testing.T) {
		w := newWorld(t, func(c *Config) { c.KeepManagedFields = true })
		j, key := w.CreateJob("large", wide)
		w.act(key, statusEffect(j, start))
		if got := managers(w.LiveJob("large")); len(got) != 2 {
			t.Errorf("managers %v", got)
		}
	})
}
