package hostile

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/bus"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/functions/job"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

func open(t *testing.T, gate string) {
	t.Helper()
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// forger is a client of NATS with the rights of jobstream's programs, which also knows jobstream's functions.
type forger struct {
	*testing.T
	bus   *bus.Bus
	store *bus.Store
	nc    *nats.Conn
}

func newForger(t *testing.T, s *harness.System) *forger {
	t.Helper()
	b, err := bus.Connect(t.Context(), bus.Config{URL: s.NATS.URL, Cluster: harness.ClusterName, Name: "forger", ConnectTimeout: startTimeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	store, err := b.Store("job")
	if err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(s.NATS.URL, nats.Timeout(startTimeout))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return &forger{t, b, store, nc}
}

// jobFunction is the reconciler's own, with limits that allow all of its effects.
func jobFunction() fn.Registered {
	l := job.DefaultLimits()
	l.DeleteExpired = true
	return fn.Register(job.New(l))
}

// remember replaces the state of the key with what the reconciler's own function makes of these facts. Then it wakes the key.
func (f *forger) remember(key events.Key, facts ...events.Event) {
	f.Helper()
	now := time.Now()
	d, err := jobFunction().Decide(nil, []events.Event{events.TimerFired{Name: "wake"}}, now)
	if err != nil {
		f.Fatal(err)
	}
	for i := range facts { // an inventory is an answer: it has the ID of the request
		if list, ok := facts[i].(events.JobListed); ok {
			list.ID = d.Effects[0].(effect.TakeInventory).ID
			facts[i] = list
		}
	}
	if d, err = jobFunction().Decide(d.State, facts, now); err != nil {
		f.Fatal(err)
	}
	f.Logf("the forged state causes %v", d.Effects)
	harness.Until(f, timeout, "the forged state to be stored", func(ctx context.Context) error { // the reconciler may write it at the same time
		_, revision, err := f.store.Load(ctx, key)
		if err == nil {
			_, err = f.store.Save(ctx, key, d.State, revision, false)
		}
		return err
	})
	f.wake(key)
}

// wake publishes a fired timer, which wakes the key without other consequences.
func (f *forger) wake(key events.Key) {
	f.Helper()
	fact := events.Fact{Cluster: harness.ClusterName, Key: key, Event: events.TimerFired{Name: fmt.Sprint("forged ", time.Now().UnixNano())}}
	if err := f.bus.Publish(f.Context(), fact); err != nil {
		f.Fatal(err)
	}
	if err := f.bus.Flush(f.Context()); err != nil {
		f.Fatal(err)
	}
}

// A client that may write states and facts of all kinds on the bus names Pods and Jobs of the peaceful namespace that do not
// belong to jobstream. They stay as they are. What such a client can do to jobstream's own Jobs is in docs/security.md.
func TestForgedStatesChangeNoForeignObjects(t *testing.T) {
	s := system(t)
	p, f := newPeace(t, s), newForger(t, s)
	bystander, err := s.Client.CoreV1().Pods(p.Namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "bystander"},
		Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "busybox", Command: []string{"sleep", "1000"}}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.Apply(harness.Shell("built-in", "sleep 1000", harness.Size(1, 1, 0), func(s *batchv1.JobSpec) { s.ManagedBy = nil }))
	p.Apply(harness.Shell("idle", "true", func(s *batchv1.JobSpec) { s.ManagedBy, s.Suspend = nil, ptr.To(true) }))
	p.Apply(harness.Shell("ours", "sleep 1000", harness.Size(1, 1, 0)))
	for _, name := range []string{"built-in", "ours"} {
		p.Await(name, timeout, "to run", func(j *batchv1.Job) bool { return ptr.Deref(j.Status.Ready, 0) == 1 })
	}
	idle := p.Await("idle", timeout, "to be suspended", func(j *batchv1.Job) bool { return harness.Is(j, batchv1.JobSuspended) })
	builtIn, ours := p.Job("built-in"), p.Job("ours")
	victims := map[string]string{}
	for _, pod := range append(p.Pods("built-in"), *bystander) {
		victims[pod.Name] = string(pod.UID)
	}
	listed := func(j *batchv1.Job, pods ...corev1.Pod) events.JobListed {
		projected := events.ProjectJob(j, events.Claim{ManagedBy: v1alpha1.DefaultManagedBy, Unmanaged: true})
		list := events.JobListed{Name: j.Name, Job: &projected, JobsVersion: projected.Version, Version: projected.Version}
		for i, pod := range pods {
			seen := events.ProjectPod(&pod)
			seen.Serial, seen.Owner, seen.Orphan, seen.Labels = i, j.Name, false, nil
			list.Pods = append(list.Pods, seen)
		}
		return list
	}
	finished := func(list events.JobListed) events.JobListed {
		now := metav1.Now()
		list.Job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, LastTransitionTime: now},
			{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue, LastTransitionTime: now}}
		list.Job.TTLSecondsAfterFinished = ptr.To[int32](0)
		return list
	}
	resumed := func(list events.JobListed) events.JobListed { list.Job.Suspended = false; return list }
	key := func(j *batchv1.Job) events.Key {
		return events.Key{Function: "job", Namespace: p.Namespace, UID: j.UID}
	}
	all := append(p.Pods("built-in"), *bystander)
	missing := ours.DeepCopy()
	missing.UID, missing.Name = "0b5e7a10-0000-4000-8000-00000000dead", "missing"

	f.remember(key(builtIn), finished(listed(builtIn, all...))) // clean up after a finished Job: its Pods, the Pods of others, the Job itself
	f.remember(key(idle), resumed(listed(idle)))                // start a Job, and write its status
	f.remember(key(missing), finished(listed(missing, all...))) // Pods of a Job that does not exist
	f.remember(key(ours), finished(listed(ours, all...)))       // Pods of others, for a Job of jobstream's
	for n := range 500 {                                        // and many unknown keys
		f.wake(events.Key{Function: "job", Namespace: p.Namespace, UID: types.UID(fmt.Sprintf("0b5e7a10-0000-4000-8000-%012d", n))})
	}
	p.round(t) // meanwhile everything above happens
	harness.Holds(t, 3*time.Second, "what does not belong to jobstream to stay as it is", func(context.Context) error {
		for name, uid := range victims {
			pod, err := s.Client.CoreV1().Pods(p.Namespace).Get(t.Context(), name, metav1.GetOptions{})
			switch {
			case err != nil:
				return err
			case string(pod.UID) != uid, pod.DeletionTimestamp != nil, name != "bystander" && len(harness.Held([]corev1.Pod{*pod})) != 1:
				return fmt.Errorf("the Pod %s: %+v", name, pod.ObjectMeta)
			}
		}
		for _, was := range []*batchv1.Job{builtIn, idle} {
			is := p.Job(was.Name)
			if is.DeletionTimestamp != nil || harness.Brief(is.Status) != harness.Brief(was.Status) {
				return fmt.Errorf("the Job %s is %s, was %s", was.Name, harness.Brief(is.Status), harness.Brief(was.Status))
			}
		}
		if j := p.Job("ours"); j.DeletionTimestamp != nil {
			return fmt.Errorf("jobstream's Job is being deleted, though it has no time to live")
		}
		return nil
	})
	unharmed(t, s)
}

// Facts that no trigger would publish: of impossible keys, about other objects than their subjects name, of no known type, and
// of eight megabytes.
func TestForgedFactsAreHarmless(t *testing.T) {
	s := system(t)
	p, f := newPeace(t, s), newForger(t, s)
	for _, length := range impossible {
		if length > 4015 { // the server closes the connection of a client that sends such a line: the forger's own
			continue
		}
		fact := events.Fact{Cluster: harness.ClusterName, Event: events.PodObserved{Pod: events.Pod{Name: "x", UID: "x", Version: 1, Held: true}},
			Key: events.Key{Function: "job", Namespace: p.Namespace, UID: types.UID(fmt.Sprintf("%0*d", length, 7))}}
		data, err := events.Encode(fact)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.nc.Publish(fact.Subject(), data); err != nil {
			t.Fatal(err)
		}
	}
	big := make([]byte, 8<<20-1000)
	for _, uid := range []string{"a", "b", "c"} {
		for _, subject := range []string{"facts." + harness.ClusterName + ".job." + p.Namespace + "." + uid + ".PodObserved", "fired." + harness.ClusterName + ".3.job." + p.Namespace + "." + uid + ".again"} {
			for _, data := range [][]byte{nil, []byte("{}"), []byte(`{"specversion":"1.0","id":"x","source":"/clusters/e2e","type":"dev.jobstream.fact.Doom.v9","subject":"job.x.y"}`), big} {
				if err := f.nc.Publish(subject, data); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if err := f.nc.FlushTimeout(timeout); err != nil {
		t.Fatal(err)
	}
	p.round(t)
	unharmed(t, s)
}
