package cluster_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/deploy"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/cluster"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
	"github.com/jobstream/jobstream/internal/finding"
)

// inspector inspects the shared cluster as a user with exactly these rules.
func inspector(t *testing.T, rules []rbacv1.PolicyRule) cluster.Inspection {
	t.Helper()
	_, admin, err := cluster.NewClient(cluster.ClientConfig{Kubeconfig: clustertest.ControlPlane(t).Kubeconfig()})
	if err != nil {
		t.Fatal(err)
	}
	i := cluster.Inspection{Config: rest.CopyConfig(admin), Roles: [][]byte{deploy.ReconcilerRBAC}, Grant: "apply reconciler-rbac.yaml", Claim: events.Claim{ManagedBy: v1alpha1.DefaultManagedBy}, Now: time.Now}
	if rules != nil {
		rbac, err := kubernetes.NewForConfig(admin)
		if err != nil {
			t.Fatal(err)
		}
		role, err := rbac.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-"}, Rules: rules}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = rbac.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role.Name},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: role.Name}}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		i.Config.Impersonate = rest.ImpersonationConfig{UserName: role.Name, Groups: []string{"system:authenticated"}}
	}
	if i.Client, err = kubernetes.NewForConfig(i.Config); err != nil {
		t.Fatal(err)
	}
	return i
}

func look(t *testing.T, i cluster.Inspection, check string) finding.Finding {
	t.Helper()
	return among(t, i.Findings(t.Context()), check)
}

// among returns the first finding about a subject.
func among(t *testing.T, all []finding.Finding, check string) finding.Finding {
	t.Helper()
	n := slices.IndexFunc(all, func(f finding.Finding) bool { return f.Check == check })
	if n < 0 {
		t.Fatalf("nothing was found about %q: %+v", check, all)
	}
	return all[n]
}

// With the role that is deployed for it, the reconciler finds no fault.
func TestInspectionWithTheDeployedRole(t *testing.T) {
	i := inspector(t, clustertest.DeployedRules(t, deploy.ReconcilerRBAC))
	var all []finding.Finding
	clustertest.Eventually(t, func() string { // the authorizer learns of roles through a watch
		all = i.Findings(t.Context())
		for _, f := range all {
			if f.Level != finding.OK {
				return f.Check + ": " + f.Found
			}
		}
		return ""
	})
	for check, says := range map[string]string{"api server": "v1.36", "clock of the api server": "within", "scheduledjobs": "jobstream.dev/v1alpha1",
		"api permissions": "all are allowed", "built-in controller": "no conflict"} {
		if f := among(t, all, check); !strings.Contains(f.Found, says) {
			t.Errorf("%s does not say %q: %s", check, says, f.Found)
		}
	}
}

// A role of an older version lacks verbs: each is named, and those that only ScheduledJobs need are no failure.
func TestInspectionNamesMissingVerbs(t *testing.T) {
	var rules []rbacv1.PolicyRule
	for _, r := range clustertest.DeployedRules(t, deploy.ReconcilerRBAC) {
		if slices.Contains(r.APIGroups, v1alpha1.GroupVersion.Group) {
			continue
		}
		if slices.Contains(r.Resources, "pods") {
			r.Verbs = slices.DeleteFunc(r.Verbs, func(v string) bool { return v == "delete" })
		}
		rules = append(rules, r)
	}
	i := inspector(t, rules)
	var worst []finding.Finding
	clustertest.Eventually(t, func() string {
		worst = slices.DeleteFunc(i.Findings(t.Context()), func(f finding.Finding) bool { return f.Check != "api permissions" })
		if len(worst) != 2 || strings.Contains(worst[1].Found, "patch pods") {
			return "the role is not in force"
		}
		return ""
	})
	if f := worst[0]; f.Level != finding.Warn || !strings.Contains(f.Found, "update scheduledjobs/status.jobstream.dev") {
		t.Errorf("%+v", f)
	}
	if f := worst[1]; f.Level != finding.Fail || f.Found != "may not delete pods" || !strings.Contains(f.Advice, "reconciler-rbac.yaml") {
		t.Errorf("%+v", f)
	}
}

// A program that does what trigger and reconciler do needs the roles of both: here that of the trigger is missing.
func TestDeniedAreTheVerbsOfAllRoles(t *testing.T) {
	i := inspector(t, clustertest.DeployedRules(t, deploy.ReconcilerRBAC))
	i.Roles = [][]byte{deploy.TriggerRBAC, deploy.ReconcilerRBAC}
	var denied map[finding.Level][]string
	clustertest.Eventually(t, func() string {
		var err error
		if denied, _, err = i.Denied(t.Context()); err != nil || slices.Contains(denied[finding.Fail], "list jobs.batch") { // the first question
			return "the role is not in force"
		}
		return ""
	})
	if fail, warn := denied[finding.Fail], denied[finding.Warn]; !slices.Equal(fail, []string{"watch jobs.batch", "watch pods"}) || !slices.Equal(warn, []string{"watch scheduledjobs.jobstream.dev"}) {
		t.Errorf("%v", denied)
	}
}

// Kubernetes' own controller has just written the status of a claimed Job: two controllers would create its Pods.
func TestInspectionFindsTheBuiltInController(t *testing.T) {
	w := newWorld(t)
	i := inspector(t, nil)
	j, _ := w.CreateJob("rival", func(j *batchv1.Job) { j.Spec.ManagedBy = nil })
	write := func(manager string) {
		t.Helper()
		live, err := w.BatchV1().Jobs(w.NS).Get(t.Context(), j.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if live.Status.StartTime == nil {
			now := metav1.Now()
			live.Status.StartTime = &now
		}
		live.Status.Active++
		if _, err := w.BatchV1().Jobs(w.NS).UpdateStatus(t.Context(), live, metav1.UpdateOptions{FieldManager: manager}); err != nil {
			t.Fatal(err)
		}
	}
	write("jobstream-reconciler")
	i.Claim.Unmanaged = true
	if f := look(t, i, "built-in controller"); f.Level != finding.OK || !strings.Contains(f.Found, "no trace of it") {
		t.Errorf("our own write: %+v", f)
	}
	write("kube-controller-manager")
	if f := look(t, i, "built-in controller"); f.Level != finding.Fail || !strings.Contains(f.Found, w.NS+"/rival") || !strings.Contains(f.Advice, "--controllers=-job-controller,*") {
		t.Errorf("another's: %+v", f)
	}
	i.Claim.Unmanaged = false
	if f := look(t, i, "built-in controller"); f.Level != finding.OK {
		t.Errorf("where it is meant to be: %+v", f)
	}
	i.Claim.Unmanaged, i.Now = true, func() time.Time { return time.Now().Add(time.Hour) }
	if f := look(t, i, "built-in controller"); f.Level != finding.OK {
		t.Errorf("long ago: %+v", f)
	}
}

// API servers that do not meet the requirements.
func TestInspectionOfOtherServers(t *testing.T) {
	ask := func(h http.HandlerFunc) (f []finding.Finding) {
		t.Helper()
		s := httptest.NewServer(h)
		defer s.Close()
		config := &rest.Config{Host: s.URL}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		return cluster.Inspection{Client: client, Config: config, Now: time.Now}.Findings(t.Context())
	}
	page := ask(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) })
	if len(page) != 1 || page[0].Level != finding.Fail || !strings.Contains(page[0].Found, "no API server") {
		t.Errorf("a page: %+v", page)
	}
	old := ask(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/version" {
			w.Header().Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
			_, _ = w.Write([]byte(`{"major":"1","minor":"30","gitVersion":"v1.30.0"}`))
			return
		}
		http.NotFound(w, r)
	})
	if f := among(t, old, "api server"); f.Level != finding.Warn || !strings.Contains(f.Found, "v1.30.0") || !strings.Contains(f.Found, "JobManagedBy") {
		t.Errorf("an old server: %+v", f)
	}
	if f := among(t, old, "clock of the api server"); f.Level != finding.Fail || !strings.Contains(f.Found, "behind the local clock") {
		t.Errorf("an old clock: %+v", f)
	}
	if f := among(t, old, "scheduledjobs"); f.Level != finding.Warn || !strings.Contains(f.Advice, "deploy/crd") {
		t.Errorf("no definition: %+v", f)
	}
}
