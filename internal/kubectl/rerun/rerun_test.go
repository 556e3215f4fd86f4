package rerun

import (
	"maps"
	"reflect"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/kubectl/run"
)

// theIndex is the field from which a container gets its index.
func theIndex(kind string) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata." + kind + "['" + batchv1.JobCompletionIndexAnnotation + "']"}}
}

// failed returns a Job of 10 indexes, 5 of which did not succeed, as the API server stores it.
func failed(change ...func(*batchv1.Job)) *batchv1.Job {
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "render", Namespace: "studio", UID: "u-1", ResourceVersion: "7", Generation: 2, Finalizers: []string{"example.com/keep"},
			OwnerReferences: []metav1.OwnerReference{{Kind: v1alpha1.ScheduledJobKind, Name: "nightly"}},
			Labels:          map[string]string{"app": "shop", v1alpha1.ScheduledJobUIDLabel: "u-0", "controller-uid": "u-1", batchv1.ControllerUidLabel: "u-1"},
			Annotations: map[string]string{"example.com/note": "mine", v1alpha1.BackoffSecondsAnnotation: "5", v1alpha1.PerCompletionEnvAnnotation: "render-env-aaaaa", v1alpha1.NextSerialAnnotation: "17",
				v1alpha1.BackoffAnnotation: "{}", v1alpha1.NominalTimeAnnotation: "2026-11-22T00:00:00Z", "cronjob.kubernetes.io/instantiate": "manual"}},
		Spec: batchv1.JobSpec{ManagedBy: new(v1alpha1.DefaultManagedBy), CompletionMode: ptr.To(batchv1.IndexedCompletion), Completions: ptr.To[int32](10), Parallelism: ptr.To[int32](8),
			BackoffLimitPerIndex: ptr.To[int32](1), MaxFailedIndexes: ptr.To[int32](9), Suspend: ptr.To(false), ManualSelector: ptr.To(false),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{batchv1.ControllerUidLabel: "u-1"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "shop", "controller-uid": "u-1", "job-name": "render", batchv1.ControllerUidLabel: "u-1", batchv1.JobNameLabel: "render"},
				Annotations: map[string]string{v1alpha1.NominalTimeAnnotation: "2026-11-22T00:00:00Z"}},
				Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "init"}},
					Containers: []corev1.Container{{Name: "main", Env: []corev1.EnvVar{{Name: "I", ValueFrom: theIndex("annotations")}, {Name: "X", Value: "1"}}}, {Name: "own", Env: []corev1.EnvVar{{Name: indexVariable, Value: "mine"}}}}}}},
		Status: batchv1.JobStatus{CompletedIndexes: "0-2,4,9", FailedIndexes: ptr.To("3,5"), Succeeded: 5, Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}},
	}
	for _, f := range change {
		f(j)
	}
	return j
}

func lists(data map[string]string) *corev1.ConfigMap {
	return run.Parameters("studio", "render-env-aaaaa", data)
}

var tenFrames = map[string]string{"FRAME": "a\nb\nc\nd\n$e\n\n g\nh\ni\nj\n"}

// TestCopy: the copy has what the user has written, and nothing else.
func TestCopy(t *testing.T) {
	old := failed()
	before := old.DeepCopy()
	got, err := Build(old, lists(tenFrames), Options{Suffix: "x7k2p"})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(old, before) {
		t.Error("the old Job has changed")
	}
	want := failed().Spec
	want.Selector, want.ManualSelector, want.Suspend = nil, nil, nil
	want.Template.Labels = map[string]string{"app": "shop"}
	j := got.Owner.(*batchv1.Job)
	if !reflect.DeepEqual(j.Spec, want) {
		t.Errorf("the spec is %+v", j.Spec)
	}
	if meta := (metav1.ObjectMeta{Name: "render-rerun-x7k2p", Namespace: "studio", Labels: map[string]string{"app": "shop"}, Annotations: map[string]string{
		"example.com/note": "mine", v1alpha1.BackoffSecondsAnnotation: "5", v1alpha1.PerCompletionEnvAnnotation: "render-rerun-x7k2p-env-x7k2p", v1alpha1.RerunOfAnnotation: "render/u-1"}}); !reflect.DeepEqual(j.ObjectMeta, meta) {
		t.Errorf("it is\n%+v, want\n%+v", j.ObjectMeta, meta)
	}
	if !reflect.DeepEqual(j.Status, batchv1.JobStatus{}) || len(got.Notes) > 0 {
		t.Errorf("the status is %+v, and the notes %q", j.Status, got.Notes)
	}
	if c := got.Parameters; c.Name != "render-rerun-x7k2p-env-x7k2p" || !maps.Equal(c.Data, tenFrames) || !*c.Immutable {
		t.Errorf("the ConfigMap is %+v", c)
	}
}

// TestFailedIndexes: the lists have the values of the remaining indexes, and each variable that was the index refers to the
// original one.
func TestFailedIndexes(t *testing.T) {
	many := func(j *batchv1.Job) { j.Spec.Completions, j.Status.CompletedIndexes = ptr.To[int32](300), "" }
	for _, tt := range []struct {
		name   string
		change func(*batchv1.Job)
		data   map[string]string
		want   map[string]string
		notes  string
	}{
		{"all that are not complete", nil, tenFrames, map[string]string{"FRAME": "d\n\n g\nh\ni\n", "JOBSTREAM_ORIGINAL_INDEX": "3\n5\n6\n7\n8\n"}, "5 indexes of the Job render: 3,5-8"},
		{"without values", nil, nil, map[string]string{"JOBSTREAM_ORIGINAL_INDEX": "3\n5\n6\n7\n8\n"}, "5 indexes of the Job render: 3,5-8"},
		{"a rerun of a rerun", nil, map[string]string{"FRAME": tenFrames["FRAME"], "JOBSTREAM_ORIGINAL_INDEX": "10\n11\n12\n13\n14\n15\n16\n17\n18\n19\n"},
			map[string]string{"FRAME": "d\n\n g\nh\ni\n", "JOBSTREAM_ORIGINAL_INDEX": "13\n15\n16\n17\n18\n"}, "5 indexes of the Job render: 3,5-8, originally 13,15,16,17,18"},
		{"nothing but the last", func(j *batchv1.Job) { j.Status.CompletedIndexes = "0-8" }, tenFrames, map[string]string{"FRAME": "j\n", "JOBSTREAM_ORIGINAL_INDEX": "9\n"}, "1 index of the Job render: 9"},
		{"a Job that succeeds with failed indexes", func(j *batchv1.Job) {
			j.Spec.SuccessPolicy = &batchv1.SuccessPolicy{}
			j.Status.Conditions[0].Type = batchv1.JobComplete
		}, tenFrames, map[string]string{"FRAME": "d\n\n", "JOBSTREAM_ORIGINAL_INDEX": "3\n5\n"}, "2 indexes of the Job render: 3,5|spec.successPolicy is left out: all of these indexes must succeed"},
		{"a volume with the index", func(j *batchv1.Job) {
			j.Status.CompletedIndexes = "0-8"
			j.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "podinfo", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{{FieldRef: theIndex("labels").FieldRef}}}}}}
		}, nil, map[string]string{"JOBSTREAM_ORIGINAL_INDEX": "9\n"}, "1 index of the Job render: 9|the volume podinfo shows the index in the new Job, and not the original one: only variables can"},
		{"more indexes than a line has room for", func(j *batchv1.Job) {
			many(j)
			j.Status.CompletedIndexes = "2,4,6,8,10,12,14,16,18,20,22,24,26,28,30,32,34,36,38,40,42,44,46-299"
		}, nil, nil, "24 indexes of the Job render: 0,1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31,33,35,37,39,41,…"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			old, parameters := failed(), (*corev1.ConfigMap)(nil)
			if tt.change != nil {
				tt.change(old)
			}
			if tt.data != nil {
				parameters = lists(tt.data)
			}
			got, err := Build(old, parameters, Options{FailedIndexes: true, Suffix: "x7k2p"})
			if err != nil {
				t.Fatal(err)
			}
			if tt.want != nil && !maps.Equal(got.Parameters.Data, tt.want) {
				t.Errorf("the values are %q, want %q", got.Parameters.Data, tt.want)
			}
			if notes := strings.Join(got.Notes, "|"); notes != tt.notes {
				t.Errorf("the notes are %q, want %q", notes, tt.notes)
			}
			s := got.Owner.(*batchv1.Job).Spec
			n := int32(strings.Count(got.Parameters.Data[v1alpha1.OriginalIndexVariable], "\n"))
			if *s.Completions != n || *s.Parallelism != min(n, 8) || *s.MaxFailedIndexes != min(n, 9) || s.SuccessPolicy != nil {
				t.Errorf("the spec is %+v", s)
			}
			original := corev1.EnvVar{Name: indexVariable, Value: "$(JOBSTREAM_ORIGINAL_INDEX)"}
			env := [][]corev1.EnvVar{s.Template.Spec.InitContainers[0].Env, s.Template.Spec.Containers[0].Env, s.Template.Spec.Containers[1].Env}
			if want := [][]corev1.EnvVar{{original}, {{Name: "I", Value: original.Value}, {Name: "X", Value: "1"}, original}, {{Name: indexVariable, Value: "mine"}}}; !reflect.DeepEqual(env, want) {
				t.Errorf("the variables are %+v, want %+v", env, want)
			}
		})
	}
}

// TestRefused: the error for a Job that cannot be run again has a remedy.
func TestRefused(t *testing.T) {
	indexes := Options{FailedIndexes: true, Suffix: "x7k2p"}
	for _, tt := range []struct {
		name   string
		change func(*batchv1.Job)
		data   map[string]string
		o      Options
		says   string
	}{
		{"a selector of its own", func(j *batchv1.Job) { j.Spec.ManualSelector = ptr.To(true) }, nil, Options{}, "has a selector of its own (manualSelector), which would select the Pods of both: get the manifest with: kubectl get job render -n studio -o yaml"},
		{"no indexes", func(j *batchv1.Job) { j.Spec.CompletionMode = ptr.To(batchv1.NonIndexedCompletion) }, nil, indexes, "is not Indexed, so it has no failed indexes: leave out --failed-indexes"},
		{"nothing failed", func(j *batchv1.Job) { j.Status.CompletedIndexes = "0-9" }, nil, indexes, "no index of the Job render has failed: leave out --failed-indexes"},
		{"it is complete", func(j *batchv1.Job) {
			j.Status.Conditions[0].Type, j.Status.FailedIndexes = batchv1.JobComplete, nil
		}, nil, indexes, "no index of the Job render has failed"},
		{"it scaled to nothing", func(j *batchv1.Job) { j.Spec.Completions = ptr.To[int32](0) }, nil, indexes, "no index of the Job render has failed"},
		{"Kubernetes' own", func(j *batchv1.Job) { j.Spec.ManagedBy = nil }, nil, indexes, "belongs to kubernetes.io/job-controller, which cannot tell Pods their original index: add --managed-by=jobstream.dev/reconciler"},
		{"another controller's", func(j *batchv1.Job) { j.Spec.ManagedBy = ptr.To("example.com/x") }, nil, indexes, "belongs to example.com/x, which cannot"},
		{"to Kubernetes' own", nil, nil, Options{FailedIndexes: true, ManagedBy: batchv1.JobControllerName}, "--managed-by=kubernetes.io/job-controller: Kubernetes' own controller cannot tell Pods their original index: write --managed-by=jobstream.dev/reconciler"},
		{"too few values", nil, map[string]string{"F": "a\nb\n"}, indexes, "the ConfigMap of the Job render: F has 2 values, and none for index 8"},
		{"values that are none", nil, map[string]string{"F": "a\n", "G": "b\nc\n"}, Options{}, "the ConfigMap render-env-aaaaa, which has the values of the Job render, cannot be used: its lists differ in length"},
		{"too many indexes", func(j *batchv1.Job) { j.Spec.Completions = ptr.To[int32](2_000_000_000) }, nil, indexes, "1999999995 indexes of the Job render did not succeed, and a ConfigMap has room for fewer than 524288"},
		{"too many bytes", func(j *batchv1.Job) { j.Spec.Completions = ptr.To[int32](500_000) }, nil, indexes, "the values of the 499995 indexes take 3388880 bytes, and a ConfigMap holds 1048576: leave out --failed-indexes"},
		{"the name of the variable is taken", func(j *batchv1.Job) {
			j.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: v1alpha1.OriginalIndexVariable}}
		}, nil, indexes, "the container main defines the variable JOBSTREAM_ORIGINAL_INDEX itself"},
		{"a name that is too long", nil, nil, Options{Name: strings.Repeat("n", 62)}, "has 62 characters, and may have 61: name and index form a host name"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			old, parameters := failed(), (*corev1.ConfigMap)(nil)
			if tt.change != nil {
				tt.change(old)
			}
			if tt.data != nil {
				parameters = lists(tt.data)
			}
			if got, err := Build(old, parameters, tt.o); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("want %q, got %v, %+v", tt.says, err, got.Owner)
			}
		})
	}
}

// TestManagedBy: a Job of the built-in controller becomes jobstream's if the user wants that; the built-in controller had ignored
// its annotation.
func TestManagedBy(t *testing.T) {
	old := failed(func(j *batchv1.Job) { j.Spec.ManagedBy = nil })
	if name := NeedsParameters(old); name != "" {
		t.Errorf("it needs %q", name)
	}
	got, err := Build(old, nil, Options{FailedIndexes: true, ManagedBy: v1alpha1.DefaultManagedBy, Suffix: "x7k2p"})
	if err != nil || *got.Owner.(*batchv1.Job).Spec.ManagedBy != v1alpha1.DefaultManagedBy {
		t.Errorf("%v, %+v", err, got.Owner)
	}
	if got, err = Build(old, nil, Options{Suffix: "x7k2p"}); err != nil || got.Owner.(*batchv1.Job).Spec.ManagedBy != nil {
		t.Errorf("%v, %+v", err, got.Owner)
	}
}

// TestName: the name has room for the index, is valid, and does not grow from rerun to rerun.
func TestName(t *testing.T) {
	long := strings.Repeat("n", 63)
	for _, tt := range []struct {
		name, want string
		indexed    bool
		rerun      bool
	}{
		{"pi", "pi-rerun-x7k2p", false, false},
		{long, long[:51] + "-rerun-x7k2p", false, false},
		{long[:61], long[:49] + "-rerun-x7k2p", true, false},
		{long[:50] + ".x", long[:50] + "-rerun-x7k2p", false, false},
		{"pi-rerun-a2b3c", "pi-rerun-x7k2p", false, true},
		{"pi-rerun-a2b3c", "pi-rerun-a2b3c-rerun-x7k2p", false, false},
	} {
		old := failed(func(j *batchv1.Job) {
			j.Name = tt.name
			if !tt.indexed {
				j.Spec.CompletionMode = nil
			}
			if tt.rerun {
				j.Annotations[v1alpha1.RerunOfAnnotation] = "pi/u-0"
			}
		})
		got, err := Build(old, nil, Options{Suffix: "x7k2p"})
		if err != nil || got.Owner.GetName() != tt.want {
			t.Errorf("%s: %v, %v, want %s", tt.name, got.Owner, err, tt.want)
		}
	}
}
