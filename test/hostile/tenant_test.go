package hostile

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/pod"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// tenant is a user with the rights of Kubernetes' role admin in one namespace, ScheduledJobs included, and without rights
// elsewhere.
type tenant struct {
	testing.TB
	*harness.Space
	kubernetes.Interface
	user    string
	dynamic dynamic.Interface
	made    int
}

func newTenant(t testing.TB, s *harness.System) *tenant {
	t.Helper()
	p := s.Space(t)
	user := "mallory-" + p.Namespace
	bind(t, s.Client, p.Namespace, user)
	config := rest.CopyConfig(s.REST)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	m := &tenant{TB: t, Space: p, Interface: client, user: user, dynamic: objects}
	harness.Until(t, timeout, "the tenant's rights to be in force", func(ctx context.Context) error { // the API server reads them by a watch
		for group, resource := range map[string]string{"": "pods", batchv1.GroupName: "jobs", v1alpha1.GroupVersion.Group: v1alpha1.ScheduledJobResource} {
			may, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: p.Namespace, Verb: "create", Group: group, Resource: resource}}}, metav1.CreateOptions{})
			if err != nil {
				return err
			}
			if !may.Status.Allowed {
				return fmt.Errorf("it may not create %s", resource)
			}
		}
		return nil
	})
	return m
}

// bind gives the user the role admin in the namespace, and the rights that deploy/crd/users-rbac.yaml adds to it.
func bind(t testing.TB, client kubernetes.Interface, namespace, user string) {
	t.Helper()
	file, err := os.Open(filepath.Join(harness.Root, "deploy", "crd", "users-rbac.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	roles := []string{"admin"}
	for d := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		role := &rbacv1.ClusterRole{}
		if err := d.Decode(role); err != nil {
			break
		}
		if role.Kind != "ClusterRole" {
			continue
		}
		roles = append(roles, role.Name)
		if _, err := client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	for _, role := range roles {
		if _, err := client.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "mallory-" + role},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// pod creates a Pod that the trigger takes for one of jobstream's.
func (m *tenant) pod(change ...func(*corev1.Pod)) *corev1.Pod {
	m.Helper()
	m.made++
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("forged-%d", m.made), Labels: map[string]string{v1alpha1.ManagedLabel: "true"}, Annotations: map[string]string{}},
		Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "busybox", Command: []string{"true"}}}},
	}
	for _, c := range change {
		c(p)
	}
	p, err := m.Interface.CoreV1().Pods(m.Namespace).Create(m.Context(), p, metav1.CreateOptions{})
	if err != nil {
		m.Fatalf("the API server rejects it, so it is no attack: %.500v", err)
	}
	m.Cleanup(func() { m.loosen(p.Name) })
	return p
}

// loosen removes the finalizers, so that the namespace can be deleted.
func (m *tenant) loosen(pod string) {
	_, err := m.System.Client.CoreV1().Pods(m.Namespace).Patch(context.Background(), pod, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		m.Logf("remove the finalizers of %s: %v", pod, err)
	}
}

// job creates a Job.
func (m *tenant) job(j *batchv1.Job, change ...func(*batchv1.Job)) *batchv1.Job {
	m.Helper()
	for _, c := range change {
		c(j)
	}
	j, err := m.Interface.BatchV1().Jobs(m.Namespace).Create(m.Context(), j, metav1.CreateOptions{})
	if err != nil {
		m.Fatalf("the API server rejects it, so it is no attack: %.500v", err)
	}
	return j
}

// scheduled creates a ScheduledJob.
func (m *tenant) scheduled(s *v1alpha1.ScheduledJob) error {
	m.Helper()
	s.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ScheduledJobKind}
	o, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s)
	if err != nil {
		m.Fatal(err)
	}
	delete(o, "status")
	_, err = m.dynamic.Resource(v1alpha1.GroupVersion.WithResource(v1alpha1.ScheduledJobResource)).Namespace(m.Namespace).
		Create(m.Context(), &unstructured.Unstructured{Object: o}, metav1.CreateOptions{})
	return err
}

// controlled makes a Job of that name and UID the Pod's controller.
func controlled(name string, uid types.UID) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: name, UID: uid, Controller: ptr.To(true)}}
	}
}

// held adds the finalizer of Jobs to the Pod.
func held(p *corev1.Pod) { p.Finalizers = []string{batchv1.JobTrackingFinalizer} }

// asBuilt makes the Pod what the reconciler would create for that serial of the Job, but for its namespace.
func asBuilt(j *batchv1.Job, serial, index int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		built := pod.Build(j, effect.CreatePod{Job: j.Name, Name: pod.Name(j.Name, j.UID, serial, index), Serial: serial, Index: index}, nil)
		built.Namespace = ""
		built.Spec = p.Spec
		*p = *built
	}
}
