package events_test

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

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
