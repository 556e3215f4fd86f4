package processnode

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/internal/dev/controlplane"
)

// timeout is how long a test waits for what should take a moment: the machine may be busy with other things.
const timeout = 5 * time.Minute

// plane is the control plane that all tests of this package share.
var plane struct {
	once sync.Once
	cp   *controlplane.ControlPlane
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if plane.cp != nil {
		if err := plane.cp.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the control plane:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// world is one test's namespace and the node that its Pods run on.
type world struct {
	testing.TB
	client    kubernetes.Interface
	config    Config
	namespace string
	node      *Node
	stop      func()
}

// newWorld starts a node of the test's own on the shared control plane.
func newWorld(t testing.TB, config Config) *world {
	t.Helper()
	if testing.Short() {
		t.Skip("skipped by -short: it needs a control plane")
	}
	if _, err := controlplane.Assets(); err != nil {
		t.Skipf("skipped, there is no control plane to register with: %v", err)
	}
	plane.once.Do(func() {
		plane.cp, plane.err = controlplane.Start(context.Background(), controlplane.Config{UnsafeNoFsync: true, GCPercent: controlplane.RareGC})
	})
	if plane.err != nil {
		t.Fatalf("start a control plane: %v", plane.err)
	}
	config.REST = plane.cp.RESTConfig()
	if config.Name == "" {
		config.Name = "node-" + shortID()
	}
	if config.DataDir == "" {
		config.DataDir = t.TempDir()
	}
	if testing.Verbose() {
		config.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	full, err := config.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{TB: t, client: full.Client, config: config, namespace: "test-" + shortID()}
	_, err = w.client.CoreV1().Namespaces().Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.startNode()
	t.Cleanup(func() { w.stop() })
	return w
}

func shortID() string { return fmt.Sprintf("%x", time.Now().UnixNano()&0xffffffffff) }

// startNode starts a node with the world's configuration and waits until it takes Pods.
func (w *world) startNode() {
	w.Helper()
	node, err := New(w.config)
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- node.Run(ctx) }()
	w.node = node
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			w.Errorf("the node ended with: %v", err)
		}
	})
	select {
	case <-node.Registered():
	case err := <-ended:
		ended <- nil // for stop, which the test's cleanup calls
		w.Fatalf("the node ended with: %v", err)
	case <-time.After(timeout):
		w.Fatal("the node did not register")
	}
}

// shell is a Pod with one container that runs a script and is not restarted.
func shell(name, script string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.PodSpec{
			RestartPolicy:                 v1.RestartPolicyNever,
			TerminationGracePeriodSeconds: ptr.To(int64(30)),
			Containers:                    []v1.Container{{Name: "main", Image: "busybox", Command: []string{"sh", "-c", script}}},
		},
	}
}

// create creates the Pod in the test's namespace, for the test's node.
func (w *world) create(p *v1.Pod) *v1.Pod {
	w.Helper()
	p.Spec.NodeSelector = map[string]string{v1.LabelHostname: w.config.Name}
	p, err := w.client.CoreV1().Pods(w.namespace).Create(w.Context(), p, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return p
}

// await polls the Pod until what it shows is as the test wants it; nil stands for a Pod that is gone.
func (w *world) await(name, what string, is func(*v1.Pod) bool) *v1.Pod {
	w.Helper()
	var p *v1.Pod
	deadline := time.Now().Add(timeout)
	for time.Now().Before(deadline) {
		var err error
		p, err = w.client.CoreV1().Pods(w.namespace).Get(w.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			p = nil
		} else if err != nil {
			w.Fatal(err)
		}
		if is(p) {
			return p
		}
		pause(w.Context(), 10*time.Millisecond)
	}
	if p == nil {
		w.Fatalf("pod %s is gone, and was to be %s", name, what)
	}
	w.Fatalf("pod %s is not %s: %+v", name, what, p.Status)
	return nil
}

func (w *world) awaitPhase(name string, phase v1.PodPhase) *v1.Pod {
	w.Helper()
	return w.await(name, string(phase), func(p *v1.Pod) bool { return p != nil && p.Status.Phase == phase })
}

func (w *world) awaitGone(name string) {
	w.Helper()
	w.await(name, "gone", func(p *v1.Pod) bool { return p == nil })
}

// logs reads a container's log through the API server, as kubectl logs does.
func (w *world) logs(name string, o *v1.PodLogOptions) string {
	w.Helper()
	r, err := w.client.CoreV1().Pods(w.namespace).GetLogs(name, o).Stream(w.Context())
	if err != nil {
		w.Fatalf("logs of %s: %v", name, err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		w.Fatalf("logs of %s: %v", name, err)
	}
	return string(b)
}

func (w *world) delete(name string, o metav1.DeleteOptions) {
	w.Helper()
	if err := w.client.CoreV1().Pods(w.namespace).Delete(w.Context(), name, o); err != nil {
		w.Fatal(err)
	}
}

// mainState is how the main container of a Pod ended.
func mainState(t *testing.T, p *v1.Pod) *v1.ContainerStateTerminated {
	t.Helper()
	s := p.Status.ContainerStatuses[0].State.Terminated
	if s == nil {
		t.Fatalf("the container has not ended: %+v", p.Status.ContainerStatuses[0].State)
	}
	return s
}
