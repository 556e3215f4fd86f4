package kubectl

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

// endWith plays the controller that ends an Indexed Job.
func (w *world) endWith(name, completed string, how ...batchv1.JobConditionType) {
	w.Helper()
	j := w.job(name)
	j.Status.CompletedIndexes = completed
	if _, err := w.BatchV1().Jobs(w.ns).UpdateStatus(w.Context(), j, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
	w.end(name, how...)
}

// TestRerun: the API server accepts the new Job, which has its own values and is created as by "run".
func TestRerun(t *testing.T) {
	w := newWorld(t)
	if got := w.call(append(twoLists[:len(twoLists):len(twoLists)], "twice")...); got.code != 0 {
		t.Fatal(got)
	}
	if got, want := w.call("rerun", "fruits"), "error: the Job fruits has not ended: wait for it with: kubectl jobstream wait fruits -n "+w.ns; got.code != ExitFailed || !strings.HasPrefix(got.err, want) {
		t.Errorf("want %q, got %s", want, got)
	}
	if _, err := w.BatchV1().Jobs(w.ns).Patch(t.Context(), "fruits", types.MergePatchType, []byte(`{"metadata":{"labels":{"app":"shop"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	w.endWith("fruits", "1", batchv1.JobFailureTarget, batchv1.JobFailed)
	for _, tt := range []struct {
		args, out, says string
		requests        []string
	}{
		{"rerun fruits --dry-run=client", "configmap/fruits-rerun-x7k2p-env-x7k2p created (dry run)\njob.batch/fruits-rerun-x7k2p created (dry run)\n", "", nil},
		{"rerun fruits --dry-run=server", "job.batch/fruits-rerun-x7k2p created (server dry run)\nconfigmap/fruits-rerun-x7k2p-env-x7k2p created (server dry run)\n", "", []string{"POST jobs", "POST configmaps"}},
		{"rerun job/fruits", "job.batch/fruits-rerun-x7k2p created\nconfigmap/fruits-rerun-x7k2p-env-x7k2p created\n", "warning: jobstream has not processed the Job", []string{"POST jobs", "POST configmaps", "PATCH jobs/fruits-rerun-x7k2p"}},
		{"rerun fruits --failed-indexes --name=rest -o name", "job.batch/rest\nconfigmap/rest-env-x7k2p\n", "note: 1 index of the Job fruits: 0\n", []string{"POST jobs", "POST configmaps", "PATCH jobs/rest"}},
	} {
		w.requests = nil
		got := w.call(strings.Fields(tt.args)...)
		if got.code != 0 || got.out != tt.out || !strings.Contains(got.err, tt.says) || !slices.Equal(w.requests, tt.requests) {
			t.Errorf("%s: %q: want %q and %q, got %s", tt.args, w.requests, tt.out, tt.says, got)
		}
	}
	old := w.job("fruits")
	for name, want := range map[string]map[string]string{
		"fruits-rerun-x7k2p": {"FRUIT": "apple\nkiwi\n", "COLOR": "red\ngreen\n"},
		"rest":               {"FRUIT": "apple\n", "COLOR": "red\n", "JOBSTREAM_ORIGINAL_INDEX": "0\n"},
	} {
		j := w.job(name)
		if j == nil || j.Annotations[v1alpha1.RerunOfAnnotation] != "fruits/"+string(old.UID) || *j.Spec.Suspend || j.Labels["app"] != "shop" || j.Labels[v1alpha1.SuspendedByLabel] != "" || j.Spec.Template.Labels[batchv1.ControllerUidLabel] != string(j.UID) {
			t.Fatalf("%s is %+v", name, j)
		}
		lists := w.lists()
		i := slices.IndexFunc(lists, func(c corev1.ConfigMap) bool { return c.Name == j.Annotations[v1alpha1.PerCompletionEnvAnnotation] })
		if i < 0 || lists[i].OwnerReferences[0].UID != j.UID || len(lists[i].Data) != len(want) || lists[i].Data["FRUIT"] != want["FRUIT"] || lists[i].Data["JOBSTREAM_ORIGINAL_INDEX"] != want["JOBSTREAM_ORIGINAL_INDEX"] {
			t.Errorf("the ConfigMaps are %+v", lists)
		}
	}
}

// TestRerunOfOthers: a Job of the built-in controller stays with it unless the user chooses otherwise.
func TestRerunOfOthers(t *testing.T) {
	w := newWorld(t)
	w.newJob("theirs", func(j *batchv1.Job) {
		j.Spec.ManagedBy, j.Spec.CompletionMode, j.Spec.Completions = nil, ptr.To(batchv1.IndexedCompletion), ptr.To[int32](3)
	})
	w.endWith("theirs", "0,2", batchv1.JobFailureTarget, batchv1.JobFailed)
	for _, tt := range []struct {
		args, says string
		code       int
		managedBy  string
	}{
		{"rerun theirs --name=whole", "", 0, ""},
		{"rerun theirs --name=ours --failed-indexes", "add --managed-by=" + v1alpha1.DefaultManagedBy, ExitFailed, "none"},
		{"rerun theirs --name=ours --failed-indexes --managed-by=" + v1alpha1.DefaultManagedBy, "note: 1 index of the Job theirs: 1\n", 0, v1alpha1.DefaultManagedBy},
		{"rerun theirs --name=ours", "a Job ours exists already", ExitFailed, v1alpha1.DefaultManagedBy},
		{"rerun nowhere", "there is no Job nowhere in the namespace " + w.ns + ": kubectl get jobs -n " + w.ns + " lists those that there are. A deleted Job cannot be run again\n", ExitFailed, v1alpha1.DefaultManagedBy},
	} {
		got := w.call(strings.Fields(tt.args)...)
		if got.code != tt.code || !strings.Contains(got.err, tt.says) {
			t.Errorf("%s: want %d and %q, got %s", tt.args, tt.code, tt.says, got)
		}
		if name := w.job("ours"); tt.managedBy == "none" && name != nil || tt.managedBy == v1alpha1.DefaultManagedBy && *name.Spec.ManagedBy != tt.managedBy {
			t.Errorf("%s: the Job is %+v", tt.args, name)
		}
	}
	if by := w.job("whole").Spec.ManagedBy; by != nil {
		t.Errorf("the copy is managed by %s", *by)
	}
}

// TestRerunWithoutItsValues: the ConfigMap was deleted, or the user may not read it.
func TestRerunWithoutItsValues(t *testing.T) {
	w := newWorld(t)
	w.newJob("peel", func(j *batchv1.Job) {
		j.Annotations = map[string]string{v1alpha1.PerCompletionEnvAnnotation: "fruits"}
		j.Spec.CompletionMode, j.Spec.Completions = ptr.To(batchv1.IndexedCompletion), ptr.To[int32](3)
	})
	w.end("peel", batchv1.JobFailureTarget, batchv1.JobFailed)
	w.allow("reader", []string{"get", "create"})
	for args, says := range map[string]string{
		"rerun peel":             "the ConfigMap fruits, which has the values of the Job peel, was deleted: create it again, or repeat the run command",
		"rerun peel --as=reader": "cannot read the ConfigMap fruits, which has the values of the Job peel: ",
		"rerun peel --as=guest":  "cannot read the Job peel: ",
	} {
		if got := w.call(strings.Fields(args)...); got.code != ExitFailed || got.out != "" || !strings.Contains(got.err, says) {
			t.Errorf("%s: want %q, got %s", args, says, got)
		}
	}
}
