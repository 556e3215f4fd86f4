package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
)

// peel is an Indexed Job with a value for each index, whose Pods fail without a file for their index. They get the index in
// every way in which a variable can have it.
const peel = `cat <<'EOF' | kubectl apply -f -
apiVersion: v1
kind: ConfigMap
metadata: {name: fruits}
immutable: true
data:
  FRUIT: "apple\nbanana\ncherry\n$(date)\nelder\n"
---
apiVersion: batch/v1
kind: Job
metadata:
  name: peel
  labels: {app: shop}
  annotations: {jobstream.dev/per-completion-env: fruits}
spec:
  managedBy: jobstream.dev/reconciler
  completionMode: Indexed
  completions: 5
  parallelism: 5
  backoffLimitPerIndex: 0
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: main
        image: busybox
        command: [sh, -c, 'if [ -e DIR/$JOB_COMPLETION_INDEX ]; then echo "$JOB_COMPLETION_INDEX $I $FRUIT $AGAIN"; else exit 1; fi']
        env:
        - {name: I, valueFrom: {fieldRef: {fieldPath: "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}}
        - {name: AGAIN, value: "$(I)-$(FRUIT)"}
EOF`

// The failed indexes of a Job run again, with their values and original numbers, again and again until none is left.
func TestKubectlRerunFailedIndexes(t *testing.T) {
	t.Parallel()
	u := open(t)
	works := func(indexes ...string) {
		for _, i := range indexes {
			if err := os.WriteFile(filepath.Join(u.dir, i), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	lines := func(out string) (all []string) {
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, "[") {
				all = append(all, strings.TrimSpace(line))
			}
		}
		slices.Sort(all)
		return all
	}
	name := regexp.MustCompile(`job\.batch/(\S+) created`)

	works("0", "2")
	u.succeeds(strings.ReplaceAll(peel, "DIR", u.dir))
	first := u.AwaitEnd("peel", batchv1.JobFailed, timeout)
	if *first.Status.FailedIndexes != "1,3,4" {
		t.Fatalf("the failed indexes are %s", *first.Status.FailedIndexes)
	}

	works("3")
	out, errOut, code := u.enter("kubectl jobstream rerun peel --failed-indexes --logs")
	if got, want := lines(out), []string{"[1] 3 3 $(date) 3-$(date)"}; code != 1 || !slices.Equal(got, want) || !strings.Contains(errOut, "note: 3 indexes of the Job peel: 1,3,4\n") || !strings.Contains(errOut, "failed indexes 0,2") {
		t.Fatalf("exit code %d, it has printed %q, want %q", code, got, want)
	}
	second := u.Job(name.FindStringSubmatch(out)[1])
	if second.Labels["app"] != "shop" || second.Annotations["jobstream.dev/rerun-of"] != "peel/"+string(first.UID) || *second.Spec.Completions != 3 {
		t.Errorf("it is %+v", second.ObjectMeta)
	}

	works("1", "4")
	out, errOut, code = u.enter("kubectl jobstream rerun " + second.Name + " --failed-indexes --logs")
	if got, want := lines(out), []string{"[0] 1 1 banana 1-banana", "[1] 4 4 elder 4-elder"}; code != 0 || !slices.Equal(got, want) || !strings.Contains(errOut, ": 0,2, originally 1,4\n") {
		t.Fatalf("exit code %d, it has printed %q, want %q: %s", code, got, want, errOut)
	}
	if _, errOut, code = u.enter("kubectl jobstream rerun " + name.FindStringSubmatch(out)[1] + " --failed-indexes"); code != 1 || !strings.Contains(errOut, "has failed: leave out --failed-indexes, which runs all of it again") {
		t.Errorf("exit code %d: %s", code, errOut)
	}

	// All of it, with a ConfigMap of the new Job's own.
	u.succeeds("kubectl jobstream rerun peel --name=whole")
	u.succeeds("kubectl delete job peel && kubectl delete configmap fruits")
	got, want := u.printed(u.AwaitEnd("whole", batchv1.JobComplete, timeout)), []string{"0 0 apple 0-apple", "1 1 banana 1-banana", "2 2 cherry 2-cherry", "3 3 $(date) 3-$(date)", "4 4 elder 4-elder"}
	if !slices.Equal(got, want) {
		t.Errorf("it has printed %q, want %q", got, want)
	}
}
