package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// manifestsOfKubernetes is the folder with manifests of the Kubernetes documentation, beside the repository.
const manifestsOfKubernetes = harness.Root + "/../shared/data/manifests"

// realCronJobs is a text with CronJobs from real users.
type realCronJobs struct {
	name string
	// text reads it; its error names why this machine does not have it.
	text func(*terminal) (string, error)
	// prints is what the Pods of each CronJob print, in the order of their indexes; every CronJob needs an entry.
	prints map[string]*regexp.Regexp
	// fails are the CronJobs whose own command fails, paused those that are suspended, and imageOnly those whose command is that
	// of their image, which cannot run here: for them the test only checks that a Pod is created.
	fails, paused, imageOnly []string
}

// realOnes are CronJobs that others, or their tools, have written; only the stream of Helm is an imitation.
var realOnes = []realCronJobs{
	{name: "the Kubernetes documentation's", text: fromDocumentation, prints: map[string]*regexp.Regexp{
		"hello": regexp.MustCompile(`^\S.*\d\d:\d\d.*\nHello from the Kubernetes cluster$`)}},
	{name: "kubectl's first example", text: kubectlExample(0), imageOnly: []string{"my-job"}, prints: map[string]*regexp.Regexp{"my-job": nil}},
	{name: "kubectl's second example", text: kubectlExample(1), prints: map[string]*regexp.Regexp{"my-job": regexp.MustCompile(`^\S.*\d\d:\d\d.*$`)}},
	{name: "Helm's", text: rendered, fails: []string{"shop-audit"}, paused: []string{"shop-import"}, prints: map[string]*regexp.Regexp{
		"shop-report":  regexp.MustCompile(`^42 orders\nin EUR$`),
		"shop-cleanup": regexp.MustCompile(`^cleaned up$`),
		"shop-invoice": regexp.MustCompile(`^invoices of part 0\ninvoices of part 1\ninvoices of part 2$`),
		"shop-audit":   regexp.MustCompile(`^$`), // its Pod fails
		"shop-import":  regexp.MustCompile(`^imported$`),
	}},
}

// fromDocumentation returns the CronJobs among the documentation's manifests.
func fromDocumentation(*terminal) (string, error) {
	files, err := filepath.Glob(filepath.Join(manifestsOfKubernetes, "*.yaml"))
	if err != nil {
		return "", err
	}
	var all []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		if regexp.MustCompile(`(?m)^kind: CronJob$`).Match(text) {
			all = append(all, strings.TrimRight(string(text), "\n")+"\n")
		}
	}
	if len(all) == 0 {
		return "", fmt.Errorf("no manifest of a CronJob is in %s: the Kubernetes documentation is not beside the checkout", manifestsOfKubernetes)
	}
	return strings.Join(all, "---\n"), nil
}

// kubectlExample returns the output of an example in the help of "kubectl create cronjob".
func kubectlExample(i int) func(*terminal) (string, error) {
	return func(u *terminal) (string, error) {
		lines := regexp.MustCompile(`(?m)^ +(kubectl create cronjob .*)$`).FindAllStringSubmatch(u.succeeds("kubectl create cronjob --help"), -1)
		if len(lines) <= i {
			u.Fatalf("the help of kubectl create cronjob has %d examples", len(lines))
		}
		return u.succeeds(strings.Replace(lines[i][1], "create cronjob", "create cronjob --dry-run=client -o yaml", 1)), nil
	}
}

// rendered is a stream as "helm template" writes it: CronJobs of several styles, other kinds, a hook, an empty document.
func rendered(u *terminal) (string, error) {
	text, err := os.ReadFile("testdata/helm-template.yaml")
	if err != nil {
		u.Fatal(err)
	}
	return string(text), nil
}

// Real CronJobs are converted and applied, run by their own schedules, and are converted back. In the end they differ only in
// what the report names.
func TestRealCronJobsAreConvertedAppliedAndRun(t *testing.T) {
	t.Parallel()
	for _, c := range realOnes {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			u := open(t)
			text, err := c.text(u)
			if err != nil {
				t.Skipf("skipped: %v", err)
			}
			u.write("original.yaml", text)
			converted, report := u.convert("kubectl jobstream convert -f - < original.yaml")
			u.write("converted.yaml", converted)
			c.checkForward(t, text, converted, report)
			back, alsoReport := u.convert("kubectl jobstream convert --to=CronJob -f - < converted.yaml")
			checkSame(t, "the way back", objects(t, text), objects(t, back), append(report, alsoReport...))

			u.write("applied.yaml", beginEarlier(t, converted))
			u.succeeds("kubectl apply -f - < applied.yaml")
			c.checkRuns(t, u, objects(t, text))
			u.checkBackFromTheCluster(t, objects(t, text), report)
		})
	}
}

func (u *terminal) write(file, text string) {
	u.Helper()
	if err := os.WriteFile(filepath.Join(u.dir, file), []byte(text), 0o600); err != nil {
		u.Fatal(err)
	}
}

// everyMinute is due within a minute, so that the test can wait for it.
const everyMinute = "* * * * *"

// beginEarlier adds startAfter, a week ago, to ScheduledJobs that would not be due within a minute, and to no others, as a
// hand-over does with the time of the CronJob's last Job. The latest past time of the object's own schedule, in its own zone, is
// then caught up at once: the test need not wait until tomorrow, nor change a schedule.
func beginEarlier(t *testing.T, converted string) string {
	t.Helper()
	documents := strings.SplitAfter(converted, "\n---\n")
	for i, text := range documents {
		if !strings.Contains(text, "\nkind: "+v1alpha1.ScheduledJobKind+"\n") {
			continue
		}
		for _, o := range objects(t, text) {
			if spec, _ := scheduleOf(o); spec != everyMinute {
				documents[i] = strings.Replace(text, "\nspec:\n", "\nspec:\n  startAfter: "+weekAgo().Format(time.RFC3339)+"\n", 1)
			}
		}
	}
	return strings.Join(documents, "")
}

// weekAgo is early enough for every schedule of the table to have been due since.
func weekAgo() time.Time { return time.Now().AddDate(0, 0, -7).UTC().Truncate(time.Second) }

// scheduleOf returns the schedule and the time zone of a CronJob or a ScheduledJob.
func scheduleOf(o *unstructured.Unstructured) (spec, zone string) {
	spec, _, _ = unstructured.NestedString(o.Object, "spec", "schedule")
	zone, _, _ = unstructured.NestedString(o.Object, "spec", "timeZone")
	if prefix, rest, found := strings.Cut(spec, " "); found && strings.HasPrefix(prefix, "CRON_TZ=") {
		spec, zone = rest, strings.TrimPrefix(prefix, "CRON_TZ=")
	}
	if spec == "*/1 * * * *" {
		spec = everyMinute
	}
	return spec, zone
}

// checkRuns: each has a Job, for the time that the CronJob's own schedule gives, which has ended as its command should.
func (c realCronJobs) checkRuns(t *testing.T, u *terminal, originals []*unstructured.Unstructured) {
	t.Helper()
	for _, o := range originals {
		name := o.GetName()
		switch o.GetKind() {
		case "Job": // a hook, which is not about jobstream
			if j := u.AwaitEnd(name, batchv1.JobComplete, timeout); j.Spec.ManagedBy != nil {
				t.Errorf("Job %s is managed by %s now", name, *j.Spec.ManagedBy)
			}
			continue
		case "CronJob":
		default:
			continue
		}
		if slices.Contains(c.paused, name) {
			u.AwaitSchedule(name, timeout, "to be suspended", func(s *v1alpha1.ScheduledJob) bool {
				return slices.ContainsFunc(s.Status.Conditions, func(c metav1.Condition) bool {
					return c.Type == v1alpha1.SuspendedCondition && c.Status == metav1.ConditionTrue
				})
			})
			u.succeeds("kubectl jobstream resume " + name)
		}
		run := u.firstRun(name)
		checkNominal(t, o, run, u.Scheduled(name).CreationTimestamp.Time)
		ends := batchv1.JobComplete
		switch {
		case slices.Contains(c.imageOnly, name):
			harness.Until(t, timeout, "a Pod of "+run.Name, func(context.Context) error {
				if len(u.Pods(run.Name)) == 0 {
					return errors.New("there is none")
				}
				return nil
			})
			t.Logf("%s: its Pod is created; the command of its image cannot run here", name)
			continue
		case slices.Contains(c.fails, name):
			ends = batchv1.JobFailed
		}
		if got := strings.Join(u.printed(u.AwaitEnd(run.Name, ends, timeout)), "\n"); !c.prints[name].MatchString(got) {
			t.Errorf("the Pods of %s have printed %q, want %s", run.Name, got, c.prints[name])
		}
	}
}

// firstRun waits for the first Job of a ScheduledJob.
func (u *terminal) firstRun(name string) batchv1.Job {
	u.Helper()
	s := u.AwaitSchedule(name, timeout, "to have created a Job", func(s *v1alpha1.ScheduledJob) bool { return s.Status.LastScheduleTime != nil })
	runs := u.Runs(s.UID)
	first := ""
	for nominal := range runs {
		if first == "" || nominal < first {
			first = nominal
		}
	}
	if len(runs[first]) != 1 {
		u.Fatalf("%s has the Jobs %v", name, runs)
	}
	return runs[first][0]
}

// checkNominal: the Job is for the latest time before its creation at which the CronJob would have run, by the library that the
// CronJob controller uses; or for the one before, if it was decided then. since is when the ScheduledJob was created.
func checkNominal(t *testing.T, o *unstructured.Unstructured, run batchv1.Job, since time.Time) {
	t.Helper()
	spec, zone := scheduleOf(o)
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	times, err := cron.ParseStandard(spec)
	if err != nil {
		t.Fatal(err)
	}
	made, latest, before := run.CreationTimestamp.In(location), time.Time{}, time.Time{}
	for at := times.Next(made.AddDate(0, 0, -8)); !at.After(made); at = times.Next(at) {
		latest, before = at, latest
	}
	got := run.Annotations[v1alpha1.NominalTimeAnnotation]
	const everyMinute = "* * * * *" // whose first time comes after the ScheduledJob was created
	decidedBefore := made.Sub(latest) < time.Minute && got == key(before) && (spec != everyMinute || before.After(since))
	if got != key(latest) && !decidedBefore {
		t.Errorf("Job %s, created at %v, is for %s; by %q in %s it is for %v", run.Name, made, got, spec, location, latest.UTC())
	}
}
