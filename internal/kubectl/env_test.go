package kubectl

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/cluster"
	"github.com/jobstream/jobstream/internal/dev/controlplane"
)

// plane is a real API server that tests share.
type plane struct {
	once sync.Once
	cp   *controlplane.ControlPlane
	err  error
}

// shared has the kind ScheduledJob once a test has asked for it; bare never has.
var shared, bare plane

// of starts the server when a test first needs it.
func (p *plane) of(t *testing.T, config controlplane.Config) *controlplane.ControlPlane {
	t.Helper()
	if _, err := controlplane.Assets(); err != nil {
		t.Skip("needs a real API server: ", err)
	}
	config.UnsafeNoFsync, config.GCPercent = true, controlplane.RareGC
	p.once.Do(func() { p.cp, p.err = controlplane.Start(context.Background(), config) })
	if p.err != nil {
		t.Fatal(p.err)
	}
	return p.cp
}

// apiServer returns the real API server that the tests of this package share, each in a namespace of its own. No jobstream runs
// beside it. A test that needs ScheduledJobs installs them.
func apiServer(t *testing.T) *controlplane.ControlPlane {
	t.Helper()
	return shared.of(t, controlplane.Config{APIServerFlags: []string{"--enable-admission-plugins=OwnerReferencesPermissionEnforcement"}}) // enabled in some clusters
}

// bareAPIServer returns one that does not know ScheduledJobs. Tests do not change anything there.
func bareAPIServer(t *testing.T) *controlplane.ControlPlane {
	t.Helper()
	return bare.of(t, controlplane.Config{})
}

// installed installs the kind ScheduledJob once.
var installed = sync.OnceValue(func() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	return cluster.InstallScheduledJobs(ctx, shared.cp.RESTConfig())
})

// knowScheduledJobs lets the API server that the tests share know ScheduledJobs.
func knowScheduledJobs(t *testing.T) {
	t.Helper()
	apiServer(t)
	if err := installed(); err != nil {
		t.Fatal(err)
	}
}

// world is one test's namespace, and records the requests of the plugin.
type world struct {
	*testing.T
	kubernetes.Interface
	ns string

	mu       sync.Mutex
	requests []string
	fault    func(n int, r *http.Request) error // n is the number of earlier requests
}

func newWorld(t *testing.T) *world {
	t.Helper()
	admin, err := kubernetes.NewForConfig(apiServer(t).RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	ns, err := admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, Interface: admin, ns: ns.Name}
	t.Cleanup(w.clear)
	return w
}

// clear deletes the Jobs and ScheduledJobs of the namespace: another test may ask about all of the cluster.
func (w *world) clear() {
	ctx := context.Background()
	if err := w.BatchV1().Jobs(w.ns).DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}, metav1.ListOptions{}); err != nil {
		w.Error(err)
	}
	scheduled, err := newScheduledJobs(apiServer(w.T).RESTConfig())
	if err != nil {
		w.Fatal(err)
	}
	err = scheduled.rest.Delete().Namespace(w.ns).Resource(v1alpha1.ScheduledJobResource).Do(ctx).Error()
	if err != nil && !apierrors.IsNotFound(err) { // the definition is not installed
		w.Error(err)
	}
}

// call runs the plugin as an administrator in the namespace, unless the arguments override that.
func (w *world) call(args ...string) session {
	w.Helper()
	return call(w.T, "", args, w.here)
}

// here points the plugin to the namespace, and records its requests.
func (w *world) here(t *tool) {
	*t.config.KubeConfig, *t.config.Namespace = apiServer(w.T).Kubeconfig(), w.ns
	t.config.WrapConfigFn = func(c *rest.Config) *rest.Config {
		c.Wrap(func(next http.RoundTripper) http.RoundTripper { return watched{w, next} })
		return c
	}
}

// watched records requests that change something, as the API server would receive them, and may block them.
type watched struct {
	*world
	next http.RoundTripper
}

func (r watched) RoundTrip(q *http.Request) (*http.Response, error) {
	if q.Method == http.MethodGet {
		return r.next.RoundTrip(q)
	}
	r.mu.Lock()
	n, fault := len(r.requests), r.fault
	r.requests = append(r.requests, q.Method+" "+strings.TrimPrefix(q.URL.Path[strings.Index(q.URL.Path, r.ns)+len(r.ns):], "/"))
	r.mu.Unlock()
	if fault != nil {
		if err := fault(n, q); err != nil {
			return nil, err
		}
	}
	return r.next.RoundTrip(q)
}

func (w *world) job(name string) *batchv1.Job {
	w.Helper()
	j, err := w.BatchV1().Jobs(w.ns).Get(w.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.Fatal(err)
	}
	return j
}

// lists returns the namespace's ConfigMaps that runs have created.
func (w *world) lists() (found []corev1.ConfigMap) {
	w.Helper()
	all, err := w.CoreV1().ConfigMaps(w.ns).List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	for _, c := range all.Items {
		if c.Name != "kube-root-ca.crt" {
			found = append(found, c)
		}
	}
	return found
}

// end plays the controller that ends the Job.
func (w *world) end(name string, how ...batchv1.JobConditionType) {
	w.Helper()
	j := w.job(name)
	now := metav1.Now()
	j.Status.StartTime = &now
	for _, t := range how {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: t, Status: corev1.ConditionTrue, Reason: "Because", Message: "of a test", LastTransitionTime: now})
		if t == batchv1.JobComplete {
			j.Status.CompletionTime = &now
		}
	}
	if _, err := w.BatchV1().Jobs(w.ns).UpdateStatus(w.Context(), j, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// patience is how long a test waits for what has to happen. No machine is so slow, and a test that passes does not wait for it.
const patience = 5 * time.Minute

// eventually polls until ok returns "", and otherwise reports what ok still waits for.
func eventually(t testing.TB, ok func() (waitsFor string)) {
	t.Helper()
	late, again := time.After(patience), time.NewTicker(20*time.Millisecond)
	defer again.Stop()
	for {
		what := ok()
		if what == "" {
			return
		}
		select {
		case <-again.C:
		case <-late:
			t.Fatal("still waiting: ", what)
		}
	}
}
