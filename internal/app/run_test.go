package app

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/bus"
	"github.com/jobstream/jobstream/bus/embedded"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/app/apptest"
)

// soon is how long anything may take that should happen by itself.
const soon = 5 * time.Minute

// options are those of a program on a bus and an API server of the test's own.
func options(t *testing.T, api *apptest.API) Options {
	t.Helper()
	s, err := embedded.Start(embedded.Config{StoreDir: t.TempDir(), Port: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	o := defaults(Off, Off)
	o.Kubeconfig, o.Bus.URL, o.Probes = api.Kubeconfig, s.URL(), &Probes{}
	return o
}

// awaitReady polls, because probes do not signal changes. It returns the first report that is ready.
func awaitReady(t *testing.T, p *Probes, ended <-chan error) string {
	t.Helper()
	late, again := time.After(soon), time.NewTicker(5*time.Millisecond)
	defer again.Stop()
	for {
		report, ready := p.Report(t.Context())
		if ready {
			return report
		}
		select {
		case err := <-ended:
			t.Fatalf("ended before it was ready: %v", err)
		case <-late:
			t.Fatalf("not ready: %s", report)
		case <-again.C:
		}
	}
}

// run starts a program; stop asks it to end.
func run(t *testing.T, f func(context.Context) error) (stop func(), ended <-chan error) {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	result := make(chan error, 1)
	go func() { result <- f(ctx) }()
	return cancel, result
}

func awaitEnd(t *testing.T, ended <-chan error) {
	t.Helper()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("a program that was asked to stop says %v", err)
		}
	case <-time.After(soon):
		t.Fatal("it does not end")
	}
}

func TestTriggerBecomesReadyAndEnds(t *testing.T) {
	c := TriggerDefaults()
	c.Options = options(t, apptest.Start(t))
	stop, ended := run(t, func(ctx context.Context) error { return RunTrigger(ctx, c) })
	awaitReady(t, c.Probes, ended)
	stop()
	awaitEnd(t, ended)
}

// Both in one process answer for both, at one address, and end together.
func TestAllInOneBecomesReadyAndEnds(t *testing.T) {
	c := AllInOneDefaults()
	c.Options = options(t, apptest.Start(t))
	c.MetricsAddress, c.ScheduledJobMetrics = apptest.FreeAddress(t), 1
	stop, ended := run(t, func(ctx context.Context) error { return RunAllInOne(ctx, c) })
	if report := awaitReady(t, c.Probes, ended); report != "[+]lists ok\n[+]cluster ok\n[+]bus ok\n[+]partitions ok\nready\n" {
		t.Errorf("the first report that says ready:\n%s", report)
	}
	// It is ready with the partitions of its first function; those of the other follow.
	for _, want := range []string{"jobstream_relists_total 0", `jobstream_partitions{function="job"} 32`, "jobstream_bus_ready 1", "jobstream_backing_off_jobs 0"} {
		for late := time.Now().Add(soon); !strings.Contains(fetch(t, "http://"+c.MetricsAddress+"/metrics"), want); <-time.After(5 * time.Millisecond) {
			if time.Now().After(late) {
				t.Fatalf("no %s", want)
			}
		}
	}
	if page := fetch(t, "http://"+c.MetricsAddress+twinsPath); page != "" {
		t.Errorf("without any ScheduledJob: %s", page)
	}
	stop()
	awaitEnd(t, ended)
}

// A reconciler that is ready serves partitions: between the connection and its first partition it takes no turn.
func TestReconcilerIsReadyOnlyWithItsPartitions(t *testing.T) {
	c := ReconcilerDefaults()
	c.Options = options(t, apptest.Start(t))
	stop, ended := run(t, func(ctx context.Context) error { return RunReconciler(ctx, c) })
	if report := awaitReady(t, c.Probes, ended); !strings.Contains(report, "[+]partitions ok") {
		t.Errorf("the first report that says ready:\n%s", report)
	}
	stop()
	awaitEnd(t, ended)
}

// A reconciler that is asked to stop while an effect is under way finishes the turn: here the API server answers a GET
// only after the request to stop, and the write of the status that follows from the answer must still come.
func TestReconcilerFinishesTheTurnInHand(t *testing.T) {
	api := apptest.Start(t)
	j := &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "slow", UID: "3d5e3eb4-0001-4001-8001-000000000001", ResourceVersion: "5", Generation: 1},
		Spec: batchv1.JobSpec{ManagedBy: ptr.To(v1alpha1.DefaultManagedBy), Completions: ptr.To[int32](1), Parallelism: ptr.To[int32](1), Suspend: ptr.To(true),
			BackoffLimit: ptr.To[int32](6), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever}}},
	}
	var first sync.Once
	asked, release, written := make(chan struct{}), make(chan struct{}), make(chan struct{}, 1)
	answer := sync.OnceFunc(func() { close(release) })
	t.Cleanup(answer) // before the server is closed, which waits for its handlers
	api.HandleFunc("GET /apis/batch/v1/namespaces/default/jobs/slow", func(w http.ResponseWriter, _ *http.Request) {
		first.Do(func() { close(asked) })
		<-release
		apptest.Answer(w, j)
	})
	api.HandleFunc("PUT /apis/batch/v1/namespaces/default/jobs/slow/status", func(w http.ResponseWriter, _ *http.Request) {
		select {
		case written <- struct{}{}:
		default:
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound) // deleted meanwhile: nothing is left to do
		apptest.Answer(w, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound})
	})
	c := ReconcilerDefaults()
	c.Options = options(t, api)
	stop, ended := run(t, func(ctx context.Context) error { return RunReconciler(ctx, c) })
	awaitReady(t, c.Probes, ended)

	b, err := bus.Connect(t.Context(), bus.Config{URL: c.Bus.URL, Cluster: c.Bus.Cluster, ConnectTimeout: soon})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	fact := events.Fact{Cluster: c.Bus.Cluster, Key: events.Key{Function: "job", Namespace: j.Namespace, UID: j.UID}, Event: events.JobObserved{Job: events.ProjectJob(j, events.Claim{ManagedBy: v1alpha1.DefaultManagedBy})}}
	if err := b.Publish(t.Context(), fact); err != nil {
		t.Fatal(err)
	}
	select {
	case <-asked:
	case <-time.After(soon):
		t.Fatal("the Job is not read")
	}
	stop()
	select {
	case err := <-ended:
		t.Fatalf("it ended in the middle of a turn: %v", err)
	case <-written:
		t.Fatal("the status was written before the Job had been read")
	default:
	}
	answer()
	awaitEnd(t, ended)
	select {
	case <-written:
	default:
		t.Error("the turn was not finished")
	}
}

// Two reconcilers share all partitions, and when one is asked to stop, the other has them all.
func TestReconcilersShareThePartitions(t *testing.T) {
	api := apptest.Start(t)
	one := ReconcilerDefaults()
	one.Options = options(t, api)
	one.MetricsAddress = apptest.FreeAddress(t)
	two := one
	two.MetricsAddress, two.Probes = apptest.FreeAddress(t), &Probes{}
	var stops []func()
	var ends []<-chan error
	for _, c := range []ReconcilerConfig{one, two} {
		stop, ended := run(t, func(ctx context.Context) error { return RunReconciler(ctx, c) })
		awaitReady(t, c.Probes, ended)
		stops, ends = append(stops, stop), append(ends, ended)
	}
	serves := func(address string, partitions, members string) {
		t.Helper()
		late := time.After(soon)
		for {
			page := fetch(t, "http://"+address+"/metrics")
			if strings.Contains(page, `jobstream_partitions{function="job"} `+partitions+"\n") && strings.Contains(page, "jobstream_members "+members+"\n") {
				return
			}
			select {
			case <-late:
				t.Fatalf("want %s partitions of %s members:\n%s", partitions, members, page)
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	serves(one.MetricsAddress, "16", "2")
	serves(two.MetricsAddress, "16", "2")
	stops[0]()
	awaitEnd(t, ends[0])
	serves(two.MetricsAddress, "32", "1")
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestStoppedWhileStarting(t *testing.T) {
	api := apptest.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	trigger, reconciler := TriggerDefaults(), ReconcilerDefaults()
	trigger.Options, reconciler.Options = options(t, api), options(t, api)
	cancel()
	if err := RunTrigger(ctx, trigger); err != nil {
		t.Errorf("the trigger says %v", err)
	}
	if err := RunReconciler(ctx, reconciler); err != nil {
		t.Errorf("the reconciler says %v", err)
	}
}

// The metric counts every quarantined message, set aside by the bus, which cannot read it, or by the engine, whose function failed.
func TestWhatTheBusCannotReadIsCounted(t *testing.T) {
	c := ReconcilerDefaults()
	c.Options = options(t, apptest.Start(t))
	c.MetricsAddress = apptest.FreeAddress(t)
	stop, ended := run(t, func(ctx context.Context) error { return RunReconciler(ctx, c) })
	awaitReady(t, c.Probes, ended)

	client, err := nats.Connect(c.Bus.URL, nats.Timeout(soon))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	fact := events.Fact{Cluster: c.Bus.Cluster, Key: events.Key{Function: "job", Namespace: "default", UID: "3d5e3eb4-0001-4001-8001-000000000001"}, Event: events.JobGone{}}
	if _, err := client.Request(fact.Subject(), []byte("not a fact"), soon); err != nil { // JetStream answers when it is stored
		t.Fatal(err)
	}
	awaitMetric(t, c.MetricsAddress, `jobstream_quarantined_total{function="job"} 1`)
	stop()
	awaitEnd(t, ended)
}

// awaitMetric polls until the line is served.
func awaitMetric(t *testing.T, address, line string) {
	t.Helper()
	late, again := time.After(soon), time.NewTicker(5*time.Millisecond)
	defer again.Stop()
	for {
		response, err := http.Get("http://" + address + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(strings.Split(string(body), "\n"), line) {
			return
		}
		select {
		case <-late:
			t.Fatalf("no %s in\n%s", line, body)
		case <-again.C:
		}
	}
}
