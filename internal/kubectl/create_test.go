package kubectl

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

// twoLists is a run with lists, which takes three requests.
var twoLists = []string{"run", "fruits", "--image=busybox", "--per-completion-env=FRUIT=apple kiwi", "--per-completion-env=COLOR=red green", "--", "echo", "$(COLOR) $(FRUIT)"}

// TestCreateLists: the Job is suspended until its ConfigMap exists, and owns it.
func TestCreateLists(t *testing.T) {
	w := newWorld(t)
	got := w.call(twoLists...)
	if want := "job.batch/fruits created\nconfigmap/fruits-env-x7k2p created\n"; got.code != 0 || got.out != want {
		t.Fatalf("want %q, got %s", want, got)
	}
	if want := []string{"POST jobs", "POST configmaps", "PATCH jobs/fruits"}; !slices.Equal(w.requests, want) {
		t.Errorf("the requests are %q, want %q", w.requests, want)
	}
	j, lists := w.job("fruits"), w.lists()
	if j.Spec.Suspend == nil || *j.Spec.Suspend || j.Labels[v1alpha1.SuspendedByLabel] != "" || *j.Spec.ManagedBy != v1alpha1.DefaultManagedBy ||
		j.Annotations[v1alpha1.PerCompletionEnvAnnotation] != "fruits-env-x7k2p" {
		t.Errorf("the Job is %+v", j)
	}
	if len(lists) != 1 || !*lists[0].Immutable || lists[0].Data["FRUIT"] != "apple\nkiwi\n" || len(lists[0].OwnerReferences) != 1 || lists[0].OwnerReferences[0].UID != j.UID {
		t.Errorf("the ConfigMaps are %+v", lists)
	}
}

// TestCreateJob: without lists, one request suffices.
func TestCreateJob(t *testing.T) {
	w := newWorld(t)
	got := w.call("run", "plain", "--image=busybox", "-o", "name", "--", "true")
	if got.code != 0 || got.out != "job.batch/plain\n" || !slices.Equal(w.requests, []string{"POST jobs"}) {
		t.Errorf("%q: %s", w.requests, got)
	}
}

// TestServerDryRun: every request is sent, and nothing is stored.
func TestServerDryRun(t *testing.T) {
	w := newWorld(t)
	got := w.call(append([]string{"run", "--dry-run=server"}, twoLists[1:]...)...)
	if want := "job.batch/fruits created (server dry run)\nconfigmap/fruits-env-x7k2p created (server dry run)\n"; got.code != 0 || got.out != want || got.err != "" {
		t.Errorf("want %q, got %s", want, got)
	}
	if w.job("fruits") != nil || len(w.lists()) > 0 {
		t.Error("something is left")
	}
}

// TestKilledBetweenRequests: kill -9 prevents all later requests, including those that would clean up. What is left starts
// nothing unless it is complete, one label finds it, and the deletion of the Job removes it.
func TestKilledBetweenRequests(t *testing.T) {
	for sent := range 4 {
		t.Run(string(rune('0'+sent))+" requests arrive", func(t *testing.T) {
			w := newWorld(t)
			w.fault = func(n int, _ *http.Request) error {
				if n >= sent {
					return errors.New("killed")
				}
				return nil
			}
			w.call(twoLists...)
			j, lists := w.job("fruits"), w.lists()
			if sent == 0 {
				if j != nil || len(lists) > 0 {
					t.Errorf("there is %+v, %+v", j, lists)
				}
				return
			}
			complete := sent == 3
			if *j.Spec.Suspend == complete || (j.Labels[v1alpha1.SuspendedByLabel] == v1alpha1.SuspendedByRun) == complete {
				t.Errorf("the Job is %+v", j)
			}
			if len(lists) != min(sent-1, 1) || len(lists) == 1 && lists[0].OwnerReferences[0].UID != j.UID {
				t.Errorf("the ConfigMaps are %+v", lists)
			}
		})
	}
}

// TestUndo: a user who may create Jobs but no ConfigMaps has no Job afterwards. If the user may not delete the Job either, the
// plugin reports that it is left.
func TestUndo(t *testing.T) {
	for _, tt := range []struct {
		name  string
		verbs []string // on Jobs
		says  []string
		left  bool
	}{
		{"it is deleted again", []string{"create", "delete"}, []string{`cannot create the ConfigMap fruits-env-x7k2p: `, `User "somebot" cannot create resource "configmaps"`, "list your permissions with: kubectl auth can-i --list -n ", "\nthe Job fruits is deleted again\n"}, false},
		{"it cannot be deleted", []string{"create"}, []string{"the Job fruits was created and starts nothing; it could not be deleted again", `cannot delete resource "jobs"`, ": kubectl delete job fruits -n "}, true},
		{"nothing is allowed", []string{"get"}, []string{`cannot create the Job fruits: `, `User "somebot" cannot create resource "jobs"`, "kubectl auth can-i"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.allow("somebot", tt.verbs)
			got := w.call(append([]string{"run", "--as=somebot"}, twoLists[1:]...)...)
			if got.code != ExitFailed || got.out != "" {
				t.Errorf("got %s", got)
			}
			for _, want := range tt.says {
				if !strings.Contains(got.err, want) {
					t.Errorf("it does not say %q: %s", want, got)
				}
			}
			if left := w.job("fruits") != nil; left != tt.left || len(w.lists()) > 0 {
				t.Errorf("the Job is left: %v, and %+v", left, w.lists())
			}
		})
	}
}

// TestOldCluster: an API server that drops spec.managedBy lets its own controller run the Job, without lists. No version that the
// tests can start does that any more, so the test changes the response.
func TestOldCluster(t *testing.T) {
	w := newWorld(t)
	got := call(t, "", twoLists, func(p *tool) {
		w.here(p)
		wrap := p.config.WrapConfigFn
		p.config.WrapConfigFn = func(c *rest.Config) *rest.Config {
			c = wrap(c)
			c.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return roundTrip(func(q *http.Request) (*http.Response, error) {
					r, err := next.RoundTrip(q)
					if err != nil || q.Method != http.MethodPost {
						return r, err
					}
					body, err := io.ReadAll(r.Body)
					r.Body.Close()
					body = bytes.ReplaceAll(body, []byte(`"managedBy":"`+v1alpha1.DefaultManagedBy+`"`), []byte(`"manualSelector":false`))
					r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
					return r, err
				})
			})
			return c
		}
	})
	want := "error: this cluster drops spec.managedBy, and its own controller would run the Job: jobstream needs Kubernetes 1.35 or newer\nthe Job fruits is deleted again\n"
	if got.code != ExitFailed || got.out != "" || got.err != want || w.job("fruits") != nil {
		t.Errorf("want %q, got %s", want, got)
	}
}

// allow grants a user verbs on Jobs in the namespace, and nothing else.
func (w *world) allow(user string, verbs []string) {
	w.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: verbs}}}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}}}
	if _, err := w.RbacV1().Roles(w.ns).Create(w.Context(), role, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	if _, err := w.RbacV1().RoleBindings(w.ns).Create(w.Context(), binding, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	eventually(w, func() string { // the authorizer learns of it a moment later
		got := w.call("run", "probe", "--as="+user, "--image=busybox", "--dry-run=server")
		if slices.Contains(verbs, "create") && got.code != 0 {
			return got.String()
		}
		return ""
	})
}

// TestAnswers: each error of the API server is printed with a remedy.
func TestAnswers(t *testing.T) {
	w := newWorld(t)
	if got := w.call("run", "taken", "--image=busybox"); got.code != 0 {
		t.Fatal(got)
	}
	for _, tt := range []struct {
		name string
		args []string
		says string
	}{
		{"the name is taken", []string{"run", "taken", "--image=busybox"}, "a Job taken exists already in the namespace " + w.ns + ": choose another name, or delete that one first with: kubectl delete job taken -n " + w.ns},
		{"no such namespace", []string{"run", "x", "--image=busybox", "-n", "nowhere"}, `namespaces "nowhere" not found: choose a namespace with -n, or create this one with: kubectl create namespace nowhere`},
		{"unknown credentials", []string{"run", "x", "--image=busybox", "--token=stale"}, "the credentials in the kubeconfig are not accepted: log in again, or choose another context with --context"},
		{"more than the API server allows", []string{"run", "x", "--image=busybox", "--completions=200000", "--parallelism=150000"}, "cannot create the Job x: Job.batch \"x\" is invalid: spec.parallelism"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			change := w.here
			if tt.name == "unknown credentials" {
				change = func(p *tool) { w.here(p); *p.config.KubeConfig = anonymous(t, apiServer(t).Kubeconfig()) }
			}
			if got := call(t, "", tt.args, change); got.code != ExitFailed || got.out != "" || !strings.Contains(got.err, tt.says) {
				t.Errorf("want %q, got %s", tt.says, got)
			}
		})
	}
}

// TestUnknownKind: the API server has no CustomResourceDefinition of ScheduledJobs.
func TestUnknownKind(t *testing.T) {
	got := call(t, "", []string{"run", "x", "--image=busybox", "--run-at=@daily", "--per-completion-env=F=a b", "--kubeconfig=" + bareAPIServer(t).Kubeconfig()})
	want := "error: cannot create the ScheduledJob x: this cluster does not know the kind: ask an administrator to install it with: kubectl apply -k deploy/crd\n"
	if got.code != ExitFailed || got.out != "" || got.err != want {
		t.Errorf("want %q, got %s", want, got)
	}
}

// TestScheduledJobs: the ConfigMap belongs to the ScheduledJob, which is never suspended.
func TestScheduledJobs(t *testing.T) {
	w := newWorld(t)
	args := append([]string{"run", "--run-at=0 14 21 7 *", "--time-zone=Europe/Berlin"}, twoLists[1:]...)
	knowScheduledJobs(t)
	if got, want := w.call(args...), "scheduledjob.jobstream.dev/fruits created\nconfigmap/fruits-env-x7k2p created\n"; got.code != 0 || got.out != want {
		t.Fatalf("want %q, got %s", want, got)
	}
	if want := []string{"POST scheduledjobs", "POST configmaps"}; !slices.Equal(w.requests, want) {
		t.Errorf("the requests are %q, want %q", w.requests, want)
	}
	schedules, err := newScheduledJobs(apiServer(t).RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	all, err := schedules.list(t.Context(), w.ns, metav1.ListOptions{})
	if err != nil || len(all.Items) != 1 {
		t.Fatalf("there are %v, %v", all, err)
	}
	s, lists := all.Items[0], w.lists()
	if s.Spec.Schedule != "0 14 21 7 *" || *s.Spec.TimeZone != "Europe/Berlin" || s.Spec.JobTemplate.Annotations[v1alpha1.PerCompletionEnvAnnotation] != "fruits-env-x7k2p" {
		t.Errorf("it is %+v", s)
	}
	if len(lists) != 1 || lists[0].OwnerReferences[0].UID != s.UID || lists[0].OwnerReferences[0].Kind != v1alpha1.ScheduledJobKind {
		t.Errorf("the ConfigMaps are %+v", lists)
	}
	if got := w.call("run", "fruits", "--image=busybox", "--run-at=@daily"); !strings.Contains(got.err, "a ScheduledJob fruits exists already in the namespace "+w.ns) {
		t.Errorf("got %s", got)
	}
}

// anonymous is the kubeconfig without credentials.
func anonymous(t *testing.T, kubeconfig string) string {
	t.Helper()
	c, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c.AuthInfos = nil
	for _, context := range c.Contexts {
		context.AuthInfo = ""
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*c, path); err != nil {
		t.Fatal(err)
	}
	return path
}
