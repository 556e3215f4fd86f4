package kubectl

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/bus"
	"github.com/jobstream/jobstream/bus/embedded"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/kubectl/replay"
)

// newBus starts a NATS server, with the streams of the cluster "default", and points the plugin to it.
func newBus(t *testing.T, change ...func(*bus.Config)) (*bus.Bus, string) {
	t.Helper()
	s, err := embedded.Start(embedded.Config{StoreDir: t.TempDir(), Port: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	c := bus.Config{URL: s.URL(), Cluster: "default", ConnectTimeout: patience, Log: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&c)
	}
	b, err := bus.Connect(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	t.Setenv("JOBSTREAM_NATS_URL", s.URL())
	return b, s.URL()
}

// alone runs the plugin without a cluster.
func alone(t *testing.T) func(*tool) {
	t.Helper()
	t.Setenv("KUBECONFIG", "")
	t.Setenv("HOME", t.TempDir())
	return func(p *tool) { *p.config.Namespace = "shop" }
}

func reference(name string) events.Reference {
	return events.Reference{Namespace: "shop", Name: name, UID: types.UID("uid-" + name)}
}

// lifeOf publishes the facts about a Job with one Pod that succeeds, as a trigger does.
func lifeOf(t *testing.T, b *bus.Bus, j *batchv1.Job) (facts int) {
	t.Helper()
	key := events.Key{Function: "job", Namespace: j.Namespace, UID: j.UID}
	for _, e := range aLife(t, j) {
		if err := b.Publish(t.Context(), events.Fact{Cluster: "default", Key: key, Event: e}); err != nil {
			t.Fatal(err)
		}
		facts++
	}
	if err := b.Flush(t.Context()); err != nil { // once, at the end: decisions depend on the time between facts, which should be short
		t.Fatal(err)
	}
	return facts
}

// aLife returns the facts about a Job with one Pod that succeeds: what the API server shows of the decisions of a reconciler.
func aLife(t *testing.T, j *batchv1.Job) []events.Event {
	t.Helper()
	job := events.ProjectJob(j, events.Claim{ManagedBy: "jobstream.dev/reconciler"})
	r := replay.Record{APIVersion: replay.Version, Cluster: "default", Function: "job", Namespace: j.Namespace, Name: j.Name, UID: j.UID, Collected: time.Now()}
	payload, err := events.Encode(events.Fact{Cluster: "default", Key: r.Key(), Event: events.JobObserved{Job: job}})
	if err != nil {
		t.Fatal(err)
	}
	r.Facts = []replay.Fact{replay.NewFact(1, time.Now().Add(-time.Second), payload)}
	first, err := replay.Fold(r)
	if err != nil {
		t.Fatal(err)
	}
	name := ""
	for _, s := range first.Turns[0].Steps {
		if text := s.Effect.String(); strings.HasPrefix(text, "CreatePod ") {
			name = strings.Fields(text)[1]
		}
	}
	now := time.Now().UTC().Truncate(time.Second)
	p := events.Pod{Name: name, UID: "uid-of-the-pod", Version: job.Version + 1, Owner: j.Name, Serial: 0, Index: events.NoIndex, Phase: events.Pending, Held: true, Created: now}
	runs, done := p, p
	runs.Version, runs.Phase, runs.Scheduled, runs.Ready, runs.ReadySince = p.Version+2, events.Running, true, true, now
	done.Version, done.Phase, done.Scheduled, done.Finished = p.Version+3, events.Succeeded, true, now
	released := done
	released.Version, released.Held = p.Version+5, false
	started, counting, counted := job, job, job
	started.Version, started.Status.StartTime, started.Status.Active = p.Version+1, &metav1.Time{Time: now}, 1
	counting.Version, counting.Status.StartTime = p.Version+4, &metav1.Time{Time: now}
	counting.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{Succeeded: []types.UID{p.UID}}
	counting.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobSuccessCriteriaMet, Status: "True", Reason: "CompletionsReached"}}
	counted.Version, counted.Status.StartTime, counted.Status.Succeeded = p.Version+6, &metav1.Time{Time: now}, 1
	counted.Status.CompletionTime = &metav1.Time{Time: now}
	counted.Status.Conditions = slices.Concat(counting.Status.Conditions, []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: "True", Reason: "CompletionsReached", LastTransitionTime: metav1.Time{Time: now}}})
	for _, x := range []*events.Job{&started, &counting, &counted} {
		x.NextSerial = 1
	}
	return []events.Event{events.JobObserved{Job: job}, events.PodObserved{Pod: p}, events.JobObserved{Job: started}, events.PodObserved{Pod: runs},
		events.PodObserved{Pod: done}, events.JobObserved{Job: counting}, events.PodObserved{Pod: released}, events.JobObserved{Job: counted}}
}

// TestDecisionsAndReplay: from real facts on a real bus about a Job of a real API server, to the decisions and the transcript; from a file
// the transcript is the same, without bus and cluster; and it is found when the Job is gone.
func TestDecisionsAndReplay(t *testing.T) {
	w := newWorld(t)
	b, _ := newBus(t)
	if _, err := b.Store("job"); err != nil {
		t.Fatal(err)
	}
	j := w.newJob("pi", nil)
	n := lifeOf(t, b, j)
	got := w.call("decisions", "pi")
	for _, want := range []string{fmt.Sprintf("Job %s/pi, UID %s: %d stored facts, folded by version ", w.ns, j.UID, n), "no state is stored", "\nDecisions:\n", "job completions=1 parallelism=1",
		"> TakeInventory\n", "> CreatePod pi-", "> WriteJobStatus ", "> Announce JobStart ", "> RemoveFinalizer pi-", "> Announce JobFinish Succeeded(CompletionsReached) "} {
		if got.code != 0 || !strings.Contains(got.out, want) {
			t.Errorf("it does not say %q: %s", want, got)
		}
	}
	if strings.Contains(got.out, "no fact shows") || strings.Contains(got.out, "cannot be read") {
		t.Errorf("each effect is answered by a fact: %s", got)
	}
	transcript := w.call("replay", "job/pi")
	for _, want := range []string{"# Job " + w.ns + "/pi", "\njob completions=1 parallelism=1 backoffLimit=6", "\n----\nTakeInventory\nCreatePod pi-", "\npod 0 runs\n----\n", "\npod 0 succeeds\n----\nWriteJobStatus @", "Announce JobFinish Succeeded"} {
		if transcript.code != 0 || !strings.Contains(transcript.out, want) {
			t.Errorf("it does not say %q: %s", want, transcript)
		}
	}
	file := filepath.Join(t.TempDir(), "pi.json")
	if err := os.WriteFile(file, []byte(w.call("decisions", "pi", "-o", "json").out), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"replay", "-f", file}, {"replay", "-f", "-"}} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv("JOBSTREAM_NATS_URL", "")
		if got := call(t, string(text), args); got.code != 0 || got.out != transcript.out {
			t.Errorf("%v: another transcript: %s", args, got)
		}
	}
}

// TestDecisionsAboutWhatIsGone: the last public event of a Job or ScheduledJob that was deleted names its UID.
func TestDecisionsAboutWhatIsGone(t *testing.T) {
	w := newWorld(t)
	b, _ := newBus(t)
	for _, function := range []string{"job", "scheduledjob"} {
		if _, err := b.Store(function); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.call("decisions", "pi"); got.code != ExitFailed || !strings.Contains(got.err, "there is no ScheduledJob or Job pi in the namespace "+w.ns+", and no public event of one is stored: -n chooses another namespace") {
		t.Errorf("got %s", got)
	}
	j := w.newJob("pi", nil)
	lifeOf(t, b, j)
	gone := events.Reference{Namespace: w.ns, Name: "pi", UID: j.UID}
	if err := b.Announce(t.Context(), events.JobStarted{Job: gone, Start: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if err := w.BatchV1().Jobs(w.ns).Delete(t.Context(), "pi", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}); err != nil {
		t.Fatal(err)
	}
	if got := w.call("decisions", "job/pi"); got.code != 0 || !strings.Contains(got.out, string(j.UID)) || !strings.Contains(got.out, "Announce JobFinish") {
		t.Errorf("got %s", got)
	}
	if got := w.call("decisions", "scheduledjob/pi"); got.code != ExitFailed || !strings.Contains(got.err, "there is no ScheduledJob pi in") {
		t.Errorf("got %s", got)
	}
}

// TestBusThatDoesNotAnswer: the errors name the cause and the remedy.
func TestBusThatDoesNotAnswer(t *testing.T) {
	here := alone(t)
	_, url := newBus(t)
	for args, want := range map[string]string{
		"events --nats-url=nats://127.0.0.1:1 --nats-connect-timeout=100ms": "cannot ask the bus: bus: NATS at nats://127.0.0.1:1 cannot be reached: ",
		"events --cluster-name=other --nats-url=" + url:                     "there is no stream jobstream_other_events on NATS at " + url + ": is the name of the cluster (--cluster-name) right",
	} {
		if got := call(t, "", strings.Fields(args), here); got.code != ExitFailed || !strings.Contains(got.err, want) {
			t.Errorf("%s: want %q, got %s", args, want, got)
		}
	}
	t.Setenv("JOBSTREAM_NATS_CONNECT_TIMEOUT", "soon")
	if got := call(t, "", []string{"events"}, here); got.code != ExitUsage || !strings.Contains(got.err, "environment variable JOBSTREAM_NATS_CONNECT_TIMEOUT") {
		t.Errorf("got %s", got)
	}
}

// TestReplayOfBadFiles: what is wrong with the file, and where to get a good one.
func TestReplayOfBadFiles(t *testing.T) {
	here := alone(t)
	good := replay.Record{APIVersion: replay.Version, Cluster: "default", Function: "job", Namespace: "shop", Name: "pi", UID: "uid", Collected: time.Now()}
	change := func(f func(*replay.Record)) string {
		r := good
		f(&r)
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for name, tt := range map[string]struct{ text, want string }{
		"no JSON":          {"facts", "-: it is no record: "},
		"another object":   {"{}", `it has no apiVersion; "kubectl jobstream decisions NAME -o json" writes one`},
		"of the future":    {change(func(r *replay.Record) { r.APIVersion = "jobstream.dev/record.v9" }), "use the plugin of the release that has written it"},
		"no time":          {change(func(r *replay.Record) { r.Collected = time.Time{} }), "when it was collected"},
		"no UID":           {change(func(r *replay.Record) { r.UID = "" }), "its UID is empty"},
		"another function": {change(func(r *replay.Record) { r.Function = "workflow" }), `there is no function "workflow": use the plugin of the reconciler's release`},
	} {
		if got := call(t, tt.text, []string{"replay", "-f", "-"}, here); got.code != ExitFailed || !strings.Contains(got.err, tt.want) {
			t.Errorf("%s: want %q, got %s", name, tt.want, got)
		}
	}
	if got := call(t, "", []string{"replay", "-f", "/nowhere.json"}, here); got.code != ExitFailed || !strings.Contains(got.err, "cannot read the facts: open /nowhere.json") {
		t.Errorf("got %s", got)
	}
	if got := call(t, change(func(*replay.Record) {}), []string{"replay", "-f", "-"}, here); got.code != 0 || !strings.Contains(got.out, "# Job shop/pi, UID uid: 0 stored facts") {
		t.Errorf("got %s", got)
	}
}
