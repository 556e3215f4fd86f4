package function

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/bus"
	"github.com/jobstream/jobstream/bus/embedded"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/functions/job"
	"github.com/jobstream/jobstream/internal/app"
	"github.com/jobstream/jobstream/internal/cluster/act"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
	"github.com/jobstream/jobstream/internal/cluster/watch"
	"github.com/jobstream/jobstream/internal/engine"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

// start runs a trigger and a reconciler in the test's namespace: the Job function, and the example beside it.
func start(w *clustertest.World) *bus.Bus {
	w.Helper()
	server, err := embedded.Start(embedded.Config{StoreDir: w.TempDir()})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(server.Shutdown)
	log := slog.New(slog.DiscardHandler)
	b, err := bus.Connect(w.Context(), bus.Config{Server: server, Cluster: "test", ConnectTimeout: 5 * time.Minute, Log: log})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(b.Close)

	claim := events.Claim{ManagedBy: v1alpha1.DefaultManagedBy, Labels: []string{Label}} // a program's --event-labels
	watcher, err := watch.New(watch.Config{Client: w.Client, Namespace: w.NS, Sink: Sink{b}, Cluster: "test", Claim: claim})
	if err != nil {
		w.Fatal(err)
	}
	actor, err := act.New(act.Config{Client: w.Client, Namespaces: []string{w.NS}, Claim: claim, Log: log})
	if err != nil {
		w.Fatal(err)
	}
	limits := job.DefaultLimits()
	limits.PodBackoff.Base = 100 * time.Millisecond
	member := app.NewMember(app.MemberConfig{Bus: b, Log: log, Functions: []engine.Config{
		{Function: fn.Register(job.New(limits)), Store: store(w, b, job.Name), Actor: actor, Timers: b.Timers(), Announcer: b, Log: log},
		{Function: fn.Register(New()), Store: store(w, b, Name), Actor: Actor{w.Client, claim}, Timers: b.Timers(), Announcer: b, Log: log},
	}})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	for _, run := range []func(context.Context) error{watcher.Run, member.Run} {
		go func() { ended <- run(ctx) }()
	}
	w.Cleanup(func() {
		stop()
		for range 2 {
			if err := <-ended; err != nil && ctx.Err() == nil {
				w.Error(err)
			}
		}
	})
	return b
}

func store(w *clustertest.World, b *bus.Bus, function string) *bus.Store {
	w.Helper()
	s, err := b.Store(function)
	if err != nil {
		w.Fatal(err)
	}
	return s
}

// TestLabelFollowsTheStatus: Pods fail, the Job function counts them and makes others, and the example writes down how many.
func TestLabelFollowsTheStatus(t *testing.T) {
	w := clustertest.NewWorld(t)
	b := start(w)
	j, key := w.CreateJob("pi", func(j *batchv1.Job) { j.Spec.BackoffLimit = new(int32(6)) })
	key.Function = Name

	endNextPod(w, corev1.PodFailed)
	awaitLabel(w, "1")

	t.Log("a user removes the label")
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, Label)
	if _, err := w.BatchV1().Jobs(w.NS).Patch(t.Context(), j.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitLabel(w, "1")

	t.Log("the memory is lost")
	if err := store(w, b, Name).Forget(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	endNextPod(w, corev1.PodFailed)
	awaitLabel(w, "2")

	endNextPod(w, corev1.PodSucceeded)
	clustertest.Eventually(t, func() string {
		s := w.LiveJob("pi").Status
		if s.Succeeded == 1 && s.Failed == 2 {
			return ""
		}
		return fmt.Sprintf("one success and two failures, not %d and %d", s.Succeeded, s.Failed)
	})
	if got := w.LiveJob("pi").Labels[Label]; got != "2" {
		t.Errorf("the label of the finished Job is %q", got)
	}
}

// endNextPod plays the kubelet of the next Pod that the Job function makes.
func endNextPod(w *clustertest.World, phase corev1.PodPhase) {
	w.Helper()
	var name string
	clustertest.Eventually(w, func() string {
		pods, err := w.CoreV1().Pods(w.NS).List(w.Context(), metav1.ListOptions{})
		if err != nil {
			w.Fatal(err)
		}
		i := slices.IndexFunc(pods.Items, func(p corev1.Pod) bool { return p.Status.Phase == corev1.PodPending })
		if i < 0 {
			return "a Pod that has not ended"
		}
		name = pods.Items[i].Name
		return ""
	})
	w.EndPod(name, phase)
}

func awaitLabel(w *clustertest.World, want string) {
	w.Helper()
	clustertest.Eventually(w, func() string {
		j := w.LiveJob("pi")
		if j.Labels[Label] == want {
			return ""
		}
		return fmt.Sprintf("the label to be %q, not %q; the status counts %d failures", want, j.Labels[Label], j.Status.Failed)
	})
}

// TestLateEffect: an effect that comes late, or for a Job whose name another one has taken, changes nothing.
func TestLateEffect(t *testing.T) {
	w := clustertest.NewWorld(t)
	actor := Actor{w.Client, events.Claim{ManagedBy: v1alpha1.DefaultManagedBy, Labels: []string{Label}}}
	j, key := w.CreateJob("pi")
	late := SetLabel{Job: "pi", Version: events.Version(j.ResourceVersion), Value: "1"}
	w.StartJob(j)
	facts, err := actor.Act(t.Context(), key, late)
	if err != nil || clustertest.Only[events.JobObserved](t, facts).Job.Version <= late.Version {
		t.Errorf("got %v, %v, want a newer observation", facts, err)
	}
	w.DeleteJob("pi")
	w.CreateJob("pi")
	if facts, err = actor.Act(t.Context(), key, late); err != nil {
		t.Fatal(err)
	}
	clustertest.Only[events.JobGone](t, facts)
	if got, is := w.LiveJob("pi").Labels[Label]; is {
		t.Errorf("the label is %q", got)
	}
}
