package clustertest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/jobstream/jobstream/internal/cluster"
	"github.com/jobstream/jobstream/internal/dev/controlplane"
)

var (
	startOnce sync.Once
	shared    *controlplane.ControlPlane
	startErr  error
)

// installTimeout is long enough for an API server that starts again meanwhile.
const installTimeout = 5 * time.Minute

// Main is a TestMain that stops the API server after all tests.
func Main(m *testing.M) {
	code := m.Run()
	if shared != nil {
		if err := shared.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the control plane:", err)
		}
	}
	os.Exit(code)
}

// ControlPlane returns the API server that the tests of this package share, each in a namespace of its own. If its programs are
// not built, it skips the test and prints what to run.
func ControlPlane(t *testing.T) *controlplane.ControlPlane {
	t.Helper()
	if _, err := controlplane.Assets(); err != nil {
		t.Skip("needs a real API server: ", err)
	}
	startOnce.Do(func() {
		shared, startErr = controlplane.Start(context.Background(), controlplane.Config{UnsafeNoFsync: true, GCPercent: controlplane.RareGC,
			APIServerFlags: []string{"--enable-admission-plugins=OwnerReferencesPermissionEnforcement"}}) // some clusters have it
		if startErr == nil {
			ctx, cancel := context.WithTimeout(context.Background(), installTimeout)
			defer cancel()
			startErr = cluster.InstallScheduledJobs(ctx, shared.RESTConfig())
		}
	})
	if startErr != nil {
		t.Fatal(startErr)
	}
	return shared
}

// World is one test's client and namespace, with separate clients for the code under test.
type World struct {
	*testing.T
	kubernetes.Interface
	// NS is the namespace.
	NS string
	// Client and ScheduledJobs are for the code under test; Requests observes their requests.
	Client        kubernetes.Interface
	ScheduledJobs *cluster.ScheduledJobs
	Requests      *Requests
	// Admin is the test's own client of ScheduledJobs, as Interface is of all other kinds: their requests are not counted.
	Admin *cluster.ScheduledJobs
}

// NewWorld creates a namespace for the test.
func NewWorld(t *testing.T) *World {
	t.Helper()
	client, scheduled, seen := Clients(t)
	admin, err := kubernetes.NewForConfig(rest.CopyConfig(ControlPlane(t).RESTConfig()))
	if err != nil {
		t.Fatal(err)
	}
	schedules, err := cluster.NewScheduledJobs(ControlPlane(t).RESTConfig()) // its requests are not counted
	if err != nil {
		t.Fatal(err)
	}
	ns, err := admin.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return &World{T: t, Interface: admin, NS: ns.Name, Requests: seen, Client: client, ScheduledJobs: scheduled, Admin: schedules}
}

// DeployedRules returns the rules of the only ClusterRole in a manifest of deploy/base: all that the program may do in a cluster.
func DeployedRules(t *testing.T, manifest []byte) []rbacv1.PolicyRule {
	t.Helper()
	for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096); ; {
		var role rbacv1.ClusterRole
		if err := d.Decode(&role); err != nil {
			t.Fatalf("no ClusterRole in the manifest: %v", err)
		}
		if role.Kind == "ClusterRole" {
			return role.Rules
		}
	}
}

// As makes clients of a user with exactly these rules.
func (w *World) As(rules []rbacv1.PolicyRule) (kubernetes.Interface, *cluster.ScheduledJobs) {
	w.Helper()
	role, err := w.RbacV1().ClusterRoles().Create(w.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-"}, Rules: rules}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	_, err = w.RbacV1().ClusterRoleBindings().Create(w.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: role.Name}}}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	_, config, err := cluster.NewClient(cluster.ClientConfig{Kubeconfig: ControlPlane(w.T).Kubeconfig()})
	if err != nil {
		w.Fatal(err)
	}
	config.Impersonate = rest.ImpersonationConfig{UserName: role.Name}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		w.Fatal(err)
	}
	schedules, err := cluster.NewScheduledJobs(config)
	if err != nil {
		w.Fatal(err)
	}
	Eventually(w, func() string { // the authorizer learns of roles through a watch
		if _, err := client.BatchV1().Jobs("").List(w.Context(), metav1.ListOptions{Limit: 1}); err != nil {
			return err.Error()
		}
		return ""
	})
	return client, schedules
}
