package kubectl

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

// TestWrongActs is TestWrongCommandLines for commands that act on existing objects. There is no API server here.
func TestWrongActs(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("HOME", t.TempDir())
	for _, tt := range []struct{ name, args, says string }{
		{"nothing to suspend", "suspend", "nothing is named: write NAME, scheduledjob/NAME, job/NAME, -l SELECTOR, or -A for all of the cluster"},
		{"nothing to resume", "resume", "nothing is named: write NAME"},
		{"a table of what was suspended", "suspend x -o wide", "--output=wide is none: write one of json, yaml, name, jsonpath=TEMPLATE, go-template=TEMPLATE"},
		{"another kind", "suspend pod/x", "pod/x: write scheduledjob/NAME or job/NAME"},
		{"a kind without a name", "resume job/", "job/: write scheduledjob/NAME or job/NAME"},
		{"a name and a selector", "suspend pi -l app=shop", "pi: names do not go together with -l and -A: leave one of them out, or write scheduledjobs or jobs"},
		{"a name and all", "resume job/pi -A", "job/pi: names do not go together with -l and -A"},
		{"an unknown dry run", "suspend x --dry-run=client", "--dry-run=client: write none or server"},
		{"to suspend by force", "suspend x --force", "unknown flag: --force"},
		{"nothing to stop", "stop", "nothing is named: write NAME, or -l SELECTOR, as in: stop -l app=shop"},
		{"to stop everything", "stop -A", `-A would end all Jobs of the cluster for good: add -l SELECTOR; "suspend jobs -A" stops all, and "resume" lets them go on`},
		{"to stop another kind", "stop scheduledjob/x", "scheduledjob/x: write job/NAME"},
		{"a name and a selector to stop", "stop pi -l app=shop", "pi: names do not go together with -l and -A: leave one of them out, or write jobs"},
		{"an unknown dry run of a stop", "stop x --dry-run=client", "--dry-run=client: write none or server"},
		{"waiting for a dry run of a stop", "stop x --dry-run=server --wait", "--dry-run=server ends no Job: leave out --wait"},
		{"a timeout of no wait", "stop x --timeout=5s", "--timeout is how long to wait: add --wait"},
		{"a stop in the past", "stop x --wait --timeout=-5s", "--timeout=-5s is in the past: write a time such as 5m"},
		{"nothing to run again", "rerun", "write the name of one Job, as in: rerun JOB"},
		{"two Jobs to run again", "rerun pi e", "write the name of one Job, as in: rerun JOB"},
		{"another kind to run again", "rerun scheduledjob/x", "scheduledjob/x: write job/NAME"},
		{"a name for a new Job that cannot be one", "rerun pi --name=MyJob", `--name: "MyJob" cannot be a name: write small letters, digits and -`},
		{"an unknown dry run of a new Job", "rerun pi --dry-run=yes", "--dry-run=yes is none: write --dry-run=client or --dry-run=server"},
		{"waiting for a dry run of a new Job", "rerun pi --dry-run=server --logs", "--dry-run=server makes no Job to wait for: leave out --wait and --logs"},
		{"a timeout of nothing", "rerun pi --timeout=5s", "--timeout is how long to wait: add --wait or --logs"},
		{"nothing to trigger", "trigger", "write the name of one ScheduledJob, as in: trigger nightly"},
		{"two to trigger", "trigger nightly weekly", "write the name of one ScheduledJob, as in: trigger nightly"},
		{"a Job to trigger", "trigger job/pi", "job/pi: write scheduledjob/NAME"},
		{"a variable without a value", "trigger nightly --env=DAY", `--env="DAY" has no value: write --env=NAME=VALUE`},
		{"a variable twice", "trigger nightly --env=DAY=1 --env=DAY=2", "--env defines the variable DAY twice: leave one of them out"},
		{"waiting for a dry run of a trigger", "trigger nightly --wait --dry-run=client", "--dry-run=client makes no Job to wait for"},
		{"nothing to backfill", "backfill --from=2026-11-01", "write the name of one ScheduledJob, as in: backfill nightly"},
		{"a backfill from nowhere", "backfill nightly", "--from is missing: write when the backfill begins, such as --from=2026-11-01"},
		{"a backfill from no time", "backfill nightly --from=yesterday", `--from="yesterday" is no time: write a day such as 2026-11-01, or 2026-11-01T02:30, which are in the zone of the schedule`},
		{"a backfill to a day that no month has", "backfill nightly --from=2026-02-01 --to=2026-02-30", `--to="2026-02-30" is no time`},
		{"no Job at once", "backfill nightly --from=2026-11-01 --parallelism=0", "--parallelism=0: write how many Jobs run at once, 1 or more"},
		{"an unknown dry run of a backfill", "backfill nightly --from=2026-11-01 --dry-run=yes", "--dry-run=yes is none: write --dry-run=client or --dry-run=server"},
		{"a doctor for one Job", "doctor pi", "pi: doctor looks at the whole namespace: leave the name out; for one object write: kubectl jobstream why pi"},
		{"an unknown output of the doctor", "doctor -o yaml", "--output=yaml: write text or json"},
		{"nothing to explain", "why", "write the name of one Job or ScheduledJob, as in: why JOB; for a whole namespace write: doctor"},
		{"two to explain", "why pi nightly", "write the name of one Job or ScheduledJob, as in: why JOB"},
		{"a Pod to explain", "why pod/pi-x", "pod/pi-x: write scheduledjob/NAME or job/NAME"},
		{"a kind to explain", "why job/", "job/: write scheduledjob/NAME or job/NAME"},
		{"an unknown output of an explanation", "why pi -o wide", "--output=wide is none: write one of json, yaml, jsonpath=TEMPLATE, go-template=TEMPLATE"},
		{"no schedule", "next", `there is nothing to look at: write the name of a ScheduledJob, or --schedule="30 2 * * *"`},
		{"a schedule and a name", "next nightly --schedule=@daily", "a name and --schedule at once"},
		{"a zone and a name", "next nightly --time-zone=Europe/Berlin", "--time-zone belongs to --schedule: leave it out"},
		{"no times", "next nightly --count=0", "--count=0 is none: write 1 to 10000"},
		{"too many times", "next --schedule=@daily --count=10001", "--count=10001 is none: write 1 to 10000"},
		{"-n for a number", "next --schedule=@daily -n 10", "-n is the namespace, and --schedule has none: leave it out; the number of times to show is --count=10"},
		{"another kind's times", "next cronjob/x", "cronjob/x: write scheduledjob/NAME"},
		{"an hour that does not exist", "next --schedule=0_25_*_*_*", `--schedule: hour "25": `},
		{"a day that never comes", "next --schedule=0_0_30_2_*", "--schedule: it is never due, as month 2 has no day 30; write a day that it has"},
		{"a zone in the schedule", "next --schedule=TZ=UTC_0_0_*_*_*", `--schedule: "TZ=UTC" does not belong here; write the zone into --time-zone`},
		{"an unknown zone", "next --schedule=@daily --time-zone=Berlin", `--time-zone: "Berlin" is no time zone: use a name of the IANA database, such as Europe/Berlin`},
		{"H without an object", "next --schedule=H(0-29)/5_2_*_*_*", "H is another number for each ScheduledJob: write the number, or the name of a ScheduledJob"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := strings.Fields(tt.args)
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "_", " ")
			}
			got := call(t, "", args)
			complaint, rest, _ := strings.Cut(got.err, "\n")
			if got.code != ExitUsage || got.out != "" || !strings.HasPrefix(complaint, "error: ") || !strings.Contains(complaint, tt.says) {
				t.Errorf("want exit code %d and %q, got %s", ExitUsage, tt.says, got)
			}
			if !strings.HasPrefix(rest, "See 'kubectl jobstream") || strings.Count(rest, "\n") != 1 {
				t.Errorf("want one line, and then where the help is, got %s", got)
			}
		})
	}
}

// podTemplate is a template that the API server accepts.
var podTemplate = corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "busybox"}}}}

// schedules installs the kind ScheduledJob and returns a client for it.
func (w *world) schedules() scheduledJobs {
	w.Helper()
	knowScheduledJobs(w.T)
	client, err := newScheduledJobs(apiServer(w.T).RESTConfig())
	if err != nil {
		w.Fatal(err)
	}
	return client
}

// newScheduled creates a ScheduledJob.
func (w *world) newScheduled(name string, change func(*v1alpha1.ScheduledJob)) *v1alpha1.ScheduledJob {
	w.Helper()
	s := &v1alpha1.ScheduledJob{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ScheduledJobKind}, ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.ScheduledJobSpec{Schedule: "@yearly", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: podTemplate}}}}
	if change != nil {
		change(s)
	}
	created, err := w.schedules().create(w.Context(), w.ns, s, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return created
}

// newJob creates a Job of jobstream.
func (w *world) newJob(name string, change func(*batchv1.Job)) *batchv1.Job {
	w.Helper()
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{ManagedBy: ptr.To(v1alpha1.DefaultManagedBy), Template: podTemplate}}
	if change != nil {
		change(j)
	}
	created, err := w.BatchV1().Jobs(w.ns).Create(w.Context(), j, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return created
}

// suspended returns the suspended objects of the namespace, Jobs first, each with the value of the label.
func (w *world) suspended() string {
	w.Helper()
	jobs, err := w.BatchV1().Jobs(w.ns).List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	list, err := w.schedules().list(w.Context(), w.ns, metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	var all []string
	add := func(kind string, o metav1.ObjectMeta, suspend *bool) {
		if ptr.Deref(suspend, false) {
			all = append(all, strings.TrimSuffix(kind+"/"+o.Name+":"+o.Labels[v1alpha1.SuspendedByLabel], ":"))
		}
	}
	for _, j := range jobs.Items {
		add("job", j.ObjectMeta, j.Spec.Suspend)
	}
	for _, s := range list.Items {
		add("scheduledjob", s.ObjectMeta, s.Spec.Suspend)
	}
	return strings.Join(all, " ")
}

// TestSuspendAndResume is one user's day: after each command the API server has the expected state.
func TestSuspendAndResume(t *testing.T) {
	w := newWorld(t)
	labels := map[string]string{"app": "shop"}
	w.newScheduled("nightly", func(s *v1alpha1.ScheduledJob) { s.Labels = labels })
	w.newScheduled("once", func(s *v1alpha1.ScheduledJob) {
		s.Spec.Schedule, s.Spec.RunAt = "", &metav1.Time{Time: time.Unix(1e9, 0)}
	})
	w.newJob("nightly", nil)
	w.newJob("pi", func(j *batchv1.Job) { j.Labels = labels })
	w.newJob("done", func(j *batchv1.Job) { j.Labels = labels })
	w.end("done", batchv1.JobFailureTarget, batchv1.JobFailed)
	w.newJob("theirs", func(j *batchv1.Job) { j.Labels, j.Spec.ManagedBy = labels, nil })
	for _, step := range []struct {
		args, out, says, suspended string
		code                       int
	}{
		{"suspend nightly", "scheduledjob.jobstream.dev/nightly suspended\n", "", "scheduledjob/nightly", 0},
		{"suspend nightly", "", "scheduledjob.jobstream.dev/nightly is suspended already\n", "scheduledjob/nightly", 0},
		{"suspend pi", "job.batch/pi suspended\n", "", "job/pi scheduledjob/nightly", 0},
		{"suspend job/nightly --dry-run=server", "job.batch/nightly suspended (server dry run)\n", "", "job/pi scheduledjob/nightly", 0},
		{"suspend jobs/nightly", "job.batch/nightly suspended\n", "", "job/nightly job/pi scheduledjob/nightly", 0},
		{"resume job.batch/nightly schedjob/nightly", "job.batch/nightly resumed\nscheduledjob.jobstream.dev/nightly resumed\n",
			"times that passed while it was suspended are skipped; the next Job starts at 2", "job/pi", 0},
		{"resume nightly", "", "scheduledjob.jobstream.dev/nightly is not suspended\n", "job/pi", 0},
		{"suspend done", "", "job.batch/done has finished: nothing is left to suspend\n", "job/pi", 0},
		{"resume pi nowhere", "", "there is neither a ScheduledJob nor a Job nowhere in the namespace", "job/pi", ExitFailed},
		{"resume job/nowhere", "", "there is no Job nowhere in the namespace", "job/pi", ExitFailed},
		{"resume scheduledjob/pi", "", "there is no ScheduledJob pi in the namespace", "job/pi", ExitFailed},
		{"resume -l app=shop", "job.batch/pi resumed\n", "scheduledjob.jobstream.dev/nightly is not suspended\n", "", 0},
		{"suspend -l app=shop", "scheduledjob.jobstream.dev/nightly suspended\njob.batch/pi suspended\n", "", "job/pi scheduledjob/nightly", 0},
		{"resume jobs -l app=shop", "job.batch/pi resumed\n", "", "scheduledjob/nightly", 0},
		{"suspend -l app=nothing", "", "warning: nothing is selected: ", "scheduledjob/nightly", 0},
		{"suspend theirs", "job.batch/theirs suspended\n", "", "job/theirs scheduledjob/nightly", 0},
		{"suspend once", "scheduledjob.jobstream.dev/once suspended\n", "", "job/theirs scheduledjob/nightly scheduledjob/once", 0},
		{"resume once", "scheduledjob.jobstream.dev/once resumed\n", "makes no more Jobs: times that passed while it was suspended are skipped\n", "job/theirs scheduledjob/nightly", 0},
		{"resume scheduledjobs -A -l app=shop", "scheduledjob.jobstream.dev/nightly in " + w.ns + " resumed\n", "times that passed", "job/theirs", 0},
	} {
		got := w.call(strings.Fields(step.args)...)
		if got.code != step.code || got.out != step.out || !strings.Contains(got.err, step.says) || step.says == "" && got.err != "" {
			t.Errorf("%s: want %q and %q, got %s", step.args, step.out, step.says, got)
		}
		if have := w.suspended(); have != step.suspended {
			t.Fatalf("%s: suspended are %q, want %q", step.args, have, step.suspended)
		}
	}
}

// TestResumeWhatFailuresHavePaused: the reconciler sees an edit, and the spec is what it was.
func TestResumeWhatFailuresHavePaused(t *testing.T) {
	w := newWorld(t)
	s := w.newScheduled("nightly", func(s *v1alpha1.ScheduledJob) { s.Spec.PauseAfterFailures = ptr.To(int32(2)) })
	status := fmt.Sprintf(`{"status":{"consecutiveFailures":2,"observedGeneration":%d}}`, s.Generation)
	if err := w.schedules().rest.Patch(types.MergePatchType).Namespace(w.ns).Resource(v1alpha1.ScheduledJobResource).Name(s.Name).SubResource("status").
		Body([]byte(status)).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	if got := w.call("resume", "nightly"); got.code != 0 || got.out != "scheduledjob.jobstream.dev/nightly resumed\n" || !strings.Contains(got.err, "times that passed while it was suspended are skipped") {
		t.Errorf("got %s", got)
	}
	after, err := w.schedules().get(t.Context(), w.ns, "nightly")
	if err != nil {
		t.Fatal(err)
	}
	if after.Generation == s.Generation || ptr.Deref(after.Spec.Suspend, false) {
		t.Errorf("generation %d after %d, suspend %v", after.Generation, s.Generation, after.Spec.Suspend)
	}
}

// TestResumeWhatOthersSuspended: an object with the label suspended-by resumes only with --force, which removes the label.
func TestResumeWhatOthersSuspended(t *testing.T) {
	w := newWorld(t)
	for _, by := range []string{v1alpha1.SuspendedByDrain, v1alpha1.SuspendedByConvert, "kueue"} {
		w.newScheduled(by, func(s *v1alpha1.ScheduledJob) {
			s.Labels, s.Spec.Suspend = map[string]string{v1alpha1.SuspendedByLabel: by}, ptr.To(true)
		})
	}
	w.newJob("run", func(j *batchv1.Job) {
		j.Labels, j.Spec.Suspend = map[string]string{v1alpha1.SuspendedByLabel: v1alpha1.SuspendedByRun}, ptr.To(true)
	})
	before := w.suspended()
	for name, says := range map[string]string{
		"drain":   "once it is back, --force resumes it",
		"convert": "suspend the CronJob first with: kubectl patch cronjob convert -n " + w.ns,
		"run":     "delete it with: kubectl delete job run -n " + w.ns + ", and run it again",
		"kueue":   "ask its author first",
	} {
		if got := w.call("resume", name); got.code != ExitFailed || got.out != "" || !strings.Contains(got.err, says) || !strings.Contains(got.err, `was suspended by "`+name+`"`) {
			t.Errorf("want %q, got %s", says, got)
		}
	}
	if got := w.call("resume", "scheduledjobs", "-l", v1alpha1.SuspendedByLabel); got.code != ExitFailed || !strings.Contains(got.err, "error: 3 of 3 were not changed") {
		t.Errorf("got %s", got)
	}
	if after := w.suspended(); after != before {
		t.Errorf("suspended are %q, want %q", after, before)
	}
	if got := w.call("resume", "drain", "convert", "run", "kueue", "--force"); got.code != 0 || w.suspended() != "" {
		t.Errorf("still suspended: %q, %s", w.suspended(), got)
	}
	for _, name := range []string{"drain", "convert", "kueue"} {
		s, err := w.schedules().get(t.Context(), w.ns, name)
		if err != nil || s.Labels[v1alpha1.SuspendedByLabel] != "" {
			t.Errorf("%s has the labels %v, %v", name, s.Labels, err)
		}
	}
	if l := w.job("run").Labels[v1alpha1.SuspendedByLabel]; l != "" {
		t.Errorf("the Job has the label %q", l)
	}
}

// TestSuspendNoNamesake: an object that takes over the name between read and patch is left alone.
func TestSuspendNoNamesake(t *testing.T) {
	w := newWorld(t)
	for name, again := range map[string]func(){
		"job/pi": func() {
			if err := w.BatchV1().Jobs(w.ns).Delete(t.Context(), "pi", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}); err != nil {
				t.Fatal(err)
			}
			w.newJob("pi", nil)
		},
		"scheduledjob/nightly": func() {
			s, err := w.schedules().get(t.Context(), w.ns, "nightly")
			if err != nil {
				t.Fatal(err)
			}
			if err := w.schedules().delete(t.Context(), w.ns, "nightly", s.UID); err != nil {
				t.Fatal(err)
			}
			w.newScheduled("nightly", nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "job/pi" {
				w.newJob("pi", nil)
			} else {
				w.newScheduled("nightly", nil)
			}
			w.fault = func(int, *http.Request) error { again(); return nil }
			got := w.call("suspend", name)
			if got.code != ExitFailed || !strings.Contains(got.err, "it has been deleted or created again meanwhile: look at it, and repeat the command\n") || w.suspended() != "" {
				t.Errorf("suspended: %q, %s", w.suspended(), got)
			}
		})
	}
}

// TestSuspendTellsOfJobsThatGoOn: the plugin mentions the Jobs that a suspended ScheduledJob has already created.
func TestSuspendTellsOfJobsThatGoOn(t *testing.T) {
	w := newWorld(t)
	s := w.newScheduled("nightly", nil)
	status := []byte(`{"status":{"active":[{"kind":"Job","name":"nightly-1"},{"kind":"Job","name":"nightly-2"}]}}`)
	if err := w.schedules().rest.Patch("application/merge-patch+json").Namespace(w.ns).Resource(v1alpha1.ScheduledJobResource).Name(s.Name).SubResource("status").Body(status).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	want := "the Jobs it has made go on; suspend them, too, with: kubectl jobstream suspend -n " + w.ns + " job/nightly-1 job/nightly-2\n"
	if got := w.call("suspend", "nightly"); got.code != 0 || got.err != want || !slices.Equal(w.requests, []string{"PATCH scheduledjobs/nightly"}) {
		t.Errorf("%q: %s", w.requests, got)
	}
}

// TestSuspendIsForbidden: a user without the permission learns how to list the permissions.
func TestSuspendIsForbidden(t *testing.T) {
	w := newWorld(t)
	w.newJob("pi", nil)
	w.allow("reader", []string{"get", "create"})
	for args, says := range map[string]string{
		"suspend job/pi --as=reader":        "cannot suspend job.batch/pi: ",
		"suspend pi --as=reader":            "cannot read the ScheduledJob pi: ",
		"resume jobs -l app=x --as=reader":  "cannot list the Jobs: ",
		"next nightly --as=reader":          "cannot read the ScheduledJob nightly: ",
		"resume scheduledjob/x --as=reader": "cannot read the ScheduledJob x: ",
	} {
		if got := w.call(strings.Fields(args)...); got.code != ExitFailed || !strings.Contains(got.err, says) || !strings.Contains(got.err, "list your permissions with: kubectl auth can-i --list -n "+w.ns) {
			t.Errorf("%s: want %q, got %s", args, says, got)
		}
	}
}
