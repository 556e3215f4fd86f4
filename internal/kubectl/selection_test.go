package kubectl

import (
	"net/http"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
)

// TestSelectedObjectsThatAreDeletedMeanwhile: -l and -A select what there is, and of an object that is deleted before its patch nothing
// is left to do. The others are changed all the same.
func TestSelectedObjectsThatAreDeletedMeanwhile(t *testing.T) {
	for command, says := range map[string]string{
		"suspend": "job.batch/a has been deleted meanwhile: nothing is left to suspend\n",
		"stop":    "job.batch/a has been deleted meanwhile: nothing is left to stop\n",
	} {
		t.Run(command, func(t *testing.T) {
			w := newWorld(t)
			for _, name := range []string{"a", "b"} {
				w.newJob(name, func(j *batchv1.Job) { j.Labels = map[string]string{"app": "shop"} })
			}
			w.fault = func(_ int, r *http.Request) error {
				if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/jobs/a") {
					w.delete("a")
				}
				return nil
			}
			got := w.call(command, "jobs", "-l", "app=shop")
			if got.code != 0 || !strings.Contains(got.err, says) || !strings.Contains(got.out+got.err, "job.batch/b ") {
				t.Errorf("got %s", got)
			}
			if got := w.call(command, "a"); got.code != ExitFailed {
				t.Errorf("a user who names it is not told that it is gone: %s", got)
			}
		})
	}
}
