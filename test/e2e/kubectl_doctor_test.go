package e2e

import (
	"regexp"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// The plugin's doctor finds nothing if all is well, except the trace that jobstream has left; then it finds what keeps Jobs from
// running, from the conditions that jobstream itself has written.
func TestKubectlDoctor(t *testing.T) {
	t.Parallel()
	u := open(t)
	squeezed := func(out string) string { return regexp.MustCompile(` {2,}`).ReplaceAllString(out, " ") }
	u.succeeds("kubectl jobstream run hello --image=busybox --wait -- true")
	out := squeezed(u.succeeds("kubectl jobstream doctor"))
	if !hasAll(out, []string{"OK scheduledjobs jobstream.dev/v1alpha1 is served, with every field", "OK jobstream nothing waits for it; its latest trace in the namespace " + u.Namespace + " is on job/hello, ", " 0 WARN, 0 FAIL\n"}) {
		t.Errorf("it says\n%s", out)
	}

	u.succeeds(`kubectl jobstream run nightly --image=busybox --run-at=@daily -- true && kubectl patch scheduledjob nightly --type=merge -p '{"spec":{"schedule":"0 0 30 2 *"}}'`)
	lost := harness.Shell("lost", "true", harness.Size(2, 2, 0), harness.Indexed)
	lost.Annotations = map[string]string{v1alpha1.PerCompletionEnvAnnotation: "nowhere", v1alpha1.BackoffSecondsAnnotation: "soon"}
	u.Apply(lost)
	u.Await("lost", timeout, "to be refused", func(j *batchv1.Job) bool {
		return harness.Is(j, v1alpha1.RefusedCondition) && harness.Is(j, v1alpha1.IgnoredCondition)
	})
	u.AwaitSchedule("nightly", timeout, "to be stalled", func(s *v1alpha1.ScheduledJob) bool {
		return meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.StalledCondition)
	})
	out, errOut, code := u.enter("kubectl jobstream doctor")
	out = squeezed(out)
	if code != 1 || !strings.Contains(errOut, "error: 2 of 8 checks failed\n") || !hasAll(out, []string{
		"FAIL job/lost jobstream.dev/Refused: ConfigMapNotFound: ReadParameters: the ConfigMap nowhere", "-> correct what rejects its Pods",
		"WARN job/lost jobstream.dev/AnnotationIgnored: BadAnnotation: ", "-> correct the annotation: kubectl edit job lost -n " + u.Namespace,
		"FAIL scheduledjob/nightly Stalled: InvalidSchedule: ", "-> correct its spec: kubectl edit scheduledjob nightly -n " + u.Namespace}) {
		t.Errorf("exit code %d: %s\n%s", code, errOut, out)
	}
}
