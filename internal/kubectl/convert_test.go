package kubectl

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

func TestWrongConversions(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("HOME", t.TempDir())
	for _, tt := range []struct {
		name, says string
		args       []string
		code       int
	}{
		{"nothing", "there is nothing to convert: write -f FILE, cronjob/NAME, -l SELECTOR, or -A for all", nil, ExitUsage},
		{"an unknown kind to make", "--to=Job: write ScheduledJob or CronJob", []string{"-A", "--to=Job"}, ExitUsage},
		{"a file and a name", "write -f, or names, -l and -A", []string{"-f", "x.yaml", "cronjob/x"}, ExitUsage},
		{"a name and all", "names do not go together with -l and -A", []string{"-A", "cronjob/x"}, ExitUsage},
		{"a file to apply", "pipe the manifests into kubectl apply -f -", []string{"-f", "x.yaml", "--apply", "--suspend-originals"}, ExitUsage},
		{"both running", "would run everything twice: add --suspend-originals", []string{"-A", "--apply"}, ExitUsage},
		{"none running", "would stop everything: add --apply", []string{"-A", "--suspend-originals"}, ExitUsage},
		{"an unknown dry run", "--dry-run=client: write none or server", []string{"-A", "--dry-run=client"}, ExitUsage},
		{"an unknown zone", `--time-zone: "Mars" is no time zone`, []string{"-A", "--time-zone=Mars"}, ExitUsage},
		{"a file that is missing", "open nowhere.yaml: no such file or directory", []string{"-f", "nowhere.yaml"}, ExitFailed},
		{"what is no YAML", "-: document 1: yaml:", []string{"-f", "-"}, ExitFailed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := call(t, "a: [b", append([]string{"convert"}, tt.args...))
			if got.code != tt.code || !strings.Contains(got.err, tt.says) || got.out != "" {
				t.Errorf("want exit code %d and %q, got %s", tt.code, tt.says, got)
			}
		})
	}
}

const minutely = `apiVersion: batch/v1
kind: CronJob
metadata: {name: minutely}
spec: {schedule: "* * * * *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: "true"}]}}}}}
`

func TestConvertManifests(t *testing.T) {
	file := filepath.Join(t.TempDir(), "refused.yaml")
	if err := os.WriteFile(file, []byte(strings.Replace(minutely, "* * * * *", "0 0 30 2 *", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	got := call(t, minutely, []string{"convert", "-f", "-", "--time-zone=Europe/Berlin"})
	if got.code != 0 || !strings.Contains(got.out, "kind: ScheduledJob") || !strings.Contains(got.out, "timeZone: Europe/Berlin") || !strings.Contains(got.err, "CronJob minutely: now a ScheduledJob") {
		t.Errorf("got %s", got)
	}
	if got := call(t, "", []string{"convert", "-f", file}); got.code != ExitFailed || !strings.Contains(got.out, "kind: CronJob") || !strings.Contains(got.err, "1 of 1 cannot be converted") {
		t.Errorf("got %s", got)
	}
	if got := call(t, "kind: Pod\n", []string{"convert", "-f", "-"}); got.code != 0 || got.out != "kind: Pod\n" || !strings.Contains(got.err, "warning: there is nothing to convert to a ScheduledJob") {
		t.Errorf("got %s", got)
	}
}

// A user tries the conversion, validates it with a dry run, hands over, repeats the command, and hands back.
func TestConvertLiveObjects(t *testing.T) {
	w := newWorld(t)
	knowScheduledJobs(t)
	_, err := w.BatchV1().CronJobs(w.ns).Create(t.Context(), &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "minutely"}, Spec: batchv1.CronJobSpec{Schedule: "* * * * *",
		JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{Name: "main", Image: "true"}}}}}}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	suspended := func(want bool) {
		t.Helper()
		live, err := w.BatchV1().CronJobs(w.ns).Get(t.Context(), "minutely", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := ptr.Deref(live.Spec.Suspend, false); got != want {
			t.Errorf("the CronJob's suspend is %v, want %v", got, want)
		}
	}
	for _, step := range []struct {
		args      string
		out, says string
		code      int
		suspended bool
	}{
		{"cronjob/nightly", "", "there is no CronJob nightly in the namespace", ExitFailed, false},
		{"scheduledjob/minutely", "", "to make a ScheduledJob, name a cronjob", ExitUsage, false},
		{"cronjob/minutely", "kind: ScheduledJob", "CronJob " + w.ns + "/minutely: now a ScheduledJob", 0, false},
		{"cj/minutely --apply --dry-run=server", "", "now a ScheduledJob", 0, false},
		{"minutely --apply --suspend-originals --settle=1ms", "has taken over, from ", "CHANGE  spec.timeZone", 0, true},
		{"minutely --apply --suspend-originals --settle=1ms", "has taken over already", "", 0, true},
		{"--to=CronJob scheduledjob/minutely", "kind: CronJob", "now a CronJob", 0, true},
	} {
		got := w.call(append([]string{"convert"}, strings.Fields(step.args)...)...)
		if got.code != step.code || !strings.Contains(got.out, step.out) || !strings.Contains(got.err, step.says) {
			t.Errorf("%s: %s", step.args, got)
		}
		suspended(step.suspended)
	}
	if raw := fmt.Sprint(w.call("convert", "--to=CronJob", "minutely").out); strings.Contains(raw, v1alpha1.ConvertedFromAnnotation) || strings.Contains(raw, v1alpha1.SuspendedByLabel) {
		t.Errorf("what belongs to the object that is stands in the manifest of the next:\n%s", raw)
	}
}
