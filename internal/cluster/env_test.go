package cluster

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/job"
	"github.com/jobstream/jobstream/internal/dev/controlplane"
)

// patience is for two cores that also compile.
const patience = 30 * time.Second

var (
	startOnce sync.Once
	shared    *controlplane.ControlPlane
	startErr  error
)

func TestMain(m *testing.M) {
	code := m.Run()
	if shared != nil {
		if err := shared.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the control plane:", err)
		}
	}
	os.Exit(code)
}

// realCluster returns the API server that the tests of this package share, each in a namespace of its own. Without the
// programs it skips the test, and says what to run.
func realCluster(t *testing.T) *controlplane.ControlPlane {
	t.Helper()
	if _, err := controlplane.Assets(); err != nil {
		t.Skip("needs a real API server: ", err)
	}
	startOnce.Do(func() {
		shared, startErr = controlplane.Start(context.Background(), controlplane.Config{UnsafeNoFsync: true,
			APIServerFlags: []string{"--enable-admission-plugins=OwnerReferencesPermissionEnforcement"}}) // some clusters have it
		if startErr == nil {
			startErr = InstallScheduledJobs(context.Background(), shared.RESTConfig())
		}
	})
	if startErr != nil {
		t.Fatal(startErr)
	}
	return shared
}

// world is one test's client, namespace and Actor.
type world struct {
	*testing.T
	kubernetes.Interface
	ns        string
	actor     *Actor
	requests  *requests
	client    kubernetes.Interface // the Actor's, whose requests are seen
	schedules *ScheduledJobs
}

// requests sees every request of the Actor, and may answer in the server's stead.
type requests struct {
	mu    sync.Mutex
	seen  []string
	fault func(*http.Request) (*http.Response, error)
	next  http.RoundTripper
}

func (r *requests) RoundTrip(q *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.seen = append(r.seen, q.Method+" "+q.URL.Path)
	fault := r.fault
	r.mu.Unlock()
	if fault != nil {
		if resp, err := fault(q); resp != nil || err != nil {
			return resp, err
		}
	}
	return r.next.RoundTrip(q)
}

func (r *requests) count(what string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.seen {
		if s == what {
			n++
		}
	}
	return n
}

func (r *requests) inject(fault func(*http.Request) (*http.Response, error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault = fault
}

// testClient makes a client through NewClient whose requests can be seen.
func testClient(t *testing.T) (kubernetes.Interface, *requests) {
	t.Helper()
	client, _, seen := testClients(t)
	return client, seen
}

// testClients is testClient with one more client, of ScheduledJobs.
func testClients(t *testing.T) (kubernetes.Interface, *ScheduledJobs, *requests) {
	t.Helper()
	_, config, err := NewClient(ClientConfig{Kubeconfig: realCluster(t).Kubeconfig()})
	if err != nil {
		t.Fatal(err)
	}
	seen := &requests{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { seen.next = next; return seen })
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	schedules, err := NewScheduledJobs(config)
	if err != nil {
		t.Fatal(err)
	}
	return client, schedules, seen
}

func newWorld(t *testing.T, change ...func(*ActorConfig)) *world {
	t.Helper()
	client, schedules, seen := testClients(t)
	config := ActorConfig{Client: client, ScheduledJobs: schedules, Now: func() time.Time { return time.Unix(1000, 0) }}
	for _, f := range change {
		f(&config)
	}
	actor, err := NewActor(config)
	if err != nil {
		t.Fatal(err)
	}
	admin, err := kubernetes.NewForConfig(rest.CopyConfig(realCluster(t).RESTConfig()))
	if err != nil {
		t.Fatal(err)
	}
	schedules, err = NewScheduledJobs(realCluster(t).RESTConfig()) // whose requests are not counted
	if err != nil {
		t.Fatal(err)
	}
	ns, err := admin.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return &world{T: t, Interface: admin, ns: ns.Name, actor: actor, requests: seen, client: client, schedules: schedules}
}

func jobObject(name string, change ...func(*batchv1.Job)) *batchv1.Job {
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{
			ManagedBy: new(v1alpha1.DefaultManagedBy),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers:    []corev1.Container{{Name: "main", Image: "none"}},
			}},
		},
	}
	for _, f := range change {
		f(j)
	}
	return j
}

func (w *world) createJob(name string, change ...func(*batchv1.Job)) (*batchv1.Job, events.Key) {
	w.Helper()
	j, err := w.BatchV1().Jobs(w.ns).Create(w.Context(), jobObject(name, change...), metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return j, events.Key{Function: "job", Namespace: w.ns, UID: j.UID}
}

// startJob gives the Job a start time, as our first status write does.
func (w *world) startJob(j *batchv1.Job) *batchv1.Job {
	w.Helper()
	j = j.DeepCopy()
	j.Status.StartTime = new(metav1.NewTime(time.Unix(1000, 0)))
	j, err := w.BatchV1().Jobs(w.ns).UpdateStatus(w.Context(), j, metav1.UpdateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return j
}

func (w *world) createPod(j *batchv1.Job, key events.Key, serial int) events.Pod {
	w.Helper()
	return only[events.PodObserved](w, w.act(key, createEffect(j, serial))).Pod
}

func createEffect(j *batchv1.Job, serial int) effect.CreatePod {
	return effect.CreatePod{Job: j.Name, Name: job.PodName(j.Name, j.UID, serial, events.NoIndex), Serial: serial, Index: events.NoIndex}
}

func (w *world) act(key events.Key, e effect.Effect) []events.Event {
	w.Helper()
	facts, err := w.actor.Act(w.Context(), key, e)
	if err != nil {
		w.Fatalf("%s: %v", e, err)
	}
	return facts
}

// only asserts that there is one fact, and that it is of that type.
func only[E events.Event](t testing.TB, facts []events.Event) E {
	t.Helper()
	if len(facts) == 1 {
		if e, ok := facts[0].(E); ok {
			return e
		}
	}
	var want E
	t.Fatalf("got the facts %#v, want one %T", facts, want)
	return want
}

func (w *world) livePod(name string) *corev1.Pod {
	w.Helper()
	p, err := w.CoreV1().Pods(w.ns).Get(w.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.Fatal(err)
	}
	return p
}

func (w *world) liveJob(name string) *batchv1.Job {
	w.Helper()
	j, err := w.BatchV1().Jobs(w.ns).Get(w.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return j
}

// touchPod changes something that nobody looks at, so that the Pod gets a new version.
func (w *world) touchPod(name string) *corev1.Pod {
	w.Helper()
	p := w.livePod(name)
	p.Annotations["touched"] = p.ResourceVersion
	p, err := w.CoreV1().Pods(w.ns).Update(w.Context(), p, metav1.UpdateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return p
}

// bindPod makes the Pod one that a node runs, so that its deletion takes time; but only when the API server's cache knows
// of the node: a deletion that first meets an older Pod there is one without grace (Kubernetes 1.36, CheckGracefulDelete
// changes the options of both attempts).
func (w *world) bindPod(name string) {
	w.Helper()
	err := w.CoreV1().Pods(w.ns).Bind(w.Context(), &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.ns}, Target: corev1.ObjectReference{Kind: "Node", Name: "n"},
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	eventually(w, func() string {
		p, err := w.CoreV1().Pods(w.ns).Get(w.Context(), name, metav1.GetOptions{ResourceVersion: "0"})
		if err != nil || p.Spec.NodeName == "" {
			return "the cache to know the node"
		}
		return ""
	})
}

// endPod plays the kubelet of a Pod that has ended.
func (w *world) endPod(name string, phase corev1.PodPhase) *corev1.Pod {
	w.Helper()
	p := w.livePod(name)
	p.Status.Phase = phase
	p, err := w.CoreV1().Pods(w.ns).UpdateStatus(w.Context(), p, metav1.UpdateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return p
}

// eventually polls until ok, which says what it still waits for.
func eventually(t testing.TB, ok func() (waitsFor string)) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		what := ok()
		if what == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still waiting after %v: %s", patience, what)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
}
