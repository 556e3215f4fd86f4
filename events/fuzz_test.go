package events

import (
	"bytes"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

// Whoever may write to the facts stream decides what is decoded: no message makes Decode panic, and what it accepts can be written
// and read again without a change.
func FuzzDecode(f *testing.F) {
	for _, e := range []Event{
		JobObserved{Job: Job{Namespace: "shop", Name: "pi", UID: "uid-1", Version: 7, Created: time.Unix(1_800_000_000, 0).UTC()}},
		JobListed{ID: "relist", Name: "pi", Version: 9, Pods: []Pod{{Name: "pi-0", UID: "pod-1", Serial: 0, Index: NoIndex, Phase: Failed}}},
		ScheduledJobGone{Name: "nightly", Version: 3}, TimerFired{Name: "wake", At: time.Unix(1_800_000_000, 0).UTC()},
		RunObserved{Run: Run{Name: "nightly-1", UID: "uid-2", Version: 4, Result: RunFailed}},
	} {
		b, err := Encode(Fact{Cluster: "eu", Key: Key{Function: "job", Namespace: "shop", UID: "uid-1"}, Event: e})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"specversion":"1.0","id":"1","source":"/clusters/eu","type":"dev.jobstream.fact.JobObserved.v2","subject":"job.shop.uid-1","data":{"job":null}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		fact, err := Decode(data)
		if err != nil {
			return
		}
		if err := fact.Key.Valid(); err != nil {
			t.Fatalf("%v has the key %v: %v", fact, fact.Key, err)
		}
		first, err := Encode(fact)
		if err != nil {
			t.Fatalf("%v was read, and is not written: %v", fact, err)
		}
		again, err := Decode(first)
		if err != nil {
			t.Fatalf("%s was written, and is not read: %v", first, err)
		}
		if second, err := Encode(again); err != nil || !bytes.Equal(first, second) {
			t.Fatalf("%s is %s when written again, %v", first, second, err)
		}
	})
}

// No public event makes DecodePublic panic, and what it accepts and can be announced is read again.
func FuzzDecodePublic(f *testing.F) {
	about := Reference{Namespace: "shop", Name: "pi", UID: "uid-1"}
	for _, p := range []Public{
		TickDecided{ScheduledJob: about, Verdict: Missed, Nominal: time.Unix(1_800_000_000, 0).UTC(), Count: 3},
		JobStarted{Job: about}, JobFinished{Job: about}, PodFinished{Job: about},
	} {
		b, err := EncodePublic("eu", p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := DecodePublic(data)
		if err != nil {
			return
		}
		_ = p.String()
		b, err := EncodePublic("eu", p)
		if err != nil {
			return // not every event that can be read can be announced: it may have no id
		}
		if _, err := DecodePublic(b); err != nil {
			t.Errorf("%s was written, and is not read: %v", b, err)
		}
	})
}

// A key is written in one way only, so that no other text names its state.
func FuzzParseTokens(f *testing.F) {
	for _, text := range []string{"job.shop.uid-1", "job.shop_2Ewest.uid", "job..uid", "a.b.c.d", "job.shop._", "job.shop._2", "\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		key, err := ParseTokens(text)
		if err != nil || key.Valid() != nil {
			return
		}
		if again := key.Tokens(); again != text {
			t.Fatalf("%q is %v, which is written %q", text, key, again)
		}
	})
}

// A user may write any text into the annotations of a Job and of its Pods: they are ignored or used, with a message that does not
// grow with the text, and no number exceeds its bounds.
func FuzzAnnotations(f *testing.F) {
	for _, text := range []string{"", "1", "-1", "600", "601", "99999999999999999999", "values", "Values!", `{"failures":3,"last":"2026-01-01T00:00:00Z"}`,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "true", "\x00", strings.Repeat("9", 1000)} {
		f.Add(text, true, false)
		f.Add(text, false, true)
	}
	names := []string{v1alpha1.BackoffSecondsAnnotation, v1alpha1.FailedPodsLimitAnnotation, v1alpha1.PendingDeadlineSecondsAnnotation,
		v1alpha1.PerCompletionEnvAnnotation, v1alpha1.TraceparentAnnotation, v1alpha1.PodTraceparentAnnotation, v1alpha1.NextSerialAnnotation, v1alpha1.BackoffAnnotation}
	f.Fuzz(func(t *testing.T, text string, indexed, inPlace bool) {
		j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}, Status: batchv1.JobStatus{StartTime: &metav1.Time{Time: time.Unix(1, 0)}}}
		for _, name := range names {
			j.Annotations[name] = text
		}
		if indexed {
			j.Spec.CompletionMode = new(batchv1.IndexedCompletion)
		}
		if inPlace {
			j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
		}
		got := ProjectJob(j, Claim{})
		for _, message := range append(got.Options.Ignored, got.Unsupported...) {
			if len(message) > 500 {
				t.Errorf("a message of %d bytes: %s", len(message), message)
			}
		}
		o := got.Options
		if n := o.BackoffSeconds; n != nil && (*n < 1 || *n > maxBackoffSeconds) {
			t.Errorf("backoff-seconds %d", *n)
		}
		if n := o.FailedPodsLimit; n != nil && (*n < 0 || *n > maxFailedPods) {
			t.Errorf("failed-pods-limit %d", *n)
		}
		if n := o.PendingDeadlineSeconds; n != nil && (*n < 1 || *n > maxPendingSeconds) {
			t.Errorf("pending-deadline-seconds %d", *n)
		}
		if len(o.Parameters) > maxName || got.NextSerial < 0 {
			t.Errorf("per-completion-env %q, next serial %d", o.Parameters, got.NextSerial)
		}
		p := ProjectPod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.SerialAnnotation: text,
			batchv1.JobCompletionIndexAnnotation: text, batchv1.JobIndexFailureCountAnnotation: text, batchv1.JobIndexIgnoredFailureCountAnnotation: text}}})
		if p.Serial < NoSerial || p.Index < NoIndex || p.IndexFailures < 0 || p.IndexIgnoredFailures < 0 {
			t.Errorf("a Pod with serial %d, index %d, %d failures of which %d are ignored", p.Serial, p.Index, p.IndexFailures, p.IndexIgnoredFailures)
		}
	})
}
