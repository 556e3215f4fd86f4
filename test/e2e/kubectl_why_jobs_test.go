package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// whyJobs are the situations of a Job. Each has one called pi.
var whyJobs = []situation{
	{"a retry waits", func(u *terminal) {
		j := harness.Shell("pi", "exit 3", harness.Size(1, 1, 5))
		j.Annotations = map[string]string{v1alpha1.BackoffSecondsAnnotation: "600"}
		u.Apply(j)
	}, "pi", "backoff", []string{"the next Pod is created at ", "(in ", "container main, exit code 3", "kubectl jobstream logs pi --failed"}},
	{"quota", func(u *terminal) { setQuota("0")(u.TB.(*testing.T), u.Space); apply("true")(u) }, "job/pi", "quota", []string{"refuses to create its Pods", "exceeded quota: few", "kubectl describe quota few -n "}},
	{"admission policy", func(u *terminal) { u.forbidPods(); apply("true")(u) }, "pi", "admission policy", []string{"no Pods before the audit", "kubectl describe validatingadmissionpolicy e2e-"}},
	{"admission webhook", (*terminal).webhookKeepsFinalizer, "pi", "admission webhook", []string{"refuses to remove jobstream's finalizer of the Pod pi-", "the platform team", "the owner of the webhook finalizers.example.com"}},
	{"pod security", func(u *terminal) {
		u.succeeds("kubectl label namespace " + u.Namespace + " pod-security.kubernetes.io/enforce=restricted")
		apply("true")(u)
	}, "pi", "pod security", []string{"violates PodSecurity", "the level restricted allows"}},
	{"no such priority class", apply("true", pod(func(p *corev1.PodSpec) { p.PriorityClassName = "why-urgent" })), "pi", "priority class", []string{"why-urgent", "kubectl get priorityclasses"}},
	{"invalid template", func(u *terminal) { setLimit(u.TB.(*testing.T), u.Space); apply("true", requestMuch)(u) }, "pi", "template", []string{"resources.requests", "delete the Job, and create it again"}},
	{"no list of values", func(u *terminal) {
		j := harness.Shell("pi", "true", harness.Size(2, 2, 0), harness.Indexed)
		j.Annotations = map[string]string{v1alpha1.PerCompletionEnvAnnotation: "nowhere"}
		u.Apply(j)
	}, "pi", "values", []string{"the ConfigMap nowhere", "create the ConfigMap"}},
	{"image pull", pending(func(p *corev1.Pod) {
		waits(p, "ErrImagePull", `failed to pull and unpack image "busybox:nope": not found`)
	}), "pi", "image pull", []string{"the image busybox of the container main cannot be pulled: ErrImagePull: failed to pull", "2 Pods, pi-", "kubectl describe pod pi-"}},
	{"no such Secret", pending(func(p *corev1.Pod) { waits(p, "CreateContainerConfigError", `secret "token" not found`) }), "pi", "container", []string{`secret "token" not found`, "create what it refers to"}},
	{"volume that is not there", func(u *terminal) {
		pending(func(p *corev1.Pod) { waits(p, "ContainerCreating", "") })(u)
		u.warnAbout(u.Pods("pi")[0], "FailedMount", `MountVolume.SetUp failed for volume "data": configmap "data" not found`)
	}, "pi", "container start", []string{`FailedMount: MountVolume.SetUp failed for volume "data"`}},
	{"crash loop", pending(func(p *corev1.Pod) {
		waits(p, "CrashLoopBackOff", "back-off 5m0s restarting failed container")
		p.Status.Phase = corev1.PodRunning
		p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled", FinishedAt: metav1.Now()}
	}), "pi", "container restarts", []string{"exit code 137: OOMKilled", "kubectl logs pi-", "--previous"}},
	{"unschedulable", unbound(func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, LastTransitionTime: metav1.Now(),
			Message: "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod."}}
	}), "pi", "unschedulable", []string{"Unschedulable: 0/3 nodes are available: 3 Insufficient cpu", "make room or add a node"}},
	{"scheduling gate", apply("true", pod(func(p *corev1.PodSpec) {
		p.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/budget"}}
	})), "pi", "scheduling gate", []string{"example.com/budget"}},
	{"suspended by a user", func(u *terminal) {
		apply("sleep 600")(u)
		u.succeeds(`kubectl patch job pi --type=merge -p '{"spec":{"suspend":true}}'`)
	}, "pi", "suspended", []string{"spec.suspend is true, set by kubectl-patch ", "kubectl jobstream resume job/pi -n "}},
	{"waits in a queue", func(u *terminal) {
		j := harness.Shell("pi", "true", func(s *batchv1.JobSpec) { s.Suspend = ptr.To(true) })
		j.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "gpus"}
		u.Apply(j)
	}, "pi", "queue", []string{"the queue gpus", "has not admitted it", "kubectl describe localqueue gpus"}},
	{"no parallelism", apply("true", harness.Size(1, 0, 0)), "pi", "parallelism", []string{"spec.parallelism is 0", "kubectl patch job pi"}},
	{"as many as parallelism allows", apply("sleep 600", harness.Size(9, 2, 0)), "pi", "parallelism", []string{"2 Pods run, which is as many as spec.parallelism allows"}},
	{"foreign finalizer of the Job", func(u *terminal) {
		j := harness.Shell("pi", "sleep 600")
		j.Finalizers = []string{"example.com/keep"}
		u.Apply(j)
		u.letGo(`kubectl patch job pi --type=merge -p '{"metadata":{"finalizers":null}}'`)
		u.Delete("pi")
	}, "pi", "finalizer", []string{"the finalizer example.com/keep of another program holds it (set by e2e.test)", "kubectl edit job.batch pi"}},
	{"foreign finalizer of a Pod", func(u *terminal) {
		apply("sleep 600", pod(func(p *corev1.PodSpec) { p.TerminationGracePeriodSeconds = ptr.To[int64](1) }))(u)
		u.Await("pi", time.Minute, "to run", func(j *batchv1.Job) bool { return ptr.Deref(j.Status.Ready, 0) == 1 })
		name := u.Pods("pi")[0].Name
		u.succeeds(`kubectl patch pod ` + name + ` --type=json -p '[{"op":"add","path":"/metadata/finalizers/-","value":"example.com/keep"}]'`)
		u.letGo(`kubectl patch pod ` + name + ` --type=merge -p '{"metadata":{"finalizers":null}}'`)
		u.succeeds("kubectl delete job pi --cascade=foreground --wait=false")
	}, "pi", "finalizer", []string{"1 Pod is being deleted, and the finalizer example.com/keep"}},
	{"another controller's", apply("true", func(s *batchv1.JobSpec) { s.ManagedBy = ptr.To("example.com/other") }), "pi", "managed by", []string{`spec.managedBy is "example.com/other"`, "create it again with spec.managedBy: jobstream.dev/reconciler"}},
	{"ended by its backoffLimit", func(u *terminal) {
		apply("exit 3", harness.Size(1, 1, 0))(u)
		u.AwaitEnd("pi", batchv1.JobFailed, timeout)
	},
		"pi", "failed", []string{"BackoffLimitExceeded", "the last failure: Pod pi-", "container main, exit code 3", "kubectl jobstream logs pi --failed", "kubectl jobstream rerun pi"}},
	{"ended because its Pod did not start", func(u *terminal) {
		j := harness.Shell("pi", "true", harness.Size(1, 1, 0), pod(func(p *corev1.PodSpec) { p.SchedulerName = "why" }))
		j.Annotations = map[string]string{v1alpha1.PendingDeadlineSecondsAnnotation: "1"}
		u.Apply(j)
	}, "pi", "failed", []string{"BackoffLimitExceeded", "did not start within 1 s"}},
	{"ended by its deadline", apply("sleep 600", func(s *batchv1.JobSpec) { s.ActiveDeadlineSeconds = ptr.To[int64](1) }), "pi", "deadline exceeded", []string{"DeadlineExceeded", "raise spec.activeDeadlineSeconds"}},
	{"stopped", func(u *terminal) { apply("sleep 600")(u); u.succeeds("kubectl jobstream stop pi --wait") }, "pi", "stopped", []string{"ManuallyTerminated", "kubectl jobstream rerun pi"}},
	{"complete", func(u *terminal) { apply("true")(u); u.AwaitEnd("pi", batchv1.JobComplete, timeout) }, "pi", "complete", []string{"1 succeeded, 0 failed"}},
}

// pod changes the template's spec.
func pod(change func(*corev1.PodSpec)) func(*batchv1.JobSpec) {
	return func(s *batchv1.JobSpec) { change(&s.Template.Spec) }
}

// unbound creates a Job of two Pods for a scheduler that does not run here, and changes their statuses as that would.
func unbound(status func(*corev1.Pod)) func(*terminal) {
	return func(u *terminal) {
		u.Helper()
		apply("true", harness.Size(2, 2, 0), pod(func(p *corev1.PodSpec) { p.SchedulerName = "why" }))(u)
		u.each(status)
	}
}

// pending is unbound for Pods that have a node whose kubelet does not run here, and changes their statuses as that would.
func pending(status func(*corev1.Pod)) func(*terminal) {
	return func(u *terminal) {
		u.Helper()
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "why-" + u.Namespace}, Spec: corev1.NodeSpec{Unschedulable: true}}
		if _, err := u.Client.CoreV1().Nodes().Create(u.Context(), node, metav1.CreateOptions{}); err != nil {
			u.Fatal(err)
		}
		u.letGo("kubectl delete node " + node.Name)
		unbound(func(*corev1.Pod) {})(u)
		for _, p := range u.Pods("pi") {
			bind := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: p.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: node.Name}}
			if err := u.Client.CoreV1().Pods(u.Namespace).Bind(u.Context(), bind, metav1.CreateOptions{}); err != nil {
				u.Fatal(err)
			}
		}
		u.each(status)
	}
}

// each waits for the two Pods, and changes their statuses.
func (u *terminal) each(status func(*corev1.Pod)) {
	u.Helper()
	harness.Until(u, timeout, "two Pods", func(context.Context) error {
		if n := len(u.Pods("pi")); n != 2 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
	for _, p := range u.Pods("pi") {
		harness.Until(u, timeout, "the status of "+p.Name+" to be written", func(ctx context.Context) error {
			now, err := u.Client.CoreV1().Pods(u.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
			if err == nil {
				status(now)
				_, err = u.Client.CoreV1().Pods(u.Namespace).UpdateStatus(ctx, now, metav1.UpdateOptions{})
			}
			return err
		})
	}
}

// waits makes the Pod's container wait for that reason.
func waits(p *corev1.Pod, reason, message string) {
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Image: "busybox",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
}

// warnAbout writes an Event about the Pod, as its kubelet does.
func (u *terminal) warnAbout(p corev1.Pod, reason, message string) {
	u.Helper()
	e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{GenerateName: p.Name + "."}, Type: corev1.EventTypeWarning, Reason: reason, Message: message,
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID}, LastTimestamp: metav1.Now(), Count: 3}
	if _, err := u.Client.CoreV1().Events(u.Namespace).Create(u.Context(), e, metav1.CreateOptions{}); err != nil {
		u.Fatal(err)
	}
}

// letGo enters the line when the test has ended, so that nothing is left.
func (u *terminal) letGo(line string) {
	u.Cleanup(func() {
		if out, err := u.command(context.Background(), line).CombinedOutput(); err != nil {
			u.Errorf("%s: %v: %s", line, err, out)
		}
	})
}

// forbidPods lets a policy of an administrator refuse all Pods of the namespace.
func (u *terminal) forbidPods() {
	u.Helper()
	a := u.Client.AdmissionregistrationV1()
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: u.Namespace}}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: u.Namespace},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: "no Pods before the audit"}},
			MatchConstraints: &admissionregistrationv1.MatchResources{NamespaceSelector: selector, ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}}}}}}
	if _, err := a.ValidatingAdmissionPolicies().Create(u.Context(), policy, metav1.CreateOptions{}); err != nil {
		u.Fatal(err)
	}
	u.letGo("kubectl delete validatingadmissionpolicy " + u.Namespace)
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: u.Namespace},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: u.Namespace, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}}}
	if _, err := a.ValidatingAdmissionPolicyBindings().Create(u.Context(), binding, metav1.CreateOptions{}); err != nil {
		u.Fatal(err)
	}
	u.letGo("kubectl delete validatingadmissionpolicybinding " + u.Namespace)
	harness.Until(u, timeout, "the policy to be in force", func(ctx context.Context) error {
		probe := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}}}
		if _, err := u.Client.CoreV1().Pods(u.Namespace).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err == nil {
			return errors.New("a Pod is allowed")
		}
		return nil
	})
}

// webhookKeepsFinalizer lets a webhook of an administrator refuse that a Pod which has ended loses jobstream's finalizer.
func (u *terminal) webhookKeepsFinalizer() {
	u.Helper()
	gate := u.dir + "/go"
	apply("until [ -e '" + gate + "' ]; do sleep 0.2; done")(u)
	u.Await("pi", time.Minute, "to run", func(j *batchv1.Job) bool { return ptr.Deref(j.Status.Ready, 0) == 1 })
	webhook := u.Webhook("finalizers.example.com")
	webhook.Forbid(func(old, now *corev1.Pod) string {
		if slices.Contains(old.Finalizers, batchv1.JobTrackingFinalizer) && !slices.Contains(now.Finalizers, batchv1.JobTrackingFinalizer) {
			return "finalizers belong to the platform team"
		}
		return ""
	})
	webhook.AwaitForce(u, u.Space, u.Pods("pi")[0].Name)
	u.succeeds("touch " + gate)
}
