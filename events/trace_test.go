package events_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" // the example of W3C Trace Context

var w3c = regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$`)

// drawJob draws a Job that has run: one of its own, a run of a ScheduledJob, or a copy of a run; with or without a trace to
// continue.
func drawJob(t *rapid.T) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pi", Annotations: map[string]string{}, CreationTimestamp: metav1.NewTime(at(1)),
		UID: types.UID(rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{12}`).Draw(t, "uid"))}}
	j.Status = batchv1.JobStatus{StartTime: &metav1.Time{Time: at(2)}, Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: "True", LastTransitionTime: metav1.NewTime(at(9))}}}
	if rapid.Bool().Draw(t, "owned") {
		nominal := at(rapid.IntRange(0, 59).Draw(t, "nominal"))
		j.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ScheduledJobKind, Name: "nightly", UID: uid, Controller: new(true)}}
		j.Annotations[batchv1.CronJobScheduledTimestampAnnotation] = nominal.In(time.FixedZone("east", 3600)).Format(time.RFC3339)
		if rapid.Bool().Draw(t, "run") {
			j.Name = "nightly-" + events.NominalHash(nominal)
		}
	}
	if text := rapid.SampledFrom([]string{"", traceparent, strings.TrimSuffix(traceparent, "1") + "0", "nonsense"}).Draw(t, "annotation"); text != "" {
		j.Annotations[v1alpha1.TraceparentAnnotation] = text
	}
	return j
}

func carried(t *rapid.T, p events.Public) string {
	b, err := events.EncodePublic("c", p)
	if err != nil {
		t.Fatal(err)
	}
	var attributes struct{ Traceparent string }
	if err := json.Unmarshal(b, &attributes); err != nil {
		t.Fatal(err)
	}
	return attributes.Traceparent
}

// TestOneTrace: the Pods get the trace in the events, however the announcing program learned of the Job, and W3C allows it.
func TestOneTrace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := drawJob(t)
		told := events.JobTrace(j)
		fact, err := events.Encode(events.Fact{Cluster: "c", Key: events.Key{Function: "job", Namespace: "shop", UID: j.UID},
			Event: events.JobObserved{Job: events.ProjectJob(j, events.Claim{})}})
		if err != nil {
			t.Fatal(err)
		}
		back, err := events.Decode(fact)
		if err != nil {
			t.Fatal(err)
		}
		seen := back.Event.(events.JobObserved).Job
		start, _ := seen.Started()
		end, _ := seen.Ended()
		for _, got := range []string{carried(t, start), carried(t, end), events.TraceOf(start).String(), events.TraceOf(end).String()} {
			if got != told.String() || !w3c.MatchString(got) {
				t.Fatalf("an event has %s, the Pods have %s", got, told)
			}
		}
		if read, err := events.ParseTrace(told.String()); err != nil || read != told {
			t.Fatalf("%s reads as %+v, %v", told, read, err)
		}
		parent, ok := end.Parent()
		if ok && (parent.ID != told.ID || parent.Sampled != told.Sampled || parent.Span == told.Span) {
			t.Fatalf("its parent is %s, its own %s", parent, told)
		}
		if owner := seen.Owner; ok && seen.Options.ParentSpan == "" {
			tick := events.TickDecided{ScheduledJob: owner.ScheduledJob, Verdict: events.Started, Nominal: owner.Nominal, Count: 1}
			if events.TraceOf(tick) != parent {
				t.Fatalf("the tick is %s, the Job's parent %s", events.TraceOf(tick), parent)
			}
		}
	})
}

// TestWhoseTrace: the ids are those that docs/events.md tells subscribers to compute.
func TestWhoseTrace(t *testing.T) {
	hash := func(of string) string { sum := sha256.Sum256([]byte(of)); return hex.EncodeToString(sum[:]) }
	job, tick := hash("job-1"), hash(uid+"/2026-01-02T03:04:05Z")
	owner := &events.RunOwner{ScheduledJob: events.Reference{UID: uid}, Nominal: at(5)}
	for what, tt := range map[string]struct {
		end    events.JobFinished
		want   string
		parent string
	}{
		"a Job":                    {events.JobFinished{}, "00-" + job[:32] + "-" + job[32:48] + "-01", ""},
		"a Job made by hand":       {events.JobFinished{Owner: &events.RunOwner{ScheduledJob: owner.ScheduledJob}}, "00-" + job[:32] + "-" + job[32:48] + "-01", ""},
		"a backfill":               {events.JobFinished{Owner: &events.RunOwner{ScheduledJob: owner.ScheduledJob, Nominal: at(5), Manual: true}}, "00-" + job[:32] + "-" + job[32:48] + "-01", ""},
		"a run":                    {events.JobFinished{Owner: owner}, "00-" + tick[:32] + "-" + job[32:48] + "-01", "00-" + tick[:32] + "-" + tick[32:48] + "-01"},
		"one that continues":       {events.JobFinished{ParentSpan: traceparent}, "00-4bf92f3577b34da6a3ce929d0e0e4736-" + job[32:48] + "-01", traceparent},
		"a run that continues":     {events.JobFinished{Owner: owner, ParentSpan: traceparent}, "00-4bf92f3577b34da6a3ce929d0e0e4736-" + job[32:48] + "-01", traceparent},
		"what is not worth it":     {events.JobFinished{ParentSpan: traceparent[:54] + "0"}, "00-4bf92f3577b34da6a3ce929d0e0e4736-" + job[32:48] + "-00", traceparent[:54] + "0"},
		"an unreadable annotation": {events.JobFinished{ParentSpan: "x"}, "00-" + job[:32] + "-" + job[32:48] + "-01", ""},
	} {
		tt.end.Job.UID = "job-1"
		if got := events.TraceOf(tt.end).String(); got != tt.want {
			t.Errorf("%s: %s, want %s", what, got, tt.want)
		}
		parent, ok := tt.end.Parent()
		if ok != (tt.parent != "") || ok && parent.String() != tt.parent {
			t.Errorf("%s: its parent is %s, %v, want %q", what, parent, ok, tt.parent)
		}
	}
	backfill := events.TickDecided{ScheduledJob: owner.ScheduledJob, Verdict: events.Started, Reason: events.ReasonBackfill, Nominal: at(5), Count: 1, Job: &events.Reference{UID: "job-1"}}
	if got, want := events.TraceOf(backfill).String(), "00-"+job[:32]+"-"+job[32:48]+"-01"; got != want {
		t.Errorf("the verdict on a backfill: %s, want its Job's %s", got, want)
	}
	if got := events.TickTrace(uid, at(5).In(time.FixedZone("east", 3600))); got != events.TickTrace(uid, at(5)) {
		t.Errorf("in another zone a nominal time has another trace: %s", got)
	}
}

// TestNoTraceIsAllZeros: although no hash that begins with zeros is known.
func TestNoTraceIsAllZeros(t *testing.T) {
	var hash [sha256.Size]byte
	if got, want := events.CutTrace(hash).String(), "00-00000000000000000000000000000001-0000000000000001-01"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	hash[15], hash[23] = 7, 8
	if got, want := events.CutTrace(hash).String(), "00-00000000000000000000000000000007-0000000000000008-01"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestParseTrace: the rules of W3C; parts that a later version adds are not copied.
func TestParseTrace(t *testing.T) {
	for text, want := range map[string]string{
		traceparent:                              traceparent,
		traceparent[:53] + "00":                  traceparent[:53] + "00",
		traceparent[:53] + "ff":                  traceparent,
		"cc" + traceparent[2:] + "-what-follows": traceparent,
		"cc" + traceparent[2:]:                   traceparent,
	} {
		if got, err := events.ParseTrace(text); err != nil || got.String() != want {
			t.Errorf("%s: %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "00", traceparent[:54], traceparent + "-x", traceparent + "x", "cc" + traceparent[2:] + "x", "ff" + traceparent[2:],
		strings.ToUpper(traceparent), strings.ReplaceAll(traceparent, "-", "_"), traceparent[:2] + "_" + traceparent[3:], traceparent[:35] + "_" + traceparent[36:], traceparent[:52] + "_" + traceparent[53:], "0x" + traceparent[2:], traceparent[:53] + "0g",
		"00-" + strings.Repeat("0", 32) + traceparent[35:], traceparent[:36] + strings.Repeat("0", 16) + "-01", " " + traceparent[1:]} {
		if got, err := events.ParseTrace(text); err == nil {
			t.Errorf("%q reads as %s", text, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) { // no text breaks it, and a parsed trace survives the round trip
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}`)).Draw(t, "text")
		if got, err := events.ParseTrace(text); err == nil {
			if again, err := events.ParseTrace(got.String()); err != nil || again != got {
				t.Fatalf("%q reads as %s, that as %s, %v", text, got, again, err)
			}
		}
	})
}

// TestTraceOptions: an invalid annotation is ignored, with a message.
func TestTraceOptions(t *testing.T) {
	for _, tt := range []struct {
		annotation, value, ignored string
	}{
		{v1alpha1.TraceparentAnnotation, traceparent, ""},
		{v1alpha1.TraceparentAnnotation, "00-nonsense", "the annotation jobstream.dev/traceparent is ignored: its value \"00-nonsense\" is not a traceparent: it does not have the form 00-<32 digits>-<16 digits>-<2 digits>"},
		{v1alpha1.TraceparentAnnotation, "", "the annotation jobstream.dev/traceparent is ignored: its value \"\" is not a traceparent: it does not have the form 00-<32 digits>-<16 digits>-<2 digits>"},
		{v1alpha1.PodTraceparentAnnotation, "true", ""},
		{v1alpha1.PodTraceparentAnnotation, "false", ""},
		{v1alpha1.PodTraceparentAnnotation, "yes", "the annotation jobstream.dev/pod-traceparent is ignored: its value \"yes\" is neither true nor false"},
	} {
		j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: uid, Annotations: map[string]string{tt.annotation: tt.value}}}
		w := events.ProjectJob(j, events.Claim{}).Options
		if got := strings.Join(w.Ignored, "; "); got != tt.ignored {
			t.Errorf("%s %q: %s", tt.annotation, tt.value, got)
		}
		for _, flag := range []bool{false, true} {
			want := tt.value == "true" || tt.value != "false" && flag
			if got := events.PodsGetTrace(j, flag); got != want {
				t.Errorf("%s %q, --pod-traceparent=%v: %v", tt.annotation, tt.value, flag, got)
			}
		}
	}
}
