package events_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

func TestClaims(t *testing.T) {
	tests := []struct {
		managedBy          string
		claimed, unmanaged bool
	}{
		{"", false, true},
		{batchv1.JobControllerName, false, true},
		{v1alpha1.DefaultManagedBy, true, true},
		{"kueue.x-k8s.io/multikueue", false, false},
	}
	for _, test := range tests {
		t.Run(test.managedBy, func(t *testing.T) {
			j := &batchv1.Job{}
			if test.managedBy != "" {
				j.Spec.ManagedBy = &test.managedBy
			}
			c := events.Claim{ManagedBy: v1alpha1.DefaultManagedBy}
			if got := c.Matches(j); got != test.claimed {
				t.Errorf("by default it matches: %v", got)
			}
			if c.Unmanaged = true; c.Matches(j) != test.unmanaged {
				t.Errorf("with unmanaged Jobs claimed it matches: %v", c.Matches(j))
			}
		})
	}
}

// TestOptions: an invalid annotation is ignored, with a message.
func TestOptions(t *testing.T) {
	tests := []struct {
		name, annotation, value string
		restart                 corev1.RestartPolicy
		indexed                 bool
		ignored, unsupported    string
	}{
		{name: "backoff", annotation: v1alpha1.BackoffSecondsAnnotation, value: "5"},
		{name: "backoff of nothing", annotation: v1alpha1.BackoffSecondsAnnotation, value: "0", ignored: `"0" is not a whole number from 1 to 600`},
		{name: "backoff with a unit", annotation: v1alpha1.BackoffSecondsAnnotation, value: "5s", ignored: `"5s" is not a whole number`},
		{name: "backoff of containers", annotation: v1alpha1.BackoffSecondsAnnotation, value: "5", restart: corev1.RestartPolicyOnFailure, ignored: "restartPolicy is OnFailure"},
		{name: "the shortest backoff", annotation: v1alpha1.BackoffSecondsAnnotation, value: "1"},
		{name: "the longest backoff", annotation: v1alpha1.BackoffSecondsAnnotation, value: "600"},
		{name: "a longer backoff", annotation: v1alpha1.BackoffSecondsAnnotation, value: "601", ignored: `"601" is not a whole number from 1 to 600`},
		{name: "a value of forty characters is quoted whole", annotation: v1alpha1.BackoffSecondsAnnotation, value: strings.Repeat("9", 40),
			ignored: `"` + strings.Repeat("9", 40) + `" is not`},
		{name: "the most failed Pods", annotation: v1alpha1.FailedPodsLimitAnnotation, value: "1000"},
		{name: "more failed Pods", annotation: v1alpha1.FailedPodsLimitAnnotation, value: "1001", ignored: `"1001" is not a whole number from 0 to 1000`},
		{name: "pending for ten years", annotation: v1alpha1.PendingDeadlineSecondsAnnotation, value: "315360000"},
		{name: "pending for longer", annotation: v1alpha1.PendingDeadlineSecondsAnnotation, value: "315360001", ignored: "from 1 to 315360000"},
		{name: "parameters of the longest name", annotation: v1alpha1.PerCompletionEnvAnnotation, value: strings.Repeat("a", 253), indexed: true},
		{name: "no failed Pods", annotation: v1alpha1.FailedPodsLimitAnnotation, value: "0"},
		{name: "negative failed Pods", annotation: v1alpha1.FailedPodsLimitAnnotation, value: "-1", ignored: `"-1" is not`},
		{name: "pending", annotation: v1alpha1.PendingDeadlineSecondsAnnotation, value: "300", restart: corev1.RestartPolicyOnFailure},
		{name: "pending for a novel", annotation: v1alpha1.PendingDeadlineSecondsAnnotation, value: strings.Repeat("x", 999), ignored: "xxx…"},
		{name: "parameters", annotation: v1alpha1.PerCompletionEnvAnnotation, value: "shards", indexed: true},
		{name: "parameters without an index", annotation: v1alpha1.PerCompletionEnvAnnotation, value: "shards", unsupported: "other than Indexed"},
		{name: "parameters of no ConfigMap", annotation: v1alpha1.PerCompletionEnvAnnotation, value: "../x", indexed: true, unsupported: `"../x", which is not the name`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			j := &batchv1.Job{}
			j.Annotations = map[string]string{test.annotation: test.value}
			j.Spec.Template.Spec.RestartPolicy = test.restart
			if test.indexed {
				mode := batchv1.IndexedCompletion
				j.Spec.CompletionMode = &mode
			}
			got := events.ProjectJob(j, events.Claim{})
			w := got.Options
			if text := strings.Join(w.Ignored, ""); !strings.Contains(text, test.ignored) || test.ignored == "" && text != "" || len(text) > 300 {
				t.Errorf("ignored %q, want %q", text, test.ignored)
			}
			if text := strings.Join(got.Unsupported, ""); !strings.Contains(text, test.unsupported) || test.unsupported == "" && text != "" {
				t.Errorf("unsupported %q, want %q", text, test.unsupported)
			}
			granted := w.BackoffSeconds != nil || w.FailedPodsLimit != nil || w.PendingDeadlineSeconds != nil || w.Parameters != ""
			if granted != (test.ignored == "") {
				t.Errorf("granted %+v", w)
			}
		})
	}
}

// TestWhatTheReconcilerHasWrittenOnAJob: the next serial and the backoff record are read back from a Job that has a status, also
// while it is suspended and has no startTime. Without a status they are a user's copy of another Job's.
func TestWhatTheReconcilerHasWrittenOnAJob(t *testing.T) {
	last := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	record := `{"failures":3,"last":"2026-01-01T00:00:00Z"}`
	started := batchv1.JobStatus{StartTime: &metav1.Time{Time: last}}
	suspended := batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue}}}
	for _, test := range []struct {
		name         string
		status       batchv1.JobStatus
		next, record string
		serial       int
		backoff      events.Backoff
	}{
		{"it runs", started, "7", record, 7, events.Backoff{Failures: 3, Last: last}},
		{"it is suspended", suspended, "7", record, 7, events.Backoff{Failures: 3, Last: last}},
		{"it has never started", batchv1.JobStatus{}, "7", record, 0, events.Backoff{}},
		{"a user has made the serial negative", started, "-1", record, 0, events.Backoff{Failures: 3, Last: last}},
		{"a user has made the serial too large", started, "2147483648", record, 0, events.Backoff{Failures: 3, Last: last}},
		{"a user has made the record unreadable", started, "7", "soon", 7, events.Backoff{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			j := &batchv1.Job{Status: test.status}
			j.Annotations = map[string]string{v1alpha1.NextSerialAnnotation: test.next, v1alpha1.BackoffAnnotation: test.record}
			got := events.ProjectJob(j, events.Claim{})
			if got.NextSerial != test.serial || !got.Backoff.Equal(test.backoff) {
				t.Errorf("the next serial is %d, the backoff record %+v; want %d and %+v", got.NextSerial, got.Backoff, test.serial, test.backoff)
			}
		})
	}
}

// Values of failed indexes are published if the Job asks for that, and not by mistake.
func TestValuesAreOnlyPublishedOnRequest(t *testing.T) {
	for _, c := range []struct {
		name, parameters, value string
		publishes, ignored      bool
	}{
		{"it asks", "shards", "true", true, false},
		{"it asks not to", "shards", "false", false, false},
		{"in other words", "shards", "yes", false, true},
		{"in capitals", "shards", "True", false, true},
		{"an empty value", "shards", "", false, true},
	} {
		j := &batchv1.Job{}
		j.Spec.CompletionMode = new(batchv1.IndexedCompletion)
		j.Annotations = map[string]string{v1alpha1.PerCompletionEnvAnnotation: c.parameters, v1alpha1.PublishFailedValuesAnnotation: c.value}
		o := events.ProjectJob(j, events.Claim{}).Options
		if o.PublishFailedValues != c.publishes || (len(o.Ignored) > 0) != c.ignored {
			t.Errorf("%s: %+v", c.name, o)
		}
	}
}

// What the spec says is taken as it is, and what it leaves out is what the API server would have put there.
func TestProjectJob(t *testing.T) {
	plain := events.ProjectJob(&batchv1.Job{}, events.Claim{})
	if want := (events.Job{Foreign: true, Parallelism: 1, BackoffLimit: 6}); !reflect.DeepEqual(plain, want) {
		t.Errorf("an empty Job\ngot  %+v\nwant %+v", plain, want)
	}
	deletion := metav1.Time{Time: at(8)}
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "pi", UID: uid, ResourceVersion: "12", Generation: 3, DeletionTimestamp: &deletion,
		CreationTimestamp: metav1.Time{Time: at(1).In(time.FixedZone("", 3600))}, Labels: map[string]string{"team": "a", "secret": "b"}}
	rules := &batchv1.PodFailurePolicy{}
	success := &batchv1.SuccessPolicy{}
	got := events.ProjectJob(&batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{ManagedBy: new("us"), Parallelism: new(int32(4)), Completions: new(int32(5)),
		CompletionMode: new(batchv1.IndexedCompletion), BackoffLimit: new(int32(7)), Suspend: new(true), ActiveDeadlineSeconds: new(int64(9)),
		BackoffLimitPerIndex: new(int32(2)), MaxFailedIndexes: new(int32(3)), PodFailurePolicy: rules, SuccessPolicy: success, TTLSecondsAfterFinished: new(int32(8)),
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyOnFailure}}}}, events.Claim{ManagedBy: "us", Labels: []string{"team", "other"}})
	want := events.Job{Namespace: "shop", Name: "pi", UID: uid, Version: 12, Generation: 3, Deleting: true, Created: at(1), Parallelism: 4, Completions: new(int32(5)),
		Indexed: true, BackoffLimit: 7, RestartsInPlace: true, ReplaceFailedOnly: true, Suspended: true, ActiveDeadlineSeconds: new(int64(9)),
		BackoffLimitPerIndex: new(int32(2)), MaxFailedIndexes: new(int32(3)), PodFailurePolicy: rules, SuccessPolicy: success, TTLSecondsAfterFinished: new(int32(8)),
		ManagedBy: "us", Labels: map[string]string{"team": "a"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestWhenPodsAreReplaced: only once they have failed, if the user asks for that or has a podFailurePolicy.
func TestWhenPodsAreReplaced(t *testing.T) {
	for _, c := range []struct {
		name   string
		spec   batchv1.JobSpec
		failed bool
	}{
		{"by default", batchv1.JobSpec{}, false},
		{"Failed", batchv1.JobSpec{PodReplacementPolicy: new(batchv1.Failed)}, true},
		{"TerminatingOrFailed", batchv1.JobSpec{PodReplacementPolicy: new(batchv1.TerminatingOrFailed)}, false},
		{"a podFailurePolicy", batchv1.JobSpec{PodFailurePolicy: &batchv1.PodFailurePolicy{}}, true},
	} {
		if got := events.ProjectJob(&batchv1.Job{Spec: c.spec}, events.Claim{}).ReplaceFailedOnly; got != c.failed {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// TestWhoseSelector: the API server's is the one label with the Job's UID. A user's own has to be matched, so the labels of the template
// have a limit there.
func TestWhoseSelector(t *testing.T) {
	label := func(key, value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
	expression := label(batchv1.ControllerUidLabel, uid)
	expression.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpExists}}
	two := label(batchv1.ControllerUidLabel, uid)
	two.MatchLabels["a"] = "b"
	for _, c := range []struct {
		name     string
		selector *metav1.LabelSelector
		own      bool
	}{
		{"none", nil, false},
		{"the API server's", label(batchv1.ControllerUidLabel, uid), false},
		{"of an older API server", label("controller-uid", uid), true},
		{"the UID of another Job", label(batchv1.ControllerUidLabel, "another"), true},
		{"one label more", two, true},
		{"an expression more", expression, true},
		{"an empty one", &metav1.LabelSelector{}, true},
	} {
		for labels, tooMany := range map[int]bool{120: false, 121: true} {
			j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: uid}, Spec: batchv1.JobSpec{Selector: c.selector}}
			j.Spec.Template.Labels = map[string]string{}
			for i := range labels {
				j.Spec.Template.Labels[fmt.Sprint("l", i)] = ""
			}
			got := events.ProjectJob(j, events.Claim{})
			if (got.Selector != nil) != c.own || c.own && !reflect.DeepEqual(got.Selector, c.selector) {
				t.Errorf("%s: the user's own is %v", c.name, got.Selector)
			}
			var want []string
			if c.own && tooMany {
				want = []string{"a selector of its own and 121 labels in its template, of which at most 120 are looked at"}
			}
			if !reflect.DeepEqual(got.Unsupported, want) {
				t.Errorf("%s, %d labels: unsupported %q, want %q", c.name, labels, got.Unsupported, want)
			}
		}
	}
}

// TestUnknownCompletionMode: of a newer API server, so that the Job is refused instead of run as another mode.
func TestUnknownCompletionMode(t *testing.T) {
	for mode, supported := range map[batchv1.CompletionMode]bool{batchv1.NonIndexedCompletion: true, batchv1.IndexedCompletion: true, "Sharded": false} {
		if got := events.ProjectJob(&batchv1.Job{Spec: batchv1.JobSpec{CompletionMode: &mode}}, events.Claim{}).Unsupported; (len(got) == 0) != supported {
			t.Errorf("%s: %q", mode, got)
		}
	}
}

// TestVersions: a decimal number; any other text is older than all.
func TestVersions(t *testing.T) {
	for text, want := range map[string]uint64{"": 0, "0": 0, "18446744073709551615": 1<<64 - 1, "18446744073709551616": 0, "-1": 0, "a": 0} {
		if got := events.Version(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
