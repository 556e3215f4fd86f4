package act

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
)

func TestCreatePod(t *testing.T) {
	w := newWorld(t)
	j, key := w.CreateJob("pi")
	w.cached("pi")
	first := w.createPod(j, key, 0)
	if !first.Held || first.Serial != 0 || first.Owner != "pi" || first.Phase != events.Pending || first.Version == 0 {
		t.Errorf("the observation is %+v", first)
	}
	live := w.LivePod(first.Name)
	if live.Labels[v1alpha1.ManagedLabel] != "true" || events.OwnerUID(live) != j.UID || live.UID != first.UID {
		t.Errorf("the Pod is %+v", live.ObjectMeta)
	}

	t.Run("again meets the same Pod", func(t *testing.T) {
		if again := clustertest.Only[events.PodObserved](t, w.act(key, clustertest.CreateEffect(j, 0))).Pod; again.UID != first.UID {
			t.Errorf("met %+v", again)
		}
	})
	t.Run("many cost one GET of the Job", func(t *testing.T) {
		if n := w.Requests.Count("GET /apis/batch/v1/namespaces/" + w.NS + "/jobs/pi"); n != 1 {
			t.Errorf("%d GETs of the Job", n)
		}
	})
	t.Run("a stranger has the name", func(t *testing.T) {
		e := clustertest.CreateEffect(j, 7)
		_, err := w.CoreV1().Pods(w.NS).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: e.Name},
			Spec: clustertest.Job("x").Spec.Template.Spec}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		refused := clustertest.Only[events.EffectRefused](t, w.act(key, e))
		if refused.Effect != "CreatePod" || refused.Serial != 7 || refused.Reason != "AlreadyExists" || refused.At.Unix() != 1000 {
			t.Errorf("%+v", refused)
		}
	})
	t.Run("no function decides on a name that is not the serial's", func(t *testing.T) {
		e := clustertest.CreateEffect(j, 8)
		e.Name = first.Name
		if refused := clustertest.Only[events.EffectRefused](t, w.act(key, e)); refused.Reason != "Invalid" {
			t.Errorf("%+v", refused)
		}
	})
	t.Run("nor is an index that the Job has not", func(t *testing.T) {
		if refused := clustertest.Only[events.EffectRefused](t, w.act(key, indexEffect(j, 9, 3, ""))); refused.Reason != "Invalid" {
			t.Errorf("%+v", refused)
		}
	})
	t.Run("a Pod of an earlier Job of the same name has the name", func(t *testing.T) {
		w.DeleteJob("pi")
		j2, key2 := w.CreateJob("pi")
		p := w.MakePod(j, 3) // in the place of one that the earlier Job has left
		p.Name, p.ResourceVersion, p.UID = clustertest.CreateEffect(j2, 0).Name, "", ""
		if _, err := w.CoreV1().Pods(w.NS).Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if refused := clustertest.Only[events.EffectRefused](t, w.act(key2, clustertest.CreateEffect(j2, 0))); refused.Reason != "AlreadyExists" {
			t.Errorf("%+v", refused)
		}
	})
}

func TestCreatePodsOfOneJobAtOnce(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Concurrency = 4 })
	j, key := w.CreateJob("wide")
	w.cached("wide")
	var wg sync.WaitGroup
	for serial := range 30 {
		wg.Go(func() {
			if _, err := w.actor.Act(t.Context(), key, clustertest.CreateEffect(j, serial)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := w.Requests.Count("GET /apis/batch/v1/namespaces/" + w.NS + "/jobs/wide"); n != 1 {
		t.Errorf("%d GETs of the Job", n)
	}
	if n := w.Requests.Count("POST /api/v1/namespaces/" + w.NS + "/pods"); n != 30 {
		t.Errorf("%d POSTs", n)
	}
}

func TestCreatePodWithoutItsJob(t *testing.T) {
	w := newWorld(t)
	j, key := w.CreateJob("gone")
	w.DeleteJob("gone")
	w.cached("gone")
	clustertest.Only[events.JobGone](t, w.act(key, clustertest.CreateEffect(j, 0)))
	w.CreateJob("gone") // another Job
	if gone := clustertest.Only[events.JobGone](t, w.act(key, clustertest.CreateEffect(j, 0))); gone.Name != "gone" {
		t.Errorf("%+v", gone)
	}

	leaving, leavingKey := w.CreateJob("leaving", func(j *batchv1.Job) { j.Finalizers = []string{"example.com/stay"} })
	w.DeleteJob("leaving")
	w.cached("leaving")
	if seen := clustertest.Only[events.JobObserved](t, w.act(leavingKey, clustertest.CreateEffect(leaving, 0))); !seen.Job.Deleting {
		t.Errorf("%+v", seen)
	}
	if pods, err := w.CoreV1().Pods(w.NS).List(t.Context(), metav1.ListOptions{}); err != nil || len(pods.Items) != 0 {
		t.Errorf("there are Pods: %v %v", pods.Items, err)
	}
}

// TestCreatePodFromTheRightTemplate: the spec of a suspended Job may change, and the Job may be suspended again.
func TestCreatePodFromTheRightTemplate(t *testing.T) {
	w := newWorld(t)
	j, key := w.CreateJob("pi", func(j *batchv1.Job) { j.Spec.Suspend = new(true) })
	get := "GET /apis/batch/v1/namespaces/" + w.NS + "/jobs/pi"
	change := func(change func(*batchv1.Job)) {
		t.Helper()
		j = w.LiveJob("pi")
		change(j)
		var err error
		if j, err = w.BatchV1().Jobs(w.NS).Update(t.Context(), j, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	at := func(serial int, generation int64) effect.CreatePod {
		e := clustertest.CreateEffect(j, serial)
		e.Generation = generation
		return e
	}
	t.Run("none while it is suspended", func(t *testing.T) {
		if seen := clustertest.Only[events.JobObserved](t, w.act(key, at(0, j.Generation))).Job; !seen.Suspended {
			t.Errorf("saw %+v", seen)
		}
		if w.LivePod(clustertest.CreateEffect(j, 0).Name) != nil {
			t.Error("there is a Pod")
		}
	})
	t.Run("one that is remembered as suspended is read again", func(t *testing.T) {
		change(func(j *batchv1.Job) {
			j.Spec.Suspend, j.Spec.Template.Spec.NodeSelector = new(false), map[string]string{"zone": "a"}
		})
		p := clustertest.Only[events.PodObserved](t, w.act(key, at(1, 0))).Pod
		if zone := w.LivePod(p.Name).Spec.NodeSelector["zone"]; zone != "a" {
			t.Errorf("zone %q", zone)
		}
	})
	t.Run("one that is remembered with an older template is read again", func(t *testing.T) {
		change(func(j *batchv1.Job) { j.Spec.Suspend = new(true) })
		change(func(j *batchv1.Job) { j.Spec.Template.Spec.NodeSelector = map[string]string{"zone": "b"} })
		change(func(j *batchv1.Job) { j.Spec.Suspend = new(false) })
		w.cached("pi")
		gets := w.Requests.Count(get)
		for serial := range 3 {
			p := clustertest.Only[events.PodObserved](t, w.act(key, at(2+serial, j.Generation))).Pod
			if zone := w.LivePod(p.Name).Spec.NodeSelector["zone"]; zone != "b" {
				t.Errorf("zone %q", zone)
			}
		}
		if n := w.Requests.Count(get) - gets; n != 1 {
			t.Errorf("%d GETs of the Job", n)
		}
	})
	t.Run("none when it has been suspended again meanwhile", func(t *testing.T) {
		generation := j.Generation
		change(func(j *batchv1.Job) { j.Spec.Suspend = new(true) })
		if seen := clustertest.Only[events.JobObserved](t, w.act(key, at(9, generation+1))).Job; !seen.Suspended || seen.Generation != generation+1 {
			t.Errorf("saw %+v", seen)
		}
	})
}

// TestCreatePodReadsTheJobWhereItIsCheap: the API server's watch cache has the Job, and need not ask etcd. It may be behind.
func TestCreatePodReadsTheJobWhereItIsCheap(t *testing.T) {
	w := newWorld(t)
	j, key := w.CreateJob("pi")
	w.cached("pi")
	older := func(change func(*batchv1.Job)) *batchv1.Job {
		o := j.DeepCopy()
		o.TypeMeta = metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}
		change(o)
		return o
	}
	missing := &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound}
	for serial, c := range []struct {
		name string
		code int
		has  any // the cache, instead of the Job; nil for the Job
		want []string
	}{
		{"the cache has it", 0, nil, []string{"0"}},
		{"not yet", http.StatusNotFound, missing, []string{"0", ""}},
		{"with an older template", http.StatusOK, older(func(j *batchv1.Job) { j.Generation-- }), []string{"0", ""}},
		{"suspended, as it was before", http.StatusOK, older(func(j *batchv1.Job) { j.Spec.Suspend = new(true) }), []string{"0", ""}},
		{"another Job of that name, which is gone", http.StatusOK, older(func(j *batchv1.Job) { j.UID = "another" }), []string{"0", ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var versions []string
			w.Requests.Inject(func(q *http.Request) (*http.Response, error) {
				if q.Method != http.MethodGet || !strings.HasSuffix(q.URL.Path, "/jobs/pi") {
					return nil, nil
				}
				version := q.URL.Query().Get("resourceVersion")
				if versions = append(versions, version); version == "" || c.has == nil {
					return nil, nil
				}
				body, err := json.Marshal(c.has)
				return &http.Response{StatusCode: c.code, Request: q, Header: http.Header{"Content-Type": {"application/json"}},
					Body: io.NopCloser(bytes.NewReader(body))}, err
			})
			defer w.Requests.Inject(nil)
			w.actor.forgetJob(key)
			e := clustertest.CreateEffect(j, serial)
			e.Generation = j.Generation
			clustertest.Only[events.PodObserved](t, w.act(key, e))
			if !slices.Equal(versions, c.want) {
				t.Errorf("read at versions %q, not %q", versions, c.want)
			}
		})
	}
}

func TestCreatePodRefused(t *testing.T) {
	w := newWorld(t)
	j, key := w.CreateJob("pi")

	t.Run("invalid, without its value", func(t *testing.T) {
		bad, badKey := w.CreateJob("bad", func(j *batchv1.Job) { j.Spec.Template.Finalizers = []string{"Top Secret"} })
		refused := clustertest.Only[events.EffectRefused](t, w.act(badKey, clustertest.CreateEffect(bad, 3)))
		if refused.Reason != "Invalid" || refused.Serial != 3 || strings.Contains(refused.Message, "Secret") ||
			!strings.Contains(refused.Message, "field metadata.finalizers: FieldValueInvalid") {
			t.Errorf("%+v", refused)
		}
	})
	t.Run("quota", func(t *testing.T) {
		none := corev1.ResourceList{"pods": resource.MustParse("0")}
		quota, err := w.CoreV1().ResourceQuotas(w.NS).Create(t.Context(), &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Name: "none"}, Spec: corev1.ResourceQuotaSpec{Hard: none},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		quota.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none} // the quota controller's part
		if _, err := w.CoreV1().ResourceQuotas(w.NS).UpdateStatus(t.Context(), quota, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		serial := 10
		clustertest.Eventually(t, func() string { // the admission plugin learns of it through a watch
			serial++
			refused, ok := w.act(key, clustertest.CreateEffect(j, serial))[0].(events.EffectRefused)
			if !ok || !strings.Contains(refused.Message, "exceeded quota: none") {
				return "a refusal because of the quota"
			}
			if refused.Reason != "Forbidden" || refused.Serial != serial {
				t.Fatalf("%+v", refused)
			}
			return ""
		})
	})
	t.Run("namespace is terminating", func(t *testing.T) {
		if err := w.CoreV1().Namespaces().Delete(t.Context(), w.NS, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		// No namespace controller runs: it stays terminating. The admission plugin learns of it through a watch.
		serial := 100
		clustertest.Eventually(t, func() string {
			serial++
			facts := w.act(key, clustertest.CreateEffect(j, serial))
			if r, ok := facts[0].(events.EffectRefused); ok && r.Reason == "NamespaceTerminating" && r.Message != "" {
				return ""
			}
			return "a refusal because of the namespace"
		})
	})
}

func TestFindPod(t *testing.T) {
	w := newWorld(t)
	j, key := w.CreateJob("pi")
	p := w.createPod(j, key, 4)
	if seen := clustertest.Only[events.PodObserved](t, w.act(key, effect.FindPod{Name: p.Name, Serial: 4})).Pod; seen.UID != p.UID {
		t.Errorf("%+v", seen)
	}
	for _, e := range []effect.FindPod{{Name: "absent", Serial: 5}, {Name: p.Name, Serial: 5}} {
		if gone := clustertest.Only[events.PodGone](t, w.act(key, e)).Pod; gone.UID != "" || gone.Serial != 5 || gone.Name != e.Name {
			t.Errorf("%+v", gone)
		}
	}
}

// TestAnOrphanIsFoundUnlessItIsBeingDeleted: its label shows that the Job created it, and it may be adopted. One that is being deleted
// never is, so its name is taken, and looking for it finds nothing.
func TestAnOrphanIsFoundUnlessItIsBeingDeleted(t *testing.T) {
	w := newWorld(t)
	j, key := w.CreateJob("pi")
	p := w.createPod(j, key, 4)
	w.EditPod(p.Name, func(p *corev1.Pod) { p.OwnerReferences = nil })
	for _, e := range []effect.Effect{clustertest.CreateEffect(j, 4), effect.FindPod{Name: p.Name, Serial: 4}} {
		if seen := clustertest.Only[events.PodObserved](t, w.act(key, e)).Pod; seen.UID != p.UID || !seen.Orphan {
			t.Errorf("%v: %+v", e, seen)
		}
	}
	w.deleteSlowly(p.Name)
	if refused := clustertest.Only[events.EffectRefused](t, w.act(key, clustertest.CreateEffect(j, 4))); refused.Reason != "AlreadyExists" || refused.Serial != 4 {
		t.Errorf("%+v", refused)
	}
	if gone := clustertest.Only[events.PodGone](t, w.act(key, effect.FindPod{Name: p.Name, Serial: 4})).Pod; gone.UID != "" || gone.Serial != 4 {
		t.Errorf("%+v", gone)
	}
}

// TestForeignJobs: a fact about another controller's Job, from any sender, creates no Pod for it.
func TestForeignJobs(t *testing.T) {
	w := newWorld(t)
	j, key := w.CreateJob("foreign", func(j *batchv1.Job) { j.Spec.ManagedBy = nil })
	if seen := clustertest.Only[events.JobObserved](w, w.act(key, clustertest.CreateEffect(j, 0))); !seen.Job.Foreign {
		t.Errorf("got %+v, want it called foreign", seen.Job)
	}
	snapshot := clustertest.Only[events.JobListed](w, w.act(key, effect.TakeInventory{ID: "ask", Job: j.Name}))
	if snapshot.Job == nil || !snapshot.Job.Foreign {
		t.Errorf("got %+v, want a foreign Job", snapshot)
	}
	if pods, err := w.CoreV1().Pods(w.NS).List(t.Context(), metav1.ListOptions{}); err != nil || len(pods.Items) > 0 {
		t.Errorf("got %d Pods, %v; want none", len(pods.Items), err)
	}
}
