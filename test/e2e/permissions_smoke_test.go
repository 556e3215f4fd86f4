package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// smoke exercises everything that needs a verb or a subject of its own.
func smoke(t *testing.T, s *harness.System) {
	for name, part := range map[string]func(*harness.Space){
		"Indexed, with parameters of a ConfigMap":            withParameters,
		"fails, and its oldest Pods are deleted":             failing,
		"ten Pods, without field ownership":                  tenPods,
		"adopts a Pod and releases it":                       adopting,
		"is suspended twice":                                 suspended,
		"its time to live is over":                           expiring,
		"Replace":                                            replacing,
		"history limit":                                      forgetting,
		"runAt, with a time to live":                         runningOnce,
		"a message that cannot be decoded":                   unreadable,
		"a subscriber with an account of its own, and a Job": subscribing,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			part(s.Space(t))
		})
	}
}

func withParameters(p *harness.Space) {
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fruits}, Data: map[string]string{"FRUIT": "apple\nbanana", "COLOR": "green\nyellow"}, Immutable: ptr.To(true)}
	if _, err := p.Client.CoreV1().ConfigMaps(p.Namespace).Create(p.Context(), c, metav1.CreateOptions{}); err != nil {
		p.Fatal(err)
	}
	p.Apply(fruitJob(2))
	p.AwaitEnd("fruit", batchv1.JobComplete, timeout)
}

func failing(p *harness.Space) {
	j := harness.Shell("failing", "exit 1", harness.Size(1, 1, 2))
	p.Apply(annotated(annotated(j, v1alpha1.BackoffSecondsAnnotation, "1"), v1alpha1.FailedPodsLimitAnnotation, "1"))
	p.AwaitEnd("failing", batchv1.JobFailed, timeout)
}

func tenPods(p *harness.Space) {
	p.Apply(harness.Shell("ten", "exit 0", harness.Size(10, 10, 0)))
	if end := p.AwaitEnd("ten", batchv1.JobComplete, timeout); len(end.ManagedFields) > 0 {
		p.Errorf("it has %d managedFields", len(end.ManagedFields))
	}
}

func adopting(p *harness.Space) {
	labels, pods := map[string]string{"app": "picky"}, p.Client.CoreV1().Pods(p.Namespace)
	j := harness.Shell("picky", "sleep 600", harness.Size(2, 2, 0), func(s *batchv1.JobSpec) {
		s.ManualSelector, s.Selector, s.Template.Labels = ptr.To(true), &metav1.LabelSelector{MatchLabels: labels}, labels
	})
	if _, err := pods.Create(p.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "orphan", Labels: labels}, Spec: j.Spec.Template.Spec}, metav1.CreateOptions{}); err != nil {
		p.Fatal(err)
	}
	p.Apply(j)
	ours := func(want bool) {
		p.Helper()
		harness.Until(p, timeout, fmt.Sprintf("the Pod to be the Job's: %v", want), func(ctx context.Context) error {
			pod, err := pods.Get(ctx, "orphan", metav1.GetOptions{})
			if err == nil && (metav1.GetControllerOf(pod) != nil) != want {
				err = fmt.Errorf("its owners are %v", pod.OwnerReferences)
			}
			return err
		})
	}
	ours(true)
	if _, err := pods.Patch(p.Context(), "orphan", types.MergePatchType, []byte(`{"metadata":{"labels":{"app":null}}}`), metav1.PatchOptions{}); err != nil {
		p.Fatal(err)
	}
	ours(false)
}

// suspended causes the same Event twice; the second one is a patch.
func suspended(p *harness.Space) {
	p.Apply(harness.Shell("paused", "sleep 600", harness.Size(2, 2, 0)))
	for range 2 {
		p.Await("paused", timeout, "to run", func(j *batchv1.Job) bool { return ptr.Deref(j.Status.Ready, 0) == 2 })
		suspend(p, "paused", true)
		p.Await("paused", timeout, "to be suspended", func(j *batchv1.Job) bool { return harness.Is(j, batchv1.JobSuspended) && j.Status.Active == 0 })
		suspend(p, "paused", false)
	}
	harness.Until(p, timeout, "an Event that happened twice", func(context.Context) error {
		all := p.Events("paused")
		if slices.ContainsFunc(all, func(e corev1.Event) bool { return e.Count > 1 }) {
			return nil
		}
		return fmt.Errorf("there are %d", len(all))
	})
}

func suspend(p *harness.Space, job string, on bool) {
	p.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"suspend":%v}}`, on)
	if _, err := p.Client.BatchV1().Jobs(p.Namespace).Patch(p.Context(), job, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		p.Fatal(err)
	}
}

func expiring(p *harness.Space) {
	p.Apply(harness.Shell("brief", "exit 0", harness.Size(1, 1, 0), func(s *batchv1.JobSpec) { s.TTLSecondsAfterFinished = ptr.To[int32](1) }))
	harness.Until(p, timeout, "the Job to be deleted", func(ctx context.Context) error {
		_, err := p.Client.BatchV1().Jobs(p.Namespace).Get(ctx, "brief", metav1.GetOptions{})
		if err == nil {
			return errors.New("it is there")
		}
		if !apierrors.IsNotFound(err) {
			return err
		}
		return nil
	})
}

func replacing(p *harness.Space) {
	p.Schedule(harness.Every("latest", "*/2 * * * * *", "sleep 600", func(s *v1alpha1.ScheduledJobSpec) {
		s.ConcurrencyPolicy = v1alpha1.ReplaceConcurrent
		s.JobTemplate.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](0)
	}))
	p.AwaitSchedule("latest", timeout, "to have replaced a Job", func(j *v1alpha1.ScheduledJob) bool { return j.Status.Failed > 0 && len(j.Status.Active) > 0 })
	p.Unschedule("latest", metav1.DeletePropagationBackground)
}

func forgetting(p *harness.Space) {
	sj := p.Schedule(harness.Every("tick", "* * * * * *", "exit 0", func(s *v1alpha1.ScheduledJobSpec) { s.SuccessfulJobsHistoryLimit = ptr.To[int32](1) }))
	p.AwaitSchedule("tick", timeout, "to have run four times", func(j *v1alpha1.ScheduledJob) bool { return j.Status.Successful >= 4 })
	p.Reschedule("tick", `{"suspend":true}`)
	harness.Until(p, timeout, "one Job to be kept", func(context.Context) error {
		if n := len(p.Runs(sj.UID)); n > 1 {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
}

func runningOnce(p *harness.Space) {
	p.Schedule(harness.Every("once", "", "exit 0", func(s *v1alpha1.ScheduledJobSpec) {
		s.RunAt = ptr.To(metav1.NewTime(time.Now().Add(2 * time.Second).Truncate(time.Second)))
		s.TTLSecondsAfterFinished = ptr.To[int32](2)
	}))
	harness.Until(p, timeout, "the ScheduledJob to be deleted", func(context.Context) error { return p.Unscheduled("once") })
}

func unreadable(p *harness.Space) {
	j := p.Apply(harness.Shell("beset", "exit 0", harness.Size(4, 1, 0)))
	setAside(p, "job", j.UID)
	p.AwaitEnd("beset", batchv1.JobComplete, timeout)
}

// setAside publishes an undecodable message about an object, and waits until "quarantine" lists it.
func setAside(p *harness.Space, function string, uid types.UID) {
	p.Helper()
	subject := fmt.Sprintf("facts.%s.%s.%s.%s.Unreadable", events.Token(harness.ClusterName), function, events.Token(p.Namespace), events.Token(string(uid)))
	if _, err := operator(p, p.System).Publish(p.Context(), subject, []byte("no JSON")); err != nil {
		p.Fatal(err)
	}
	harness.Until(p, timeout, "the message to be set aside", func(context.Context) error {
		if code, out := as(p, p.System, "quarantine"); code != 0 || !strings.Contains(out, string(uid)) {
			return fmt.Errorf("exit code %d: %s", code, out)
		}
		return nil
	})
}

func subscribing(p *harness.Space) {
	filter := "jobstream.events." + harness.ClusterName + "." + p.Namespace + ".>"
	if _, err := operator(p, p.System).CreateConsumer(p.Context(), eventsStream, jetstream.ConsumerConfig{Durable: "audit", FilterSubject: filter, AckPolicy: jetstream.AckExplicitPolicy}); err != nil {
		p.Fatal(err)
	}
	nc := dial(p, p.System, "audit")
	live, err := nc.SubscribeSync(filter)
	if err != nil {
		p.Fatal(err)
	}
	js, err := jetstream.NewWithAPIPrefix(nc, harness.APIPrefix, jetstream.WithDefaultTimeout(timeout))
	if err != nil {
		p.Fatal(err)
	}
	c, err := js.Consumer(p.Context(), eventsStream, "audit")
	if err != nil {
		p.Fatal(err)
	}
	p.Apply(harness.Shell("plain", "exit 0", harness.Size(3, 2, 0)))
	p.AwaitEnd("plain", batchv1.JobComplete, timeout)
	for _, want := range []string{"JobStart", "JobFinish"} {
		m, err := c.Next(jetstream.FetchMaxWait(timeout))
		if err != nil {
			p.Fatalf("%s: %v", want, err)
		}
		if err := m.DoubleAck(p.Context()); err != nil {
			p.Fatal(err)
		}
		if m, err := live.NextMsg(timeout); err != nil || !strings.HasPrefix(m.Subject, strings.TrimSuffix(filter, ">")) {
			p.Fatalf("%s: %v, %v", want, m, err)
		}
	}
}

func dial(t testing.TB, s *harness.System, user string) *nats.Conn {
	t.Helper()
	nc, err := s.NATS.Dial(user)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// operator returns the JetStream of the user of accounts.conf with all permissions.
func operator(t testing.TB, s *harness.System) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(dial(t, s, "operator"), jetstream.WithDefaultTimeout(timeout))
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// streamsAreMadeAndMended: a reconciler that is the first on an empty bus creates all streams. A program that starts corrects
// those that an operator has edited: all of them for the reconciler, one for the trigger.
func streamsAreMadeAndMended(t *testing.T, s *harness.System) {
	t.Helper()
	trigger, reconciler := s.Triggers[0], s.Reconcilers[0]
	if err := errors.Join(trigger.Stop(), reconciler.Stop(), s.NATS.Wipe(), s.NATS.Restart(t.Context()), reconciler.Start(), harness.Ready(t.Context(), reconciler)); err != nil {
		t.Fatal(err)
	}
	edit(t, s, "facts")
	if err := errors.Join(trigger.Start(), harness.Ready(t.Context(), trigger)); err != nil {
		t.Fatal(err)
	}
	edit(t, s, "")
	if err := errors.Join(reconciler.Stop(), reconciler.Start(), harness.Ready(t.Context(), reconciler)); err != nil {
		t.Fatal(err)
	}
}

// edit gives more room to the streams whose names contain the word.
func edit(t *testing.T, s *harness.System, word string) {
	t.Helper()
	js := operator(t, s)
	streams := js.ListStreams(t.Context())
	for info := range streams.Info() {
		if !strings.Contains(info.Config.Name, word) {
			continue
		}
		info.Config.MaxBytes += 1 << 20
		if _, err := js.UpdateStream(t.Context(), info.Config); err != nil {
			t.Fatal(err)
		}
	}
	if err := streams.Err(); err != nil {
		t.Fatal(err)
	}
}

// busIsLost: a reconciler is killed while a Job waits for its next retry, and the bus loses everything, so that the trigger
// creates the stream of facts. While facts and a fired timer wait without a consumer, the doctor finds no failure. The new
// server names deliveries as newer servers will, with a domain and an account, including the fired timer that wakes a
// ScheduledJob about which a message could not be decoded.
func busIsLost(t *testing.T, s *harness.System) {
	t.Helper()
	p, reconciler := s.Space(t), s.Reconcilers[0]
	p.Apply(annotated(harness.Shell("again", "exit 1", harness.Size(1, 1, 1)), v1alpha1.BackoffSecondsAnnotation, "20"))
	p.Await("again", timeout, "to have failed once", func(j *batchv1.Job) bool { return j.Status.Failed == 1 })
	if err := reconciler.Kill(); err != nil {
		t.Fatal(err)
	}
	p.Apply(harness.Shell("later", "exit 0"))
	waiting := func(stream string) func(context.Context) error {
		js := operator(t, s)
		return func(ctx context.Context) error {
			st, err := js.Stream(ctx, "jobstream_"+harness.ClusterName+"_"+stream)
			if err != nil {
				return err
			}
			consumers := st.ListConsumers(ctx)
			n := uint64(0)
			for c := range consumers.Info() {
				n += c.NumPending
			}
			if n == 0 {
				return errors.Join(errors.New("nothing waits"), consumers.Err())
			}
			return nil
		}
	}
	harness.Until(t, timeout, "facts to wait", waiting("facts"))
	harness.Until(t, timeout, "a fired timer to be pending", waiting("timers"))
	harness.Until(t, timeout, "the doctor to find no failure", func(context.Context) error {
		code, out := as(t, s, "doctor")
		if code != 0 || !hasAll(out, []string{" 0 FAIL", "none is refused", "unneeded subjects tried, all are refused", "all are allowed", "the server requires authentication", "the connection is encrypted"}) {
			return fmt.Errorf("exit code %d:\n%s", code, out)
		}
		return nil
	})
	if err := errors.Join(s.NATS.Wipe(), s.ConfigureNATS("feature_flags { js_ack_fc_v2: true }\n"), s.NATS.Restart(t.Context())); err != nil {
		t.Fatal(err)
	}
	js := operator(t, s)
	harness.Until(t, timeout, "the trigger to make the stream of facts", func(ctx context.Context) error {
		_, err := js.Stream(ctx, "jobstream_"+harness.ClusterName+"_facts")
		return err
	})
	if err := errors.Join(reconciler.Start(), harness.Ready(t.Context(), reconciler)); err != nil {
		t.Fatal(err)
	}
	p.AwaitEnd("again", batchv1.JobFailed, timeout)
	p.AwaitEnd("later", batchv1.JobComplete, timeout)
	tick := p.Schedule(harness.Every("tick", "* * * * * *", "exit 0"))
	ran := func(atLeast int64) {
		t.Helper()
		p.AwaitSchedule("tick", timeout, "to run", func(j *v1alpha1.ScheduledJob) bool { return j.Status.Successful >= atLeast })
	}
	ran(1)
	setAside(p, "scheduledjob", tick.UID)
	ran(p.Scheduled("tick").Status.Successful + 1)
	p.Reschedule("tick", `{"suspend":true}`)
}
