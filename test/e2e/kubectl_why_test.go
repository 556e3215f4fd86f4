package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/internal/finding"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// situation is one in which a user asks why.
type situation struct {
	name string
	// arrange brings it about.
	arrange func(u *terminal)
	// asks is the argument of "why".
	asks string
	// first is the cause that has to come first, and says what its sentences and its advice have to contain.
	first string
	says  []string
}

// In each situation, which a real jobstream and a real API server bring about, "why" names the true cause first. Where a scheduler or
// a kubelet would report it, the test writes what those write into the status of the Pod.
func TestKubectlWhy(t *testing.T) {
	for _, s := range append(whyJobs, whySchedules...) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			u := open(t)
			s.arrange(u)
			harness.Until(t, time.Minute, fmt.Sprintf("why %s to name %q first", s.asks, s.first), func(context.Context) error {
				if f := u.why(s.asks)[0]; f.Check != s.first || !hasAll(f.Found+" -> "+f.Advice, s.says) {
					return fmt.Errorf("it says %s: %s -> %s", f.Check, f.Found, f.Advice)
				}
				return nil
			})
			if printed := u.succeeds("kubectl jobstream why " + s.asks); !strings.Contains(printed, "\n\n1. "+s.first+": ") {
				t.Errorf("the text for people has another cause first:\n%s", printed)
			}
		})
	}
}

// why returns the causes that "why" reports to a program.
func (u *terminal) why(object string) []finding.Finding {
	u.Helper()
	var answer struct{ Findings []finding.Finding }
	if err := json.Unmarshal([]byte(u.succeeds("kubectl jobstream why "+object+" -o json")), &answer); err != nil || len(answer.Findings) == 0 {
		u.Fatalf("%v: it has no causes", err)
	}
	return answer.Findings
}

// apply makes the creation of a Job a situation.
func apply(script string, change ...func(*batchv1.JobSpec)) func(*terminal) {
	return func(u *terminal) { u.Apply(harness.Shell("pi", script, change...)) }
}

// Without a reconciler nothing goes on: "why" names that first, whatever the objects wait for it with, once half a minute has passed.
func TestKubectlWhyWithoutReconciler(t *testing.T) {
	t.Parallel()
	u := openIn(t, own(t, harness.Config{}))
	gate := u.dir + "/go"
	for _, name := range []string{"ends", "deleted"} {
		u.Apply(harness.Shell(name, "until [ -e '"+gate+"' ]; do sleep 0.2; done"))
	}
	for _, name := range []string{"ends", "deleted"} {
		u.Await(name, time.Minute, "to run", func(j *batchv1.Job) bool { return ptr.Deref(j.Status.Ready, 0) == 1 })
	}
	for _, p := range u.Reconcilers {
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	u.succeeds("touch " + gate + "; kubectl delete job deleted --cascade=foreground --wait=false")
	u.Apply(harness.Shell("new", "true"))
	u.Schedule(harness.Every("tick", "@daily", "true"))
	for object, says := range map[string]string{"ends": "1 ended Pod is not counted", "deleted": "1 Pod is being deleted and not released", "job/new": "jobstream has not touched it", "tick": "jobstream has not touched it"} {
		harness.Until(t, 2*time.Minute, object+" to be explained", func(context.Context) error {
			if f := u.why(object)[0]; f.Check != "controller" || !hasAll(f.Found+f.Advice, []string{says, doctorAdvice}) {
				return fmt.Errorf("it says %s: %s -> %s", f.Check, f.Found, f.Advice)
			}
			return nil
		})
	}
	startAll(t, u.System)
	u.AwaitEnd("ends", batchv1.JobComplete, timeout)
	u.AwaitEnd("new", batchv1.JobComplete, timeout)
}

// doctorAdvice is what a user does who suspects that jobstream does not run.
const doctorAdvice = "look for its trigger and reconciler with: kubectl get deployments -A"
