package events_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden samples")

const uid = "5ef034e0-1890-11e6-8935-42010af0003e"

func at(second int) time.Time { return time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC) }

// samples returns one of each event, as a reader of the bus sees it.
func samples() map[string]events.Event {
	three := int32(3)
	j := events.Job{Namespace: "default", Name: "pi", UID: uid, Version: 1041, Created: at(0), Parallelism: 2, Completions: &three,
		Indexed: true, BackoffLimit: 6, NextSerial: 2, Backoff: events.Backoff{Failures: 1, Last: at(9)},
		Status: batchv1.JobStatus{Active: 1, Succeeded: 1, CompletedIndexes: "0", StartTime: &metav1.Time{Time: at(1)},
			UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{Failed: []types.UID{"0b7e5d0a-5c1c-4d0e-8f6f-2f1f0f5a9a11"}}}}
	p := events.Pod{Name: "pi-1-d52jl", UID: "0b7e5d0a-5c1c-4d0e-8f6f-2f1f0f5a9a11", Version: 1050, Owner: "pi", Serial: 1, Index: 1,
		Phase: events.Failed, Held: true, Scheduled: true, Created: at(2), Finished: at(9)}
	return map[string]events.Event{
		"JobObserved":        events.JobObserved{Job: j},
		"JobGone":            events.JobGone{Name: "pi", Version: 1100},
		"JobListed":          events.JobListed{ID: "relist/1090/1091", Name: "pi", Job: &j, JobsVersion: 1090, Version: 1091, Pods: []events.Pod{p}},
		"PodObserved":        events.PodObserved{Pod: p},
		"PodGone":            events.PodGone{Pod: p},
		"ParametersObserved": events.ParametersObserved{Name: "shards-7f9c", Count: 100, At: at(3)},
		"TimerFired":         events.TimerFired{Name: "wake", At: at(9)},
		"EffectRefused":      events.EffectRefused{Effect: "CreatePod", Serial: 2, Reason: "Forbidden", Message: "exceeded quota: compute", At: at(3)},
	}
}

func key() events.Key { return events.Key{Function: "job", Namespace: "default", UID: uid} }

// TestGoldenSamples pins the wire form of every event in testdata.
func TestGoldenSamples(t *testing.T) {
	for name, e := range samples() {
		t.Run(name, func(t *testing.T) {
			got, err := events.Encode(events.Fact{Cluster: "prod.eu", Key: key(), Event: e})
			if err != nil {
				t.Fatal(err)
			}
			var pretty bytes.Buffer
			if err := json.Indent(&pretty, got, "", "  "); err != nil {
				t.Fatal(err)
			}
			pretty.WriteByte('\n')
			path := filepath.Join("testdata", name+".json")
			if *rewrite {
				if err := os.WriteFile(path, pretty.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(pretty.Bytes(), want) {
				t.Errorf("the wire form of %s has changed; if that is meant, run go test ./events -rewrite\ngot:\n%s", name, pretty.Bytes())
			}
			back, err := events.Decode(want)
			if err != nil {
				t.Fatal(err)
			}
			again, err := events.Encode(back)
			if err != nil || !bytes.Equal(again, got) {
				t.Errorf("decoding and encoding changes it (%v):\n%s\n%s", err, got, again)
			}
			if back.Cluster != "prod.eu" || back.Key != key() || back.Event.Type() != e.Type() {
				t.Errorf("comes back as %+v", back)
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	good := func(change func(map[string]any)) string {
		b, err := events.Encode(events.Fact{Cluster: "c", Key: key(), Event: events.TimerFired{Name: "wake"}})
		if err != nil {
			t.Fatal(err)
		}
		m := map[string]any{}
		if err := json.Unmarshal(b, &m); err != nil {
			t.Fatal(err)
		}
		change(m)
		b, err = json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	tests := []struct{ name, message, want string }{
		{"no JSON", "hello", "not a structured CloudEvent"},
		{"an empty message", "", "not a structured CloudEvent"},
		{"no CloudEvent", `{"a":1}`, "specversion"},
		{"a foreign type", good(func(m map[string]any) { m["type"] = "com.example.thing" }), "does not belong to jobstream"},
		{"a key of two tokens", good(func(m map[string]any) { m["subject"] = "job.default" }), "want function.namespace.uid"},
		{"a key with an empty token", good(func(m map[string]any) { m["subject"] = "job..x" }), "is empty"},
		{"a bad escape", good(func(m map[string]any) { m["subject"] = "job.default.=zz" }), "not hexadecimal"},
		{"data of another shape", good(func(m map[string]any) { m["data"] = []int{1} }), "data"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, err := events.Decode([]byte(test.message)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}

// TestUnknownFacts: facts of another version are distinguished from garbage, and still name their object.
func TestUnknownFacts(t *testing.T) {
	b, err := events.Encode(events.Fact{Cluster: "c", Key: key(), Event: events.TimerFired{Name: "wake"}})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, typ, unknown, remedy string }{
		{"a type that there is not yet", "dev.jobstream.fact.JobMoved.v1", "JobMoved.v1", "upgrade the reconcilers"},
		{"a version that there is not yet", "dev.jobstream.fact.TimerFired.v2", "TimerFired.v2", "upgrade the reconcilers"},
		{"a version that there is no more", "dev.jobstream.fact.TimerFired.v0", "TimerFired.v0", "upgrade the triggers"},
		{"this version, written in another way", "dev.jobstream.fact.TimerFired.v01", "TimerFired.v01", "upgrade the reconcilers"},
		{"no version", "dev.jobstream.fact.TimerFired", "TimerFired", "upgrade the reconcilers"},
		{"a version before a word", "dev.jobstream.fact.TimerFired.v1.x", "TimerFired.v1.x", "upgrade the reconcilers"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := events.Decode(bytes.Replace(b, []byte("dev.jobstream.fact.TimerFired.v1"), []byte(test.typ), 1))
			var unknown events.UnknownFact
			if !errors.As(err, &unknown) {
				t.Fatalf("got error %v, want an UnknownFact", err)
			}
			if want := (events.UnknownFact{Cluster: "c", Key: key(), Type: test.unknown}); unknown != want {
				t.Errorf("got %+v, want %+v", unknown, want)
			}
			if !strings.Contains(err.Error(), test.remedy) {
				t.Errorf("error %q does not say %q", err, test.remedy)
			}
		})
	}
}

// legalName draws names that Kubernetes accepts for a Job: DNS subdomains of up to 63 characters and more.
func legalName() *rapid.Generator[string] {
	return rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,10}[a-z0-9])?){0,4}`)
}

// TestEveryLegalNameSurvivesASubject: names survive the round trip, and none makes a second token or a wildcard.
func TestEveryLegalNameSurvivesASubject(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := legalName().Draw(t, "name")
		if errs := validation.IsDNS1123Subdomain(name); len(errs) > 0 {
			t.Skip("not a legal name")
		}
		token := events.Token(name)
		if strings.ContainsAny(token, ".*> \t") || token == "" {
			t.Fatalf("%q makes the token %q", name, token)
		}
		back, err := events.ParseToken(token)
		if err != nil || back != name {
			t.Fatalf("%q comes back as %q, %v", name, back, err)
		}
	})
}

// TestTokensAreInjective: two different strings never share a token, whatever their characters.
func TestTokensAreInjective(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		if (a == b) != (events.Token(a) == events.Token(b)) {
			t.Fatalf("%q and %q make %q and %q", a, b, events.Token(a), events.Token(b))
		}
	})
}

// TestKeysSurviveASubject: a key comes back from its tokens, and its partition is one of the partitions.
func TestKeysSurviveASubject(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := events.Key{Function: rapid.StringMatching(`[a-z]+`).Draw(t, "function"),
			Namespace: rapid.StringMatching(`[a-z0-9]([-a-z0-9]*[a-z0-9])?`).Draw(t, "namespace"),
			UID:       types.UID(rapid.StringN(1, 40, -1).Draw(t, "uid"))}
		back, err := events.ParseTokens(k.Tokens())
		if err != nil || back != k {
			t.Fatalf("%v comes back as %v, %v", k, back, err)
		}
		if k.Partition() < 0 || k.Partition() >= events.Partitions {
			t.Fatalf("partition %d", k.Partition())
		}
	})
}

// TestIDsTellObservationsApart: the same observation by two triggers is one message; a newer one, another Pod, a deletion are others.
func TestIDsTellObservationsApart(t *testing.T) {
	id := func(e events.Event) string { return events.Fact{Cluster: "c", Key: key(), Event: e}.ID() }
	p := events.Pod{UID: "u", Version: 7}
	again, newer, other := p, p, p
	newer.Version, other.UID = 8, "v"
	if id(events.PodObserved{Pod: again}) != id(events.PodObserved{Pod: p}) {
		t.Error("the same observation has two ids")
	}
	seen := map[string]bool{}
	for _, e := range []events.Event{events.PodObserved{Pod: p}, events.PodObserved{Pod: newer}, events.PodObserved{Pod: other}, events.PodGone{Pod: p},
		events.JobGone{Version: 7}, events.JobListed{ID: "a"}, events.JobListed{ID: "b"}} {
		if seen[id(e)] {
			t.Errorf("id %q twice", id(e))
		}
		seen[id(e)] = true
	}
}

// TestProjectionHoldsNoSecrets: nothing of a Pod's or a Job's template reaches a fact; labels do only if a user's own selector
// has to be matched with them.
func TestProjectionHoldsNoSecrets(t *testing.T) {
	const secret = "hunter2"
	spec := corev1.PodSpec{Containers: []corev1.Container{{Name: secret, Image: secret, Command: []string{secret}, Args: []string{secret},
		Env: []corev1.EnvVar{{Name: "PASSWORD", Value: secret}}}}}
	meta := metav1.ObjectMeta{Name: "pi", Namespace: "default", UID: uid, ResourceVersion: "5", Annotations: map[string]string{"a": secret},
		Labels: map[string]string{"l": secret, batchv1.ControllerUidLabel: "u"}}
	j := &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{ObjectMeta: meta, Spec: spec}}}
	p := &corev1.Pod{ObjectMeta: meta, Spec: spec, Status: corev1.PodStatus{Message: secret, Reason: secret}}
	for _, e := range []events.Event{events.JobObserved{Job: events.ProjectJob(j, events.Claim{ManagedBy: v1alpha1.DefaultManagedBy})}, events.PodObserved{Pod: events.ProjectPod(p)}} {
		b, err := events.Encode(events.Fact{Cluster: "c", Key: key(), Event: e})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), secret) {
			t.Errorf("%s carries the secret: %s", e.Type(), b)
		}
	}
}

func TestProjectPod(t *testing.T) {
	ended := metav1.Time{Time: at(9)}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pi-1-d52jl", UID: "u", ResourceVersion: "1050", Finalizers: []string{batchv1.JobTrackingFinalizer},
			Annotations: map[string]string{v1alpha1.SerialAnnotation: "4", batchv1.JobCompletionIndexAnnotation: "1"},
			Labels:      map[string]string{batchv1.JobNameLabel: "pi"}, CreationTimestamp: metav1.Time{Time: at(2)}},
		Spec: corev1.PodSpec{NodeName: "n"},
		Status: corev1.PodStatus{Phase: corev1.PodFailed,
			InitContainerStatuses: []corev1.ContainerStatus{{RestartCount: 2}},
			ContainerStatuses: []corev1.ContainerStatus{{RestartCount: 1, State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{FinishedAt: ended, ExitCode: 3}}, Name: "main"},
				{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: ended}}, Name: "exits with 0, which is no failure"}},
			Conditions: []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Message: "long"}}},
	}
	got := events.ProjectPod(p)
	want := events.Pod{Name: "pi-1-d52jl", UID: "u", Version: 1050, Owner: "pi", Serial: 4, Index: 1, Phase: events.Failed, Held: true,
		Scheduled: true, Restarts: 3, Created: at(2), Finished: at(9), Orphan: true, Labels: map[string]string{batchv1.JobNameLabel: "pi"},
		Exits: []events.Exit{{Container: "main", Code: 3}}, Conditions: []events.PodCondition{{Type: "DisruptionTarget", Status: "True"}},
		End: &events.PodEnd{Node: "n", Container: &events.ContainerEnd{Name: "main", ExitCode: 3}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestOwnerUID(t *testing.T) {
	yes := true
	job := metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", UID: "job", Controller: &yes}
	foreign := metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Job", UID: "other", Controller: &yes}
	held := []string{batchv1.JobTrackingFinalizer}
	label := map[string]string{batchv1.ControllerUidLabel: "label"}
	tests := []struct {
		name string
		meta metav1.ObjectMeta
		want types.UID
	}{
		{"controlled by a Job", metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{job}, Labels: label}, "job"},
		{"controlled by a Job of another group", metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{foreign}, Labels: label, Finalizers: held}, ""},
		{"an orphan that is held", metav1.ObjectMeta{Labels: label, Finalizers: held}, "label"},
		{"an orphan that is free", metav1.ObjectMeta{Labels: label}, "label"},
		{"an orphan without a former owner", metav1.ObjectMeta{}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := events.OwnerUID(&corev1.Pod{ObjectMeta: test.meta}); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
