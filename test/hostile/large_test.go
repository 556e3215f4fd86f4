package hostile

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// largestMessage is max_payload of the NATS server: no message is larger.
const largestMessage = 8 << 20

// name returns a name as long as the key of a label, or the type of a Pod's condition, may be.
func name(n int) string {
	label := strings.Repeat("n", 62)
	return fmt.Sprintf("a%03d%s.%s.%s.%s/%s", n, label[:57], label, label, label, label)
}

// many calls do n times, eight at once.
func many(n int, do func(int)) {
	numbers := make(chan int)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for n := range numbers {
				do(n)
			}
		})
	}
	for i := range n {
		numbers <- i
	}
	close(numbers)
	all.Wait()
}

// crowd creates Pods that a Job with the selector app=<name> adopts. No node runs them.
func (m *tenant) crowd(app string, n int, change func(*corev1.Pod)) {
	m.Helper()
	many(n, func(i int) {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", app, i), Labels: map[string]string{"app": app}},
			Spec: corev1.PodSpec{NodeSelector: map[string]string{tenantLabel: "no-node"}, RestartPolicy: corev1.RestartPolicyNever,
				Containers: []corev1.Container{{Name: "main", Image: "busybox", Command: []string{"true"}}}},
		}
		change(p)
		if _, err := m.Interface.CoreV1().Pods(m.Namespace).Create(m.Context(), p, metav1.CreateOptions{}); err != nil {
			m.Errorf("the API server rejects it, so it is no attack: %.500v", err)
		}
	})
	if m.Failed() {
		m.FailNow()
	}
}

// patch changes a Pod as the tenant.
func (m *tenant) patch(pod, patch string, subresources ...string) {
	if _, err := m.Interface.CoreV1().Pods(m.Namespace).Patch(m.Context(), pod, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...); err != nil {
		m.Errorf("patch %s: %.500v", pod, err)
	}
}

// relist restarts a trigger, so that it lists the cluster.
func relist(t *testing.T, s *harness.System) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	for _, trigger := range s.Triggers {
		if err := trigger.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := trigger.Start(); err != nil {
			t.Fatal(err)
		}
		if err := harness.Ready(ctx, trigger); err != nil {
			t.Fatal(err)
		}
	}
}

// A tenant makes a Job adopt 230 Pods, each with 120 labels of the greatest length: the list of its Pods exceeds the size of a
// message. It travels in parts, and what only a list can show arrives: Pods that were deleted while no trigger ran.
func TestASnapshotLargerThanAMessage(t *testing.T) {
	const pods, gone, labels = 230, 40, 120
	s := system(t)
	p, m := newPeace(t, s), newTenant(t, s)
	m.crowd("wide", pods, func(p *corev1.Pod) {
		for n := range labels {
			p.Labels[name(n)] = strings.Repeat("v", 63)
		}
	})
	j := m.job(harness.Shell("wide", "true", harness.Size(pods, pods, 0), selecting("wide"), func(s *batchv1.JobSpec) {
		s.Template.Spec.NodeSelector = map[string]string{tenantLabel: "no-node"}
	}))
	m.Await("wide", timeout, "to have adopted all of them", func(j *batchv1.Job) bool { return j.Status.Active == pods })
	tap := s.Tap(t)
	for _, trigger := range s.Triggers {
		if err := trigger.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	many(gone, func(n int) {
		pod := fmt.Sprintf("wide-%d", n)
		m.patch(pod, `{"metadata":{"finalizers":null}}`)
		if err := m.Interface.CoreV1().Pods(m.Namespace).Delete(m.Context(), pod, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
			m.Errorf("delete %s: %v", pod, err)
		}
	})
	if n := len(m.Pods("")); n != pods-gone {
		t.Fatalf("%d Pods exist before the list: this run proves nothing", n)
	}
	relist(t, s)
	harness.Until(t, timeout, "the Job to create Pods for those that are gone", func(context.Context) error {
		if n := len(m.Pods("")); n != pods {
			return fmt.Errorf("%d Pods, want %d", n, pods)
		}
		return nil
	})
	parts, bytes := 0, 0
	subject := fmt.Sprintf("facts.%s.job.%s.%s.%s", harness.ClusterName, events.Token(j.Namespace), events.Token(string(j.UID)), events.TypeJobPartListed)
	for _, sent := range tap.Seen() {
		if sent.Subject == subject {
			parts, bytes = parts+1, bytes+len(sent.Data)
		}
	}
	if t.Logf("the list has %d bytes in %d parts", bytes, parts); bytes <= largestMessage || parts < 2 {
		t.Errorf("the list has only %d bytes in %d parts", bytes, parts)
	}
	p.round(t)
	unharmed(t, s)
}

// A tenant who may also write the status of Pods (one that runs kubelets of its own, say) gives a Job a larger state than any
// message may be: 440 failed Pods, each with 64 conditions of the longest names. The Job reports it and stands still. Other Jobs
// of its partition continue, though its Pods change all the time; and so does the Job, once the Pods are gone.
func TestAStateTooLargeToSave(t *testing.T) {
	t.Parallel() // it waits for a minute
	const pods, conditions = 440, 64
	s := system(t)
	p, m := newPeace(t, s), newTenant(t, s)
	m.mayWritePodStatus()
	m.crowd("bloated", pods, func(*corev1.Pod) {})
	evidence := &strings.Builder{}
	for n := range conditions {
		fmt.Fprintf(evidence, `{"type":%q,"status":"Unknown"},`, name(n))
	}
	status := `{"status":{"phase":"Failed","conditions":[` + strings.TrimSuffix(evidence.String(), ",") + `]}}`
	many(pods, func(n int) { m.patch(fmt.Sprintf("bloated-%d", n), status, "status") })
	j := m.job(harness.Shell("bloated", "true", selecting("bloated")))
	told := m.Await("bloated", timeout, "to report that it is too large", func(j *batchv1.Job) bool {
		c := harness.Condition(j, v1alpha1.RefusedCondition)
		return c != nil && c.Status == corev1.ConditionTrue && c.Reason == effect.StateTooLarge
	})
	t.Log(harness.Brief(told.Status))

	neighbour := p.inPartitionOf(j)
	many(pods, func(n int) { m.patch(fmt.Sprintf("bloated-%d", n), `{"metadata":{"annotations":{"changed":"true"}}}`) })
	if _, err := p.Client.BatchV1().Jobs(p.Namespace).Patch(t.Context(), neighbour.Name, types.MergePatchType, []byte(`{"spec":{"suspend":false}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if end := p.AwaitEnd(neighbour.Name, batchv1.JobComplete, timeout); end.Status.Succeeded != 1 || end.Status.Failed != 0 {
		t.Errorf("the Job of the same partition is %s", harness.Brief(end.Status))
	}
	p.round(t)
	unharmed(t, s)
	const line = "the state is too large to be saved"
	if !strings.Contains(s.Reconcilers[0].Printed()+s.Reconcilers[1].Printed(), line) {
		t.Errorf("no reconciler has logged %q", line)
	}

	if err := m.Interface.CoreV1().Pods(m.Namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}, metav1.ListOptions{LabelSelector: "app=bloated"}); err != nil {
		t.Fatal(err)
	}
	if end := m.AwaitEnd("bloated", batchv1.JobComplete, 3*time.Minute); end.Status.Succeeded != 1 || harness.Is(end, v1alpha1.RefusedCondition) {
		t.Errorf("after its Pods are gone, the Job is %s", harness.Brief(end.Status))
	}
}

// mayWritePodStatus gives the tenant a right that a kubelet has and an administrator of a namespace has not.
func (m *tenant) mayWritePodStatus() {
	m.Helper()
	rbac := m.Client.RbacV1()
	meta := metav1.ObjectMeta{Name: "kubelet"}
	if _, err := rbac.Roles(m.Namespace).Create(m.Context(), &rbacv1.Role{ObjectMeta: meta,
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods/status"}, Verbs: []string{"patch"}}}}, metav1.CreateOptions{}); err != nil {
		m.Fatal(err)
	}
	if _, err := rbac.RoleBindings(m.Namespace).Create(m.Context(), &rbacv1.RoleBinding{ObjectMeta: meta,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: m.user}}}, metav1.CreateOptions{}); err != nil {
		m.Fatal(err)
	}
	harness.Until(m, timeout, "the role to be in force", func(ctx context.Context) error {
		_, err := m.Interface.CoreV1().Pods(m.Namespace).Patch(ctx, "no-pod", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{}, "status")
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// inPartitionOf creates suspended Jobs until one of them is in the partition of the other.
func (p *peace) inPartitionOf(other *batchv1.Job) *batchv1.Job {
	p.Helper()
	partition := func(j *batchv1.Job) int {
		return events.Key{Function: "job", Namespace: j.Namespace, UID: j.UID}.Partition()
	}
	for n := range 32 * events.Partitions {
		j := p.Apply(harness.Shell(fmt.Sprintf("partition-%d", n), "true", harness.Size(1, 1, 0), func(s *batchv1.JobSpec) { s.Suspend = ptr.To(true) }))
		if partition(j) == partition(other) {
			return j
		}
		p.Delete(j.Name)
	}
	p.Fatal("no Job is in that partition")
	return nil
}
