package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// What the real trigger has stored about Jobs that a real reconciler has run, folded again: every effect is answered by a fact, the function
// comes to the same end, and nothing on the bus or in the file has a value from the template of a Pod.
func TestKubectlReplayOfRealJobs(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-in-the-template"
	u := open(t)
	u.env = append(u.env, "JOBSTREAM_NATS_URL="+u.NATS.URL, "JOBSTREAM_CLUSTER_NAME="+harness.ClusterName)
	u.Apply(harness.Shell("many", "sleep 0.1; : "+secret, harness.Size(12, 4, 0)))
	u.Apply(harness.Shell("retries", `mkdir `+u.dir+`/once 2>/dev/null && exit 3; true`, harness.Size(1, 1, 3)))
	u.Apply(harness.Shell("fails", "exit 7", harness.Size(2, 2, 0), harness.Indexed))
	for name, end := range map[string]batchv1.JobConditionType{"many": batchv1.JobComplete, "retries": batchv1.JobComplete, "fails": batchv1.JobFailed} {
		u.AwaitEnd(name, end, timeout)
	}
	for name, want := range map[string]struct {
		pods  int
		words []string
		end   string
	}{
		"many":    {12, []string{"job completions=12 parallelism=4", "pod 0 succeeds", "pod 11 succeeds"}, "Announce JobFinish Succeeded(CompletionsReached)"},
		"retries": {2, []string{"pod 0 fails-with-3", "advance ", "the timer fires", "pod 1 succeeds"}, "Announce JobFinish Succeeded(CompletionsReached)"},
		"fails":   {2, []string{"indexed", "fails-with-7"}, "Announce JobFinish Failed(BackoffLimitExceeded)"},
	} {
		t.Run(name, func(t *testing.T) {
			out := u.settledReplay(name)
			created := map[string]bool{}
			for _, m := range regexp.MustCompile(`(?m)^CreatePod (\S+) `).FindAllStringSubmatch(out, -1) {
				created[m[1]] = true
			}
			for _, p := range u.Pods(name) {
				if !created[p.Name] {
					t.Errorf("nothing shows that the Pod %s was decided on", p.Name)
				}
			}
			if len(created) < want.pods || !strings.Contains(out, want.end) {
				t.Errorf("%d Pods, want %d, and %s", len(created), want.pods, want.end)
			}
			for _, w := range want.words {
				if !strings.Contains(out, w) {
					t.Errorf("the transcript does not say %q", w)
				}
			}
			if strings.Contains(out, "cannot decide") {
				t.Error("a decision failed")
			}
			u.succeeds("kubectl jobstream decisions " + name + " -o json > " + name + ".json")
			text, err := os.ReadFile(filepath.Join(u.dir, name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			var r struct {
				Facts []struct {
					Fact struct {
						Data struct {
							Job *struct{ Status json.RawMessage }
						}
					}
				}
			}
			if err := json.Unmarshal(text, &r); err != nil || len(r.Facts) == 0 || strings.Contains(string(text), secret) {
				t.Errorf("%d facts, %v: has it a value from the template?", len(r.Facts), err)
			}
			written, last := 0, "{}"
			for _, f := range r.Facts {
				if j := f.Fact.Data.Job; j != nil && string(j.Status) != last {
					written, last = written+1, string(j.Status)
				}
			}
			// Two turns may be folded as one; and where the reconciler was slow, one turn as two, of which a fact shows only the later write.
			if shown := len(shownWrite.FindAllString(out, -1)); shown == 0 || shown > written {
				t.Errorf("the reconciler has written %d statuses, and facts show %d of those of the transcript", written, shown)
			}
			t.Logf("%s: %d facts, %d bytes of record, %d status writes", name, len(r.Facts), len(text), written)
		})
	}
	out := u.succeeds("kubectl jobstream events --type=JobFinish")
	for _, line := range []string{`(?m)^\S+  JobFinish    ` + u.Namespace + `/many  Succeeded\(CompletionsReached\): 12 succeeded, 0 failed in `, `/fails  Failed\(BackoffLimitExceeded\): .*exit code 7`} {
		if !regexp.MustCompile(line).MatchString(out) {
			t.Errorf("no line %q", line)
		}
	}
}

// settledReplay waits until facts on the bus show the results of nearly all effects that the replay of the object has: the last ones may be
// under way, and where the reconciler was slow, the replay has folded other facts together than the reconciler had.
func (u *terminal) settledReplay(object string) (out string) {
	u.Helper()
	harness.Until(u, timeout, "facts to answer the effects", func(ctx context.Context) (err error) {
		if out, err = u.asks(ctx, "kubectl jobstream replay "+object); err != nil {
			return err
		}
		if all, unanswered := len(effectLine.FindAllString(out, -1)), strings.Count(out, "no fact shows"); all == 0 || 5*unanswered > all {
			return fmt.Errorf("%d of %d effects were answered by no fact", unanswered, all)
		}
		return nil
	})
	return out
}

// effectLine is the line of an effect in a transcript.
var effectLine = regexp.MustCompile(`(?m)^[A-Z][A-Za-z]+ \S+`)

// shownWrite is the line of a write of a Job's status that a fact shows: the line has no comment.
var shownWrite = regexp.MustCompile(`(?m)^WriteJobStatus @[^#\n]*$`)

// A ScheduledJob has decisions, too.
func TestKubectlDecisionsOfASchedule(t *testing.T) {
	t.Parallel()
	u := open(t)
	u.env = append(u.env, "JOBSTREAM_NATS_URL="+u.NATS.URL, "JOBSTREAM_CLUSTER_NAME="+harness.ClusterName)
	u.succeeds(`kubectl jobstream run tick --image=busybox --run-at="*/3 * * * * *" -o name -- true`)
	u.AwaitSchedule("tick", timeout, "to have had three successful Jobs", func(s *v1alpha1.ScheduledJob) bool { return s.Status.Successful >= 3 })
	u.Reschedule("tick", `{"suspend":true}`)
	s := u.AwaitSchedule("tick", timeout, "to be at rest", func(s *v1alpha1.ScheduledJob) bool {
		return meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.SuspendedCondition) && len(s.Status.Active) == 0
	})
	out := u.settledReplay("scheduledjob/tick")
	if !strings.Contains(out, "# ScheduledJob "+u.Namespace+"/tick, UID "+string(s.UID)) || strings.Count(out, "\nCreateJob tick-") < 3 ||
		strings.Count(out, "\nAnnounce Started ") < 3 || !strings.Contains(out, "\ndue 2") || !strings.Contains(out, "\nWriteScheduleStatus @") {
		t.Errorf("the transcript lacks decisions")
	}
	if out := u.succeeds("kubectl jobstream decisions tick --last=3"); !strings.Contains(out, "\nThe last 3 of ") || !strings.Contains(out, "\nstate: revision ") {
		t.Errorf("its state is not shown")
	}
}
