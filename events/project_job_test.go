package events_test

import (
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
