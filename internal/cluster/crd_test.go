package cluster_test

import (
	"context"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/deploy"
	"github.com/jobstream/jobstream/internal/cluster"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
)

// cronJob is the CronJob of the Kubernetes documentation, converted by its apiVersion and kind.
const cronJob = `
apiVersion: jobstream.dev/v1alpha1
kind: ScheduledJob
metadata:
  name: hello
spec:
  schedule: "* * * * *"
  jobTemplate:
    spec:
      template:
        spec:
          containers:
          - name: hello
            image: busybox
            imagePullPolicy: IfNotPresent
            command:
            - /bin/sh
            - -c
            - date; echo Hello from the Kubernetes cluster
          restartPolicy: OnFailure
`

// kindTest is one test's namespace and client for ScheduledJobs.
type kindTest struct {
	*world
	dynamic.ResourceInterface
	definitions dynamic.ResourceInterface
}

func newKindTest(t *testing.T) kindTest {
	t.Helper()
	w := newWorld(t)
	config := clustertest.ControlPlane(t).RESTConfig()
	if err := cluster.InstallScheduledJobs(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	kind := v1alpha1.GroupVersion.WithResource(v1alpha1.ScheduledJobResource)
	return kindTest{w, client.Resource(kind).Namespace(w.NS), client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})}
}

// scheduledJob returns the CronJob with a change: null removes a field, maps are merged.
func scheduledJob(t *testing.T, change string) *unstructured.Unstructured {
	t.Helper()
	var o, c map[string]any
	if err := yaml.Unmarshal([]byte(cronJob), &o); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(change), &c); err != nil {
		t.Fatalf("%v in %s", err, change)
	}
	merge(o, c)
	return &unstructured.Unstructured{Object: o}
}

func merge(into, change map[string]any) {
	for k, v := range change {
		deeper, isMap := v.(map[string]any)
		old, wasMap := into[k].(map[string]any)
		switch {
		case v == nil:
			delete(into, k)
		case isMap && wasMap:
			merge(old, deeper)
		default:
			into[k] = v
		}
	}
}

// try returns the API server's objection to the object, and leaves nothing behind.
func (k kindTest) try(o *unstructured.Unstructured) string {
	k.Helper()
	_, err := k.Create(k.Context(), o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
	if err == nil {
		return ""
	}
	if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
		k.Fatal(err)
	}
	return err.Error()
}

// TestConvertedCronJob: changing apiVersion and kind turns a CronJob into a ScheduledJob. Defaults are filled in, the metadata of
// both templates is kept, and the status is a subresource.
func TestConvertedCronJob(t *testing.T) {
	k := newKindTest(t)
	created, err := k.Create(t.Context(), scheduledJob(t, `
spec: {jobTemplate: {metadata: {labels: {of: job}, annotations: {of: job}}, spec: {template: {metadata: {labels: {of: pod}, annotations: {of: pod}}}}}}
status: {successful: 7}`), metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		t.Fatal(err)
	}
	j := typed(t, created)
	want := v1alpha1.ScheduledJobSpec{Schedule: "* * * * *", ConcurrencyPolicy: v1alpha1.AllowConcurrent, Suspend: new(false), CatchUp: v1alpha1.CatchUpLatest,
		OnScheduleChange: v1alpha1.ChangeCatchesUp, SuccessfulJobsHistoryLimit: new(int32(3)), FailedJobsHistoryLimit: new(int32(1)), JobTemplate: j.Spec.JobTemplate}
	if !reflect.DeepEqual(j.Spec, want) {
		t.Errorf("the defaults: %+v", j.Spec)
	}
	if j.Status.Successful != 0 {
		t.Error("a status came with the object")
	}
	pod := j.Spec.JobTemplate.Spec.Template
	if got := j.Spec.JobTemplate.Labels["of"] + j.Spec.JobTemplate.Annotations["of"] + pod.Labels["of"] + pod.Annotations["of"]; got != "jobjobpodpod" {
		t.Errorf("metadata of the templates: %q", got)
	}

	now := metav1.Now().Rfc3339Copy()
	j.Spec.Schedule = "1 1 1 1 1"
	j.Status = v1alpha1.ScheduledJobStatus{LastScheduleTime: &now, NextScheduleTime: &now, LastRun: &v1alpha1.EndedRun{JobName: "hello-zzzzz", Result: "Complete", CompletionTime: now}, Successful: 1,
		Active:     []corev1.ObjectReference{{Name: "hello-bcdfghjkl"}},
		Conditions: []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Scheduled", LastTransitionTime: now}}}
	after, err := k.UpdateStatus(t.Context(), untyped(t, j), metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := typed(t, after); got.Spec.Schedule != "* * * * *" || got.Status.Successful != 1 || len(got.Status.Conditions) != 1 || got.Generation != 1 {
		t.Errorf("%+v", got)
	}
}

func typed(t *testing.T, o *unstructured.Unstructured) *v1alpha1.ScheduledJob {
	t.Helper()
	j := &v1alpha1.ScheduledJob{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, j); err != nil {
		t.Fatal(err)
	}
	return j
}

func untyped(t *testing.T, j *v1alpha1.ScheduledJob) *unstructured.Unstructured {
	t.Helper()
	o, err := runtime.DefaultUnstructuredConverter.ToUnstructured(j)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: o}
}

// TestOldObjects: the status of an object that an older definition accepted and this one does not can still be written. Otherwise
// no user would learn what is wrong with it.
func TestOldObjects(t *testing.T) {
	k := newKindTest(t)
	lax := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(deploy.ScheduledJobs, lax); err != nil {
		t.Fatal(err)
	}
	withoutRules(lax.Object)
	t.Cleanup(func() {
		if err := cluster.InstallScheduledJobs(context.Background(), clustertest.ControlPlane(t).RESTConfig()); err != nil {
			t.Error(err)
		}
	})
	if _, err := k.definitions.Apply(t.Context(), lax.GetName(), lax, metav1.ApplyOptions{FieldManager: "jobstream", Force: true}); err != nil {
		t.Fatal(err)
	}
	bad := map[string]string{
		"schedule": `{schedule: "60 * * * *"}`, "zone": `{timeZone: Mars/Olympus}`, "both": `{runAt: "2026-12-24T18:00:00Z"}`, "every": `{schedule: "@every 99999999999h"}`,
		"neither": `{schedule: null}`, "leap": `{schedule: null, runAt: "2026-02-30T00:00:00Z"}`, "manual": `{jobTemplate: {spec: {manualSelector: true}}}`, "always": `{jobTemplate: {spec: {template: {spec: {restartPolicy: Always}}}}}`,
	}
	for name, spec := range bad {
		o := scheduledJob(t, "{metadata: {name: "+name+"}, spec: "+spec+"}")
		clustertest.Eventually(t, func() string { // the new definition arrives by a watch
			if _, err := k.Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
				return err.Error()
			}
			return ""
		})
	}
	if err := cluster.InstallScheduledJobs(t.Context(), clustertest.ControlPlane(t).RESTConfig()); err != nil {
		t.Fatal(err)
	}
	clustertest.Eventually(t, func() string {
		if k.try(scheduledJob(t, "spec: "+bad["schedule"])) == "" {
			return "the rules to be back"
		}
		return ""
	})
	for name := range bad {
		live, err := k.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := unstructured.SetNestedField(live.Object, "Missed", "status", "lastDecision"); err != nil {
			t.Fatal(err)
		}
		if _, err := k.UpdateStatus(t.Context(), live, metav1.UpdateOptions{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func withoutRules(o any) {
	switch o := o.(type) {
	case map[string]any:
		delete(o, "x-kubernetes-validations")
		for _, v := range o {
			withoutRules(v)
		}
	case []any:
		for _, v := range o {
			withoutRules(v)
		}
	}
}
