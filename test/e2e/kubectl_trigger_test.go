package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

// verdictsOfUsers returns the verdicts in the status on Jobs that users have started, by Job.
func verdictsOfUsers(s *v1alpha1.ScheduledJob) map[string]string {
	out := map[string]string{}
	for _, v := range s.Status.Recent {
		if v.Reason == events.ReasonManual || v.Reason == events.ReasonBackfill {
			out[v.JobName] = v.Verdict + " (" + v.Reason + ")"
		}
	}
	return out
}

// schedule applies a ScheduledJob whose Pods print which run they are.
func (u *terminal) schedule(name, spec, command string) {
	u.Helper()
	manifest := fmt.Sprintf(`
apiVersion: jobstream.dev/v1alpha1
kind: ScheduledJob
metadata: {name: %s}
spec:
  %s
  jobTemplate:
    spec:
      backoffLimit: 0
      template:
        spec:
          restartPolicy: Never
          containers:
          - name: main
            image: busybox
            env:
            - {name: RUN, valueFrom: {fieldRef: {fieldPath: "metadata.annotations['jobstream.dev/nominal-time']"}}}
            - {name: DAY, value: any}
            command: [sh, -c, %q]
`, name, spec, command)
	if err := os.WriteFile(filepath.Join(u.dir, name+".yaml"), []byte(manifest), 0o600); err != nil {
		u.Fatal(err)
	}
	u.succeeds("kubectl apply -f " + name + ".yaml")
	u.AwaitSchedule(name, timeout, "to be taken up", func(s *v1alpha1.ScheduledJob) bool { return s.Status.DecidedUntil != nil })
}

// A user runs a schedule now: each example of the help, word for word. The Job has a verdict of its own and is counted, while no
// nominal time is.
func TestKubectlTrigger(t *testing.T) {
	t.Parallel()
	u := open(t)
	u.schedule("nightly", `schedule: "0 0 1 1 *"`, "echo $DAY at $RUN")
	_, examples, _ := strings.Cut(u.succeeds("kubectl jobstream trigger --help"), "\nExamples:\n")
	examples, _, _ = strings.Cut(examples, "\nFlags:\n")
	jobs := map[string]bool{}
	for line := range strings.Lines(examples) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "kubectl ") {
			continue
		}
		out := u.succeeds(line)
		switch {
		case strings.Contains(line, "--dry-run"):
			if !hasAll(out, []string{"kind: Job", "cronjob.kubernetes.io/instantiate: manual", "name: nightly-"}) {
				t.Errorf("it has printed\n%s", out)
			}
			continue
		case strings.Contains(line, "--logs"):
			if want := regexp.MustCompile(`(?m)^2026-11-01 at 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$`); !want.MatchString(out) {
				t.Errorf("it has printed\n%s", out)
			}
		}
		jobs[created.FindStringSubmatch(out)[2]] = true
	}
	s := u.AwaitSchedule("nightly", timeout, "to have counted both", func(s *v1alpha1.ScheduledJob) bool { return s.Status.Successful == 2 })
	told := verdictsOfUsers(s)
	for name := range jobs {
		if told[name] != "Started (Manual)" {
			t.Errorf("the verdict on %s is %q", name, told[name])
		}
	}
	if len(jobs) != 2 || len(told) != 2 || s.Status.Failed+s.Status.Missed != 0 || len(s.Status.Active) != 0 || s.Status.LastScheduleTime != nil {
		t.Errorf("%d Jobs, and the status is %+v", len(jobs), s.Status)
	}
}

// A user backfills an hour of nominal times from before the schedule existed: each has one Job, which has its time, one after
// another. The repeated command creates none twice; one that fails prints how to continue, and that line works.
func TestKubectlBackfill(t *testing.T) {
	t.Parallel()
	u := open(t)
	u.schedule("hourly", "schedule: \"0 * 24,25 10 *\"\n  timeZone: Europe/Berlin\n  concurrencyPolicy: Forbid\n  successfulJobsHistoryLimit: 20",
		`echo $RUN >>`+u.dir+`/runs; test "$RUN" != 2026-10-24T23:00:00Z || test -e `+u.dir+`/mended`)
	list := u.succeeds("kubectl jobstream backfill hourly --from=2026-10-24T22:00 --to=2026-10-25T02:30 --dry-run")
	// The clock shows 02:00 twice that night, and the schedule follows it.
	for _, at := range []string{"2026-10-24T22:00:00+02:00", "2026-10-24T23:00:00+02:00", "2026-10-25T00:00:00+02:00", "2026-10-25T01:00:00+02:00", "2026-10-25T02:00:00+02:00"} {
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(at) + ` +hourly-\w+ +unknown +create$`).MatchString(list) {
			t.Errorf("%s is not in the list\n%s", at, list)
		}
	}
	out, errOut, code := u.enter("kubectl jobstream backfill hourly --from=2026-10-24T22:00 --to=2026-10-25T02:30")
	goOn := regexp.MustCompile(`to go on: (kubectl .*)`).FindStringSubmatch(errOut)
	if code != 1 || !strings.Contains(errOut, "3 complete") || goOn == nil {
		t.Fatalf("exit code %d: %s%s", code, out, errOut)
	}
	if err := os.WriteFile(filepath.Join(u.dir, "mended"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errOut, code := u.enter(goOn[1]); code != 0 {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	if _, errOut, code = u.enter("kubectl jobstream backfill hourly --from=2026-10-24T22:00 --to=2026-10-25T02:30"); code != 0 || !strings.Contains(errOut, "0 complete") || !strings.Contains(errOut, "6 had run") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	runs, err := os.ReadFile(filepath.Join(u.dir, "runs"))
	if err != nil {
		t.Fatal(err)
	}
	want := ""
	for at := time.Date(2026, 10, 24, 20, 0, 0, 0, time.UTC); !at.After(time.Date(2026, 10, 25, 1, 0, 0, 0, time.UTC)); at = at.Add(time.Hour) {
		want += at.Format(time.RFC3339) + "\n"
	}
	if string(runs) != want {
		t.Errorf("the runs are\n%swant\n%s", runs, want)
	}
	n := int64(strings.Count(want, "\n"))
	s := u.AwaitSchedule("hourly", timeout, "to have counted them all", func(s *v1alpha1.ScheduledJob) bool { return s.Status.Successful+s.Status.Failed >= n })
	if told := verdictsOfUsers(s); int64(len(told)) != n || s.Status.Successful != n-1 || s.Status.Failed != 1 || s.Status.Missed != 0 {
		t.Errorf("the verdicts are %v, and the status %+v", told, s.Status)
	}
}
