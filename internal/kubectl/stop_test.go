package kubectl

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// stopped returns the Jobs of the namespace that were stopped, by name.
func (w *world) stopped() string {
	w.Helper()
	jobs, err := w.BatchV1().Jobs(w.ns).List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	var names []string
	for i := range jobs.Items {
		if is(&jobs.Items[i], batchv1.JobFailureTarget) {
			names = append(names, jobs.Items[i].Name)
		}
	}
	return strings.Join(names, " ")
}

// TestStop is one user's day: after each command the API server has the expected state.
func TestStop(t *testing.T) {
	w := newWorld(t)
	labels := map[string]string{"app": "shop"}
	w.newJob("pi", func(j *batchv1.Job) { j.Labels = labels })
	w.newJob("e", func(j *batchv1.Job) { j.Labels = labels })
	w.newJob("done", func(j *batchv1.Job) { j.Labels = labels })
	w.end("done", batchv1.JobSuccessCriteriaMet, batchv1.JobComplete)
	w.newJob("good", nil)
	w.end("good", batchv1.JobSuccessCriteriaMet)
	w.newJob("theirs", func(j *batchv1.Job) { j.Labels, j.Spec.ManagedBy = labels, nil })
	for _, step := range []struct {
		args, out, says, stopped string
		code                     int
	}{
		{"stop pi --dry-run=server", "job.batch/pi stopped (server dry run)\n", "", "", 0},
		{"stop pi", "job.batch/pi stopped\n", "", "pi", 0},
		{"stop job/pi", "", "job.batch/pi is about to be Failed already\n", "pi", 0},
		{"stop done", "", "job.batch/done has finished: nothing is left to stop\n", "pi", 0},
		{"stop good", "", "job.batch/good has all the successes that it needs, and is about to be complete\n", "pi", 0},
		{"stop e nowhere", "", "there is no Job nowhere in the namespace", "pi", ExitFailed},
		{"stop -l app=shop", "job.batch/e stopped\n", "job.batch/pi is about to be Failed already\n", "e pi", 0},
		{"stop -l app=nothing -A", "", "warning: nothing is selected: -l and -A choose among unfinished Jobs of jobstream\n", "e pi", 0},
		{"stop theirs", "job.batch/theirs stopped\n", "", "e pi theirs", 0},
	} {
		got := w.call(strings.Fields(step.args)...)
		if got.code != step.code || got.out != step.out || !strings.Contains(got.err, step.says) || step.says == "" && got.err != "" {
			t.Errorf("%s: want %q and %q, got %s", step.args, step.out, step.says, got)
		}
		if have := w.stopped(); have != step.stopped {
			t.Fatalf("%s: stopped are %q, want %q", step.args, have, step.stopped)
		}
	}
	c := w.job("pi").Status.Conditions
	if len(c) != 1 || c[0].Reason != "ManuallyTerminated" || c[0].Message != "Job was stopped by a user" || c[0].LastTransitionTime.IsZero() {
		t.Errorf("the conditions are %+v", c)
	}
}

// TestStopWaits: --wait waits for the end, and no longer than --timeout.
func TestStopWaits(t *testing.T) {
	w := newWorld(t)
	w.newJob("pi", nil)
	if got, want := w.call("stop", "pi", "--wait", "--timeout=50ms"), "error: 1 of 1 Jobs have not ended within 50ms: see what their Pods wait for with: kubectl get pods -n "+w.ns+" -l batch.kubernetes.io/job-name=pi\n"; got.code != ExitTimeout || got.out != "job.batch/pi stopped\n" || got.err != want {
		t.Errorf("want %q, got %s", want, got)
	}
	w.newJob("gone", nil)
	w.fault = func(_ int, r *http.Request) error { // the controllers finish right after the patch
		if strings.HasSuffix(r.URL.Path, "gone/status") {
			w.end("pi", batchv1.JobFailed)
		}
		return nil
	}
	got := w.call("stop", "pi", "gone", "--wait", "--timeout=5s")
	if got.code != ExitTimeout || !strings.Contains(got.err, "job.batch/pi is Failed: Because: of a test (0 succeeded, 0 failed") || !strings.Contains(got.err, "error: 1 of 2 Jobs have not ended") {
		t.Errorf("got %s", got)
	}
	if err := w.BatchV1().Jobs(w.ns).Delete(t.Context(), "gone", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}); err != nil {
		t.Fatal(err)
	}
}

// TestStopNoNamesake: an object that takes over the name between read and patch is left alone, and so is a Job that ends
// meanwhile.
func TestStopNoNamesake(t *testing.T) {
	for _, tt := range []struct {
		name, says string
		meanwhile  func(w *world)
	}{
		{"made anew", "it has been deleted or created again meanwhile: look at it, and repeat the command\n", func(w *world) { w.delete("pi"); w.newJob("pi", nil) }},
		{"complete", "cannot stop job.batch/pi, which may have ended meanwhile: look at it with: kubectl get job pi -n ", func(w *world) { w.end("pi", batchv1.JobSuccessCriteriaMet, batchv1.JobComplete) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.newJob("pi", nil)
			w.fault = func(int, *http.Request) error { tt.meanwhile(w); return nil }
			if got := w.call("stop", "pi"); got.code != ExitFailed || got.out != "" || !strings.Contains(got.err, tt.says) || w.stopped() != "" {
				t.Errorf("stopped: %q, %s", w.stopped(), got)
			}
		})
	}
}

// TestStopIsForbidden: a user who may not patch the status gets advice on what does nearly the same.
func TestStopIsForbidden(t *testing.T) {
	w := newWorld(t)
	w.newJob("pi", nil)
	w.allow("editor", []string{"get", "create", "patch", "delete"})
	got := w.call("stop", "pi", "--as=editor")
	for _, want := range []string{`cannot patch resource "jobs/status"`, `"kubectl jobstream suspend job/pi -n ` + w.ns + `" deletes its Pods and keeps its counts`, `"kubectl delete job pi -n ` + w.ns + `" ends it for good`} {
		if got.code != ExitFailed || !strings.Contains(got.err, want) {
			t.Errorf("want %q, got %s", want, got)
		}
	}
	if !slices.Equal(w.requests[len(w.requests)-1:], []string{"PATCH jobs/pi/status"}) {
		t.Errorf("the requests are %q", w.requests)
	}
}
