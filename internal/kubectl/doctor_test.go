package kubectl

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/finding"
)

// consult runs doctor, and returns its findings.
func (w *world) consult(code int, args ...string) []finding.Finding {
	w.Helper()
	got := w.call(append([]string{"doctor", "-o", "json"}, args...)...)
	var all []finding.Finding
	if err := json.Unmarshal([]byte(got.out), &all); err != nil || got.code != code || !strings.Contains(got.err, "/jobstream-reconciler doctor\n") {
		w.Fatalf("%v, want exit code %d, got %s", err, code, got)
	}
	return all
}

// about returns the findings about one object or check.
func about(all []finding.Finding, check string) (found []finding.Finding) {
	for _, f := range all {
		if f.Check == check {
			found = append(found, f)
		}
	}
	return found
}

// squeezed returns the table without the blanks between its columns.
func squeezed(table string) string { return regexp.MustCompile(` {2,}`).ReplaceAllString(table, " ") }

// TestDoctor: an administrator runs doctor in a namespace without problems, and in one with some. No jobstream runs here.
func TestDoctor(t *testing.T) {
	w := newWorld(t)
	w.schedules() // the API server serves the kind from here on
	eventually(t, func() string {
		if got := w.call("doctor"); !strings.Contains(got.out, "is served, with every field") {
			return got.String() // the API server publishes its schema a little later
		}
		return ""
	})
	w.requests = nil
	got := w.call("doctor")
	for _, want := range []string{"STATUS CHECK FOUND\n", "\nOK api server v1.", "\nOK scheduledjobs jobstream.dev/v1alpha1 is served, with every field",
		"\nOK jobstream not visible, because the namespace " + w.ns + " has nothing", "you may jobstream alone; run; run --per-completion-env; run --run-at; ", "; rerun; decisions, replay\n",
		"no problem found: 0 Jobs of jobstream and 0 ScheduledJobs in the namespace " + w.ns, "\n\n6 OK, 0 WARN, 0 FAIL\n"} {
		if got.code != 0 || !strings.Contains(squeezed(got.out), want) {
			t.Errorf("it does not say %q: %s", want, got)
		}
	}
	_, may, _ := strings.Cut(got.out, "you may ")
	may, _, _ = strings.Cut(may, "\n")
	for _, c := range newRoot(newTool(genericiooptions.NewTestIOStreamsDiscard()), "kubectl jobstream").Commands() {
		if name := c.Name(); c.IsAvailableCommand() && name != "doctor" && name != "convert" && name != "events" && name != "help" && !strings.Contains(may, name) {
			t.Errorf("doctor lists no permissions for the command %s: %s", name, may)
		}
	}
	if len(w.requests) != 1 { // the review of the rules, which stores nothing
		t.Errorf("the requests are %q", w.requests)
	}

	// A message may try to steer a terminal, and an interrupted command may have left a Job.
	w.newJob("pi", nil)
	j := w.job("pi")
	now := metav1.Now()
	j.Status.StartTime = &now
	j.Status.Conditions = []batchv1.JobCondition{{Type: v1alpha1.RefusedCondition, Status: "True", Reason: "Forbidden", Message: "exceeded\x1b[31m quota", LastTransitionTime: now}}
	if _, err := w.BatchV1().Jobs(w.ns).UpdateStatus(t.Context(), j, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.newScheduled("nightly", func(s *v1alpha1.ScheduledJob) {
		s.Labels, s.Spec.Suspend = map[string]string{v1alpha1.SuspendedByLabel: v1alpha1.SuspendedByDrain}, ptr.To(true)
	})
	got = w.call("doctor", "-A")
	for _, want := range []string{"job/pi in " + w.ns, "jobstream.dev/Refused: Forbidden: exceeded?[31m quota -> correct what rejects its Pods", "scheduledjob/nightly in " + w.ns, "-> if jobstream is installed again: kubectl jobstream resume scheduledjob/nightly -n " + w.ns + " --force"} {
		if got.code != ExitFailed || !strings.Contains(squeezed(got.out), want) || strings.Contains(got.out, "\x1b") {
			t.Errorf("it does not say %q: %s", want, got)
		}
	}
	if f := about(w.consult(ExitFailed), "job/pi"); len(f) != 1 || f[0].Level != finding.Fail {
		t.Errorf("%+v", f)
	}
}

// TestDoctorOfALimitedUser: each missing permission is reported with the command that needs it; a namespace that the user may not
// read at all is a FAIL.
func TestDoctorOfALimitedUser(t *testing.T) {
	w := newWorld(t)
	w.schedules()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "viewer"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"batch", v1alpha1.Group}, Resources: []string{"jobs", "scheduledjobs"}, Verbs: []string{"get", "list", "watch"}}}}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "viewer"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "viewer"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "viewer"}}}
	if _, err := w.RbacV1().Roles(w.ns).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.RbacV1().RoleBindings(w.ns).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	as := []string{"--as=viewer", "--as-group=system:authenticated"}
	eventually(t, func() string { // the authorizer learns of it a moment later
		got := w.call(append([]string{"doctor"}, as...)...)
		for _, want := range []string{"OK permissions in the namespace " + w.ns + " you may jobstream alone; wait, watch, run --wait; next; list; history; why; decisions, replay\n",
			"WARN permissions stop: in the namespace " + w.ns + " you may not patch jobs/status -> ask an administrator for a Role with these permissions, if you want to use the command\n", "0 FAIL\n"} {
			if got.code != 0 || !strings.Contains(squeezed(got.out), want) {
				return want + " in " + got.String()
			}
		}
		return ""
	})
	all := w.consult(ExitFailed, "--as=guest", "--as-group=system:authenticated")
	if f := about(all, "jobs"); len(f) != 1 || f[0].Level != finding.Fail || !strings.Contains(f[0].Found, `cannot list resource "jobs"`) || len(about(all, "permissions")) == 0 || len(about(all, "jobstream")) > 0 {
		t.Errorf("%+v", all)
	}
}

// TestDoctorOfOtherClusters: one cluster is unreachable; another has no ScheduledJobs, which is no problem for a user who needs
// none.
func TestDoctorOfOtherClusters(t *testing.T) {
	away := call(t, "", []string{"doctor", "--server=https://127.0.0.1:1"}, func(p *tool) { *p.config.KubeConfig = apiServer(t).Kubeconfig() })
	if away.code != ExitFailed || !strings.Contains(squeezed(away.out), `FAIL api server cannot be asked at https://127.0.0.1:1: `) || !strings.Contains(squeezed(away.out), `-> try "kubectl version" with the same kubeconfig`) || !strings.Contains(away.err, "error: 1 of 1 checks failed\n") {
		t.Errorf("got %s", away)
	}
	got := call(t, "", []string{"doctor", "--kubeconfig=" + bareAPIServer(t).Kubeconfig()})
	if got.code != 0 || !strings.Contains(squeezed(got.out), "WARN scheduledjobs this cluster has none: Jobs run all the same -> kubectl apply -k deploy/crd") || !strings.Contains(got.out, "5 OK, 1 WARN, 0 FAIL\n") {
		t.Errorf("got %s", got)
	}
}

// TestDoctorSeesThatNothingHappens: a Job that jobstream has not processed within doctor's patience.
func TestDoctorSeesThatNothingHappens(t *testing.T) {
	w := newWorld(t)
	w.newJob("pi", nil)
	for _, tt := range []struct {
		after time.Duration
		want  finding.Level
	}{{0, finding.OK}, {time.Hour, finding.Fail}} {
		late := func(p *tool) { w.here(p); p.now = func() time.Time { return time.Now().Add(tt.after) } }
		got := call(t, "", []string{"doctor", "-o", "json"}, late)
		var all []finding.Finding
		if err := json.Unmarshal([]byte(got.out), &all); err != nil {
			t.Fatal(err, got)
		}
		if f := about(all, "jobstream"); len(f) != 1 || f[0].Level != tt.want || tt.want == finding.Fail && !strings.Contains(f[0].Found, "has not processed job/pi, which has waited for 1h0m") {
			t.Errorf("after %v: %+v", tt.after, f)
		}
	}
}
