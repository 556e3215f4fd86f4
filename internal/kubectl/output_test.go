package kubectl

import (
	"encoding/json"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

// shape is the part of the output that a script uses: kind and name of the object, or of each in a list.
func shape(t *testing.T, text string) string {
	t.Helper()
	var o struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
		Items            []struct {
			APIVersion, Kind, Time string
			Metadata               struct{ Name string }
			ScheduledJob           struct{ Name string }
		}
	}
	if err := yaml.Unmarshal([]byte(text), &o); err != nil || o.APIVersion == "" {
		t.Errorf("%v, %s", err, text)
	}
	if o.Kind != "List" {
		return o.Kind + "/" + o.Metadata.Name
	}
	if o.Items == nil {
		t.Errorf("a list without items: %s", text)
	}
	names := []string{}
	for _, i := range o.Items {
		if i.APIVersion == "" || i.Kind == "NominalTime" && i.Time == "" {
			t.Errorf("half an item: %s", text)
		}
		names = append(names, i.Kind+"/"+i.Metadata.Name+i.ScheduledJob.Name)
	}
	return strings.Join(names, " ")
}

// TestOutput: with -o, standard output is for a script: objects with their kinds, and a list if there may be several. A comma
// stands for a blank in a word.
func TestOutput(t *testing.T) {
	w := newWorld(t)
	printed := map[string]string{"app": "printed"}
	w.newScheduled("nightly", func(s *v1alpha1.ScheduledJob) { s.Labels = printed })
	for _, name := range []string{"done", "bad"} {
		w.newJob(name, func(j *batchv1.Job) { j.Labels = printed })
	}
	w.end("done", batchv1.JobSuccessCriteriaMet, batchv1.JobComplete)
	w.end("bad", batchv1.JobFailureTarget, batchv1.JobFailed)
	cron := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "backup"}, Spec: batchv1.CronJobSpec{Schedule: "@daily", TimeZone: ptr.To("UTC"),
		JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: podTemplate}}}}
	if _, err := w.BatchV1().CronJobs(w.ns).Create(t.Context(), cron, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args, want string
		code       int
	}{
		{"run one --image=busybox", "Job/one", 0},
		{"run several --image=busybox --per-completion-env=F=a,b", "Job/several ConfigMap/several-env-x7k2p", 0},
		{"run several --image=busybox --per-completion-env=F=a,b --dry-run=client", "ConfigMap/several-env-x7k2p Job/several", 0},
		{"run later --image=busybox --run-at=@yearly", "ScheduledJob/later", 0},
		{"suspend nightly", "ScheduledJob/nightly", 0},
		{"suspend nightly", "ScheduledJob/nightly", 0},
		{"suspend nightly job/one", "ScheduledJob/nightly Job/one", 0},
		{"resume job/one --dry-run=server", "Job/one", 0},
		{"resume scheduledjobs -l app=printed", "ScheduledJob/nightly", 0},
		{"resume jobs -l app=nothing", "", 0},
		{"stop one", "Job/one", 0},
		{"stop done one", "Job/one", 0},
		{"trigger nightly --dry-run=client", "Job/", 0},
		{"next nightly --count=2", "NominalTime/nightly NominalTime/nightly", 0},
		{"list -l app=printed", "ScheduledJob/nightly", 0},
		{"list -l app=nothing", "", 0},
		{"history nightly", "", 0},
		{"wait done", "Job/done", 0},
		{"wait -l app=printed", "Job/bad Job/done", ExitFailed},
		{"convert backup", "ScheduledJob/backup", 0},
		{"convert --to=CronJob -l app=printed", "CronJob/nightly", 0},
		{"convert -l app=nothing", "", 0},
		{"-l app=printed", "Job/bad Job/done ScheduledJob/nightly", 0},
		{"-l app=nothing", "", 0},
	} {
		args := strings.Fields(tt.args)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], ",", " ")
		}
		got := w.call(append(args, "-o", "json")...)
		if have := shape(t, got.out); got.code != tt.code || !strings.HasPrefix(have, tt.want) || tt.want == "" && have != "" || !json.Valid([]byte(got.out)) {
			t.Errorf("%s: want %q, have %q, got %s", tt.args, tt.want, have, got)
		}
	}
	if got := call(t, "", []string{"next", "--schedule=@daily", "--count=2", "-o", "yaml"}); shape(t, got.out) != "NominalTime/ NominalTime/" || got.err != "" {
		t.Errorf("got %s", got)
	}
	for args, want := range map[string]string{
		"wait done bad -o name":                                "job.batch/bad\njob.batch/done\n",
		"suspend nightly several -o name":                      "scheduledjob.jobstream.dev/nightly\njob.batch/several\n",
		"suspend nightly -o jsonpath={.spec.suspend}":          "true",
		"convert backup -o name":                               "scheduledjob.jobstream.dev/backup\n",
		"next nightly --count=1 -o jsonpath={.items[0].time}":  columns(w.call("next", "nightly", "--count=1").out)[1][1],
		"wait done -o jsonpath={.status.conditions[-1:].type}": "Complete",
	} {
		if got := w.call(strings.Fields(args)...); got.out != want {
			t.Errorf("%s: want %q, got %s", args, want, got)
		}
	}
}
