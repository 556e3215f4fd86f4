package hostile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/internal/dev/processnode"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// tenantLabel gives each tenant a node of its own, so that none waits for another's Pods to be bound or run.
const tenantLabel = "example.com/tenant"

// neighbourMayCost is how much longer a Job of one Pod may take beside a neighbour than alone, beyond the slowdown of the server: in
// the median, and nearly always. A machine on which it takes long alone is given more.
func neighbourMayCost(alone time.Duration) time.Duration {
	return min(max(2*time.Second, 4*alone), 10*time.Second)
}

// oneMayCost is the same for each single Job: two cores that run etcd, the API server, the nodes and everything else may be busy for
// a moment. Without shares of namespaces, some Jobs take 20 to 80 seconds.
func oneMayCost(alone time.Duration) time.Duration {
	return min(max(10*time.Second, 10*alone), 18*time.Second)
}

// A neighbour whose 150 selectors match the same 60 Pods, or who starts 300 Jobs of 20 Pods at once, delays the Jobs of other
// namespaces by at most neighbourMayCost, beyond the slowdown of the busy API server and machine. A control measures that slowdown: a
// Job of the built-in controller, created at the same moment, which runs on the same node and shares nothing else with the
// neighbour.
func TestANeighbourSlowsNoOtherNamespace(t *testing.T) {
	const measured = 10
	s := own(t, harness.Config{ReconcilerFlags: []string{"--log-level=info"}})
	peaceful := spaceWithNode(t, s, "peaceful")
	alone := runOnePodJobs(t, peaceful, "alone", measured)
	t.Logf("alone:\n%v", alone)
	for _, neighbour := range []struct {
		name string
		does func(*testing.T, *harness.Space) (done func() bool)
	}{
		{"selectors", laySelectors},
		{"flood", flood},
	} {
		t.Run(neighbour.name, func(t *testing.T) {
			done := neighbour.does(t, spaceWithNode(t, s, neighbour.name))
			beside := runOnePodJobs(t, peaceful, neighbour.name, measured)
			t.Logf("beside the neighbour:\n%v", beside)
			if done() {
				t.Fatal("the neighbour was done before the last Job was measured: this run proves nothing")
			}
			lost := beside.median(ours) - alone.median(ours)
			if server := max(0, beside.median(control)-alone.median(control)); lost > neighbourMayCost(alone.median(ours))+server {
				t.Errorf("Jobs took %v longer beside the neighbour than alone, and their controls %v", lost, server)
			}
			for i, one := range beside {
				lost := one.ours.complete - alone.median(ours)
				server := max(0, one.control.complete-alone.median(control))
				if lost > oneMayCost(alone.median(ours))+server {
					t.Errorf("Job %d took %v longer beside the neighbour than alone, and its control %v", i, lost, server)
				}
			}
		})
	}
}

// laySelectors creates 150 Jobs that select the same Pods and have parallelism 0, and then 60 Pods without an owner: each of the
// Jobs tries to adopt each of the Pods.
func laySelectors(t *testing.T, p *harness.Space) (done func() bool) {
	t.Helper()
	const pods, jobs = 60, 150
	for n := range jobs {
		j := tenantJob(fmt.Sprintf("picky-%d", n), p, 1)
		selecting("x")(&j.Spec)
		j.Spec.Parallelism = new(int32)
		p.Apply(j)
	}
	var making sync.WaitGroup
	for n := range pods {
		making.Go(func() {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("orphan-%d", n), Labels: map[string]string{"app": "x"},
				Annotations: map[string]string{processnode.DurationAnnotation: "1h"}}, Spec: tenantJob("x", p, 1).Spec.Template.Spec}
			if _, err := p.Client.CoreV1().Pods(p.Namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	making.Wait()
	return func() bool { return false } // when the last of them gives up is not observable
}

// spaceWithNode creates a namespace, and a node for its Pods alone. Both are deleted with the System.
func spaceWithNode(t *testing.T, s *harness.System, name string) *harness.Space {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := s.Client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	startHollowNode(t, s, name)
	s.Watch(t)
	return &harness.Space{System: s, TB: t, Namespace: name}
}

// startHollowNode plays the Pods of one tenant until the test ends.
func startHollowNode(t *testing.T, s *harness.System, tenant string) {
	t.Helper()
	node, err := processnode.New(processnode.Config{REST: s.REST, Name: tenant, DataDir: t.TempDir(), Hollow: true,
		Labels: map[string]string{tenantLabel: tenant}})
	if err != nil {
		t.Fatal(err)
	}
	life, end := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- node.Run(life) }()
	t.Cleanup(func() {
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-node.Registered():
	case <-time.After(startTimeout):
		t.Fatal("the node did not register")
	}
}

// tenantJob returns a Job for jobstream whose Pods its tenant's node plays. They end at once.
func tenantJob(name string, p *harness.Space, pods int32) *batchv1.Job {
	j := harness.Shell(name, "true", harness.Size(pods, pods, 0))
	j.Spec.Template.Spec.NodeSelector = map[string]string{tenantLabel: p.Namespace}
	return j
}

// flood starts to create 300 Jobs of 20 Pods as fast as the API server accepts them. It is done when all are Complete.
func flood(t *testing.T, p *harness.Space) (done func() bool) {
	t.Helper()
	const jobs, pods = 300, 20
	numbers := make(chan int)
	var makers sync.WaitGroup
	for range 16 {
		makers.Go(func() {
			for n := range numbers {
				j := tenantJob(fmt.Sprintf("flood-%d", n), p, pods)
				if _, err := p.Client.BatchV1().Jobs(p.Namespace).Create(t.Context(), j, metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	go func() {
		for n := range jobs {
			numbers <- n
		}
		close(numbers)
	}()
	t.Cleanup(makers.Wait)
	return func() bool {
		makers.Wait()
		list, err := p.Client.BatchV1().Jobs(p.Namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, j := range list.Items {
			if harness.Is(&j, batchv1.JobComplete) {
				n++
			}
		}
		t.Logf("%d of the neighbour's %d Jobs are Complete by then", n, len(list.Items))
		return n == jobs
	}
}

// trip is how long a Job of one Pod took from its creation until its Pod, the Pod's end and its condition were seen.
type trip struct{ pod, ended, complete time.Duration }

// twin is a Job of jobstream's, and the control that was created at the same moment.
type twin struct{ ours, control trip }

type twins []twin

func ours(p twin) time.Duration    { return p.ours.complete }
func control(p twin) time.Duration { return p.control.complete }

// median returns the median of all.
func (p twins) median(of func(twin) time.Duration) time.Duration {
	all := p.sorted(of)
	return all[len(all)/2]
}

func (p twins) sorted(of func(twin) time.Duration) (all []time.Duration) {
	for _, one := range p {
		all = append(all, of(one))
	}
	slices.Sort(all)
	return all
}

// String returns a line for each.
func (p twins) String() (out string) {
	for _, who := range []struct {
		name string
		of   func(twin) time.Duration
	}{{"ours", ours}, {"control", control}} {
		out += fmt.Sprintf("%s: median %v, longest %v\n", who.name, p.median(who.of).Round(time.Millisecond), slices.Max(p.sorted(who.of)).Round(time.Millisecond))
	}
	for _, one := range p {
		for _, t := range []trip{one.ours, one.control} {
			out += fmt.Sprintf("  Pod %5d ms, its end %5d ms, Complete %5d ms", t.pod.Milliseconds(), t.ended.Milliseconds(), t.complete.Milliseconds())
		}
		out += "\n"
	}
	return out
}

// runOnePodJobs runs n Jobs of one Pod, one after another, each beside its control.
func runOnePodJobs(t *testing.T, p *harness.Space, name string, n int) (out twins) {
	t.Helper()
	for i := range n {
		a := tenantJob(fmt.Sprintf("%s-%d", name, i), p, 1)
		b := tenantJob(fmt.Sprintf("%s-%d-control", name, i), p, 1)
		b.Spec.ManagedBy = nil
		var one twin
		var errs [2]error
		var both sync.WaitGroup
		both.Go(func() { one.ours, errs[0] = runOnePodJob(t.Context(), p, a) })
		both.Go(func() { one.control, errs[1] = runOnePodJob(t.Context(), p, b) })
		both.Wait()
		if err := errors.Join(errs[:]...); err != nil {
			t.Fatal(err)
		}
		out = append(out, one)
	}
	return out
}

// runOnePodJob runs a Job of one Pod to its end.
func runOnePodJob(ctx context.Context, p *harness.Space, j *batchv1.Job) (took trip, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	pods, err := p.Client.CoreV1().Pods(p.Namespace).Watch(ctx, metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + j.Name})
	if err != nil {
		return took, err
	}
	defer pods.Stop()
	jobs, err := p.Client.BatchV1().Jobs(p.Namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + j.Name})
	if err != nil {
		return took, err
	}
	defer jobs.Stop()
	began := time.Now()
	if _, err := p.Client.BatchV1().Jobs(p.Namespace).Create(ctx, j, metav1.CreateOptions{}); err != nil {
		return took, err
	}
	for {
		select {
		case e, open := <-pods.ResultChan():
			pod, is := e.Object.(*corev1.Pod)
			if !open {
				return took, fmt.Errorf("the watch of the Pod of %s ended after %v", j.Name, time.Since(began))
			}
			if is && took.pod == 0 {
				took.pod = time.Since(began)
			}
			if is && took.ended == 0 && pod.Status.Phase == corev1.PodSucceeded {
				took.ended = time.Since(began)
			}
		case e, open := <-jobs.ResultChan():
			if !open {
				return took, fmt.Errorf("the watch of Job %s ended after %v", j.Name, time.Since(began))
			}
			if seen, is := e.Object.(*batchv1.Job); is && harness.Is(seen, batchv1.JobComplete) {
				took.complete = time.Since(began)
				return took, nil
			}
		}
	}
}
