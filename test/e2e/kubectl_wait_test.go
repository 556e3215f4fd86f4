package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

// "run --wait" ends as the Job does, "--logs" prints each line of each Pod once, and nothing is left of a deleted Job.
func TestKubectlWait(t *testing.T) {
	t.Parallel()
	u := open(t)
	out, errOut, code := u.enter(`seq 30 | kubectl jobstream run logs --image=busybox --per-completion-env=N=@- --parallelism=5 --logs -- sh -c 'echo "a $N"; echo "b $N"; printf "c $N"'`)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	slices.Sort(lines)
	want := []string{"job.batch/logs created"}
	for i := range 30 {
		for _, letter := range "abc" {
			want = append(want, fmt.Sprintf("[%d] %c %d", i, letter, i+1))
		}
	}
	lines = slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "configmap/logs-env-") })
	slices.Sort(want)
	if code != 0 || !slices.Equal(lines, want) || !strings.Contains(errOut, "the Job logs is complete: 30 succeeded, 0 failed") {
		t.Errorf("exit code %d, and it has printed %q, want %q", code, lines, want)
	}
	// These errors would mean that the reconciler saw the Job before its ConfigMap existed.
	if strings.Contains(errOut, "ConfigMapNotFound") || strings.Contains(u.Describe("logs"), "Refused") {
		t.Errorf("the Job was refused for a moment: %s", errOut)
	}
	_, errOut, code = u.enter(`kubectl jobstream run fails --image=busybox --completions=2 --backoff-limit=1 --backoff-seconds=30 --wait -- sh -c 'exit 3'`)
	if code != 1 || !strings.Contains(errOut, "error: the Job fails has failed: BackoffLimitExceeded: Job has reached the specified backoff limit (0 succeeded, 2 failed") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	// The first attempt lasts a moment: a request can name only the latest attempt and the one before it, and these change when
	// the kubelet restarts the container.
	out, _, code = u.enter(`kubectl jobstream run again --image=busybox --logs -o name -- sh -c 'if [ -e '$PWD'/once ]; then echo second; else touch '$PWD'/once; echo first; sleep 10; exit 1; fi'`)
	if code != 0 || out != "job.batch/again\nfirst\nsecond\n" { // the kubelet has restarted it in its Pod
		t.Errorf("exit code %d: %q", code, out)
	}
	_, errOut, code = u.enter(`kubectl jobstream run sleeps --image=busybox --wait --timeout=2s -- sleep 600`)
	if code != 124 || !strings.Contains(errOut, "error: the Job sleeps has not ended within 2s; it goes on") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	out = u.succeeds("kubectl delete job logs")
	harness.Until(t, timeout, "the ConfigMap to be gone with its Job", func(context.Context) error {
		if left, _, _ := u.enter("kubectl get configmaps -o name | grep logs-env-"); left != "" {
			return fmt.Errorf("%s is left", left)
		}
		return nil
	})
	if !strings.Contains(out, "deleted") {
		t.Error(out)
	}
}
