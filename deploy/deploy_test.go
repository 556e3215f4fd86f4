package deploy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/jobstream/jobstream/internal/dev/controlplane"
	"github.com/jobstream/jobstream/internal/dev/controlplane/controlplanetest"
)

// kubectl runs kubectl in this folder, and returns its output.
func kubectl(t *testing.T, args ...string) []byte {
	t.Helper()
	dir, err := controlplane.Assets()
	if err != nil {
		t.Skip("needs kubectl: ", err)
	}
	var out, complaint bytes.Buffer
	c := exec.CommandContext(t.Context(), filepath.Join(dir, "kubectl"), args...)
	c.Stdout, c.Stderr = &out, &complaint
	if err := c.Run(); err != nil {
		t.Fatalf("kubectl %q: %v\n%s%s", args, err, out.Bytes(), complaint.Bytes())
	}
	return out.Bytes()
}

// A real API server accepts every object of base. Once they are installed, exactly the requests of jobstream's service accounts
// are in its priority level, which has as many seats as the comment there states.
func TestBaseOnARealAPIServer(t *testing.T) {
	kubectl(t, "version", "--client") // skips the test before anything starts if kubectl is missing
	cp := controlplanetest.Start(t, controlplane.Config{})
	as := "--kubeconfig=" + cp.Kubeconfig()
	kubectl(t, as, "apply", "-f", "namespace.yaml")
	kubectl(t, as, "apply", "-k", "crd")
	kubectl(t, as, "apply", "--server-side", "--dry-run=server", "--validate=strict", "-k", "base")
	kubectl(t, as, "apply", "-k", "base")

	client, err := kubernetes.NewForConfig(cp.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	level, err := client.FlowcontrolV1().PriorityLevelConfigurations().Get(t.Context(), "jobstream", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for user, ours := range map[string]bool{
		"system:serviceaccount:jobstream:jobstream-reconciler": true,
		"system:serviceaccount:jobstream:jobstream-trigger":    true,
		"system:serviceaccount:jobstream:default":              false,
		"system:serviceaccount:shop:jobstream-reconciler":      false,
	} {
		deadline := time.Now().Add(5 * time.Minute) // the API server loads FlowSchemas by a watch
		for (in(t, cp.RESTConfig(), user) == string(level.UID)) != ours {
			if time.Now().After(deadline) {
				t.Errorf("%s: in our priority level: %v, want %v", user, !ours, ours)
				break
			}
		}
	}
	metrics, err := client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := `apiserver_flowcontrol_nominal_limit_seats{priority_level="jobstream"} 85`; !bytes.Contains(metrics, []byte(want)) {
		t.Errorf("the API server does not say %s", want)
	}
}

// in returns the UID of the priority level in which the API server has put a request of the user.
func in(t *testing.T, admin *rest.Config, user string) string {
	t.Helper()
	c := rest.CopyConfig(admin)
	c.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	client, err := rest.HTTPClientFor(c)
	if err != nil {
		t.Fatal(err)
	}
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.Host+"/apis/batch/v1/namespaces/shop/jobs", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.Header.Get("X-Kubernetes-PF-PriorityLevel-UID")
}

// With namespaces only, nothing belongs to the whole cluster, and in each namespace the programs have the rules that base gives
// them everywhere.
func TestNamespaced(t *testing.T) {
	rules := map[string][]rbacv1.PolicyRule{}
	for _, o := range objects[rbacv1.ClusterRole](t, "base") {
		if o.Kind == "ClusterRole" {
			rules[o.Name] = o.Rules
		}
	}
	where := map[string][]string{}
	for _, o := range objects[rbacv1.Role](t, "namespaced") {
		switch o.Kind {
		case "ServiceAccount", "Deployment", "ConfigMap", "Secret", "Service", "NetworkPolicy", "Job", "RoleBinding":
		case "Role":
			where[o.Name] = append(where[o.Name], o.Namespace)
			if !reflect.DeepEqual(o.Rules, rules[o.Name]) {
				t.Errorf("%s in %s has the rules %v, and in base %v", o.Name, o.Namespace, o.Rules, rules[o.Name])
			}
		default:
			t.Errorf("%s %s: does it belong to a namespace?", o.Kind, o.Name)
		}
		if o.Namespace == "" {
			t.Errorf("%s %s belongs to no namespace", o.Kind, o.Name)
		}
	}
	for _, name := range []string{"jobstream-reconciler", "jobstream-trigger"} {
		if want := []string{"lab", "shop"}; !slices.Equal(where[name], want) {
			t.Errorf("%s has roles in %v, want %v", name, where[name], want)
		}
	}
	for _, o := range objects[rbacv1.RoleBinding](t, "namespaced/shop") {
		switch o.Kind {
		case "Role":
		case "RoleBinding":
			if o.RoleRef.Kind != "Role" || len(o.Subjects) != 1 || o.Subjects[0].Namespace != "jobstream" || o.Subjects[0].Name != o.RoleRef.Name {
				t.Errorf("%+v", o)
			}
		default:
			t.Errorf("%s %s is in a namespace of users: add its kind to what namespaced/roles deletes", o.Kind, o.Name)
		}
	}
	settings := objects[corev1.ConfigMap](t, "namespaced")
	if n := slices.IndexFunc(settings, func(c corev1.ConfigMap) bool { return c.Data["JOBSTREAM_NAMESPACES"] == "shop,lab" }); n < 0 {
		t.Error("the programs are not told the namespaces")
	}
}

// objects returns the objects that kustomize builds from a folder, each decoded as a T whatever its kind.
func objects[T any](t *testing.T, folder string) (all []T) {
	t.Helper()
	for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(kubectl(t, "kustomize", folder)), 4096); ; {
		var raw json.RawMessage
		if err := d.Decode(&raw); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		var o T
		if err := json.Unmarshal(raw, &o); err != nil { // of another kind, whose fields have other types
			continue
		}
		all = append(all, o)
	}
}

// Each program's container has a limit of memory, and GOMEMLIMIT is 80 to 90 % of it.
func TestMemory(t *testing.T) {
	programs := 0
	for _, o := range objects[appsv1.Deployment](t, "base") {
		if o.Kind != "Deployment" {
			continue
		}
		programs++
		for _, c := range o.Spec.Template.Spec.Containers {
			limit, request := c.Resources.Limits.Memory().Value(), c.Resources.Requests.Memory().Value()
			var soft int64
			for _, e := range c.Env {
				if e.Name == "GOMEMLIMIT" {
					q, err := resource.ParseQuantity(e.Value[:len(e.Value)-len("B")]) // Go writes MiB where Kubernetes writes Mi
					if err != nil {
						t.Fatal(err)
					}
					soft = q.Value()
				}
			}
			if request == 0 || request > limit || soft < limit*80/100 || soft > limit*90/100 {
				t.Errorf("%s asks for %d bytes, has %d, and GOMEMLIMIT is %d", c.Name, request, limit, soft)
			}
		}
	}
	if programs != 2 {
		t.Errorf("%d Deployments, want 2", programs)
	}
}
