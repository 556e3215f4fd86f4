package e2e

import (
	"context"
	"encoding/json"
	"errors"
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

// replayedJob is a Job, and what its transcript has to show.
type replayedJob struct {
	job   func(name, dir string) *batchv1.Job
	ends  batchv1.JobConditionType
	pods  int
	words []string
	end   string
}

// hunter2 is in the template of a Pod: nothing on the bus or in a file has it.
const hunter2 = "hunter2-in-the-template"

// What the real trigger has stored about Jobs that a real reconciler has run, folded again: every effect is answered by a fact, the function
// comes to the same end, and nothing on the bus or in the file has a value from the template of a Pod.
func TestKubectlReplayOfRealJobs(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]replayedJob{
		"many": {
			func(name, _ string) *batchv1.Job {
				return harness.Shell(name, "sleep 0.1; : "+hunter2, harness.Size(12, 4, 0))
			},
			batchv1.JobComplete, 12, []string{"job completions=12 parallelism=4", "pod 0 succeeds", "pod 11 succeeds"}, "Announce JobFinish Succeeded(CompletionsReached)",
		},
		"retries": {
			func(name, dir string) *batchv1.Job {
				return harness.Shell(name, `mkdir `+dir+`/once 2>/dev/null && exit 3; true`, harness.Size(1, 1, 3))
			},
			batchv1.JobComplete, 2, []string{"pod 0 fails-with-3", "advance ", "the timer fires", "pod 1 succeeds"}, "Announce JobFinish Succeeded(CompletionsReached)",
		},
		"fails": {
			func(name, _ string) *batchv1.Job {
				return harness.Shell(name, "exit 7", harness.Size(2, 2, 0), harness.Indexed)
			},
			batchv1.JobFailed, 2, []string{"indexed", "fails-with-7"}, "Announce JobFinish Failed(BackoffLimitExceeded)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			u, out := tt.replay(t, name)
			tt.check(u, name, out)
			u.checkRecord(name, out)
		})
	}
}

// replay runs the Job and returns its transcript. Where the API server or the reconciler stood still for seconds, the transcript differs from
// what the reconciler has decided, and mostly says so: then another Job is run, in another namespace.
func (r replayedJob) replay(t *testing.T, name string) (u *terminal, out string) {
	t.Helper()
	harness.Until(t, timeout, "a Job whose effects facts answer", func(ctx context.Context) (err error) {
		u = openBus(t)
		u.Apply(r.job(name, u.dir))
		u.AwaitEnd(name, r.ends, timeout)
		ctx, cancel := context.WithTimeout(ctx, timeout/4)
		defer cancel()
		err = harness.Poll(ctx, func(ctx context.Context) (err error) { // the last facts may be under way
			if out, err = u.asks(ctx, "kubectl jobstream replay "+name); err == nil && (!strings.Contains(out, r.end) || !mostlyAnswered(out)) {
				err = errors.New("facts do not answer most effects, up to the end")
			}
			return err
		})
		if err == nil && strings.Contains(out, "a fact shows a status to which no decision here led") {
			err = errors.New("it strays")
		}
		if err != nil {
			t.Logf("another Job is run: %v:\n%s", err, out)
		}
		return err
	})
	return u, out
}

// mostlyAnswered reports whether facts show the results of nearly all effects of a transcript. A few are in no fact, such as a write of the
// status that was refused because a user had changed the Job.
func mostlyAnswered(transcript string) bool {
	return 5*strings.Count(transcript, "no fact shows") <= len(effectLine.FindAllString(transcript, -1))
}

// check checks what the transcript shows of the Job.
func (r replayedJob) check(u *terminal, name, out string) {
	u.Helper()
	created := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^CreatePod (\S+) `).FindAllStringSubmatch(out, -1) {
		created[m[1]] = true
	}
	for _, p := range u.Pods(name) {
		if !created[p.Name] {
			u.Errorf("nothing shows that the Pod %s was decided on", p.Name)
		}
	}
	if len(created) < r.pods || !strings.Contains(out, r.end) {
		u.Errorf("%d Pods, want %d, and %s", len(created), r.pods, r.end)
	}
	for _, w := range r.words {
		if !strings.Contains(out, w) {
			u.Errorf("the transcript does not say %q", w)
		}
	}
	if strings.Contains(out, "cannot decide") {
		u.Error("a decision failed")
	}
	u.Logf("the transcript:\n%s", out)
}

// checkRecord checks the record of a Job: it has all that its transcript needs, and nothing from the template of a Pod.
func (u *terminal) checkRecord(name, transcript string) {
	u.Helper()
	u.succeeds("kubectl jobstream decisions " + name + " -o json > " + name + ".json")
	text, err := os.ReadFile(filepath.Join(u.dir, name+".json"))
	if err != nil {
		u.Fatal(err)
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
	if err := json.Unmarshal(text, &r); err != nil || len(r.Facts) == 0 || strings.Contains(string(text), hunter2) {
		u.Errorf("%d facts, %v: has it a value from the template?", len(r.Facts), err)
	}
	written, last := 0, "{}"
	for _, f := range r.Facts {
		if j := f.Fact.Data.Job; j != nil && string(j.Status) != last {
			written, last = written+1, string(j.Status)
		}
	}
	// Two turns may be folded as one; and where the reconciler was slow, one turn as two, of which a fact shows only the later write.
	if shown := len(shownWrite.FindAllString(transcript, -1)); shown == 0 || shown > written {
		u.Errorf("the reconciler has written %d statuses, and facts show %d of those of the transcript", written, shown)
	}
	u.Logf("%s: %d facts, %d bytes of record, %d status writes", name, len(r.Facts), len(text), written)
}

// The bus tells how real Jobs ended, also those of which nothing else is left.
func TestKubectlEventsOfRealJobs(t *testing.T) {
	t.Parallel()
	u := openBus(t)
	u.Apply(harness.Shell("many", "true", harness.Size(12, 4, 0)))
	u.Apply(harness.Shell("fails", "exit 7", harness.Size(2, 2, 0), harness.Indexed))
	u.AwaitEnd("many", batchv1.JobComplete, timeout)
	u.AwaitEnd("fails", batchv1.JobFailed, timeout)
	harness.Until(t, timeout, "both ends on the bus", func(ctx context.Context) error {
		out, err := u.asks(ctx, "kubectl jobstream events --type=JobFinish")
		for _, line := range []string{`(?m)^\S+  JobFinish    ` + u.Namespace + `/many  Succeeded\(CompletionsReached\): 12 succeeded, 0 failed in `,
			`/fails  Failed\(BackoffLimitExceeded\): .*exit code 7`} {
			if err == nil && !regexp.MustCompile(line).MatchString(out) {
				return fmt.Errorf("no line %q in:\n%s", line, out)
			}
		}
		return err
	})
}

// openBus opens a terminal whose plugin reads the bus.
func openBus(t *testing.T) *terminal {
	t.Helper()
	u := open(t)
	u.env = append(u.env, "JOBSTREAM_NATS_URL="+u.NATS.URL, "JOBSTREAM_CLUSTER_NAME="+harness.ClusterName)
	return u
}

// effectLine is the line of an effect in a transcript.
var effectLine = regexp.MustCompile(`(?m)^[A-Z][A-Za-z]+ \S+`)

// shownWrite is the line of a write of a Job's status that a fact shows: the line has no comment.
var shownWrite = regexp.MustCompile(`(?m)^WriteJobStatus @[^#\n]*$`)

// A ScheduledJob has decisions, too.
func TestKubectlDecisionsOfASchedule(t *testing.T) {
	t.Parallel()
	u := openBus(t)
	u.succeeds(`kubectl jobstream run tick --image=busybox --run-at="*/3 * * * * *" -o name -- true`)
	u.AwaitSchedule("tick", timeout, "to have had three successful Jobs", func(s *v1alpha1.ScheduledJob) bool { return s.Status.Successful >= 3 })
	u.Reschedule("tick", `{"suspend":true}`)
	s := u.AwaitSchedule("tick", timeout, "to be at rest", func(s *v1alpha1.ScheduledJob) bool {
		return meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.SuspendedCondition) && len(s.Status.Active) == 0
	})
	harness.Until(t, timeout, "the transcript to have all decisions", func(ctx context.Context) error {
		out, err := u.asks(ctx, "kubectl jobstream replay scheduledjob/tick")
		if err == nil && (!strings.Contains(out, "# ScheduledJob "+u.Namespace+"/tick, UID "+string(s.UID)) || strings.Count(out, "\nCreateJob tick-") < 3 ||
			strings.Count(out, "\nAnnounce Started ") < 3 || !strings.Contains(out, "\ndue 2") || !strings.Contains(out, "\nWriteScheduleStatus @")) {
			err = fmt.Errorf("it lacks decisions:\n%s", out)
		}
		return err
	})
	if out := u.succeeds("kubectl jobstream decisions tick --last=3"); !strings.Contains(out, "\nThe last 3 of ") || !strings.Contains(out, "\nstate: revision ") {
		t.Errorf("its state is not shown")
	}
}
