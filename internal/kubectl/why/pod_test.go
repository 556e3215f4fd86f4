package why

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/finding"
)

func scheduled(status corev1.ConditionStatus, reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: status, Reason: reason, Message: message, LastTransitionTime: ago(8 * time.Minute)}}
	}
}

func crashed(p *corev1.Pod) {
	waiting("CrashLoopBackOff", "back-off 5m0s restarting failed container")(p)
	p.Status.Phase = corev1.PodRunning
	p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled", FinishedAt: ago(time.Minute)}
}

// TestPods: what Pods wait for, and which of several reasons comes first.
func TestPods(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change []func(*Job)
		level  finding.Level
		check  string
		says   string
		advice string
	}{
		{"image", []func(*Job){with("a", waiting("ImagePullBackOff", "Back-off pulling image"))}, finding.Fail, "image pull", "the image perl:6 of the container main cannot be pulled: ImagePullBackOff: Back-off pulling image (the Pod pi-a, for 20m)", "kubectl describe pod pi-a -n shop"},
		{"image of many Pods", []func(*Job){with("a", waiting("ErrImagePull", "")), with("b", waiting("ErrImagePull", ""), scheduled("True", "", ""))}, finding.Fail, "image pull", "(2 Pods, pi-a the longest, for 20m)", ""},
		{"image, and a deadline for Pending Pods", []func(*Job){annotated(v1alpha1.PendingDeadlineSecondsAnnotation, "90"), with("a", waiting("ErrImagePull", ""))}, finding.Fail, "image pull", "once it has been Pending for 90 seconds", ""},
		{"image of an init container", []func(*Job){with("a", func(p *corev1.Pod) {
			waiting("ErrImagePull", "")(p)
			p.Status.InitContainerStatuses, p.Status.ContainerStatuses = p.Status.ContainerStatuses, nil
			waiting("PodInitializing", "")(p)
		})}, finding.Fail, "image pull", "", ""},
		{"configuration", []func(*Job){with("a", waiting("CreateContainerConfigError", `secret "x" not found`))}, finding.Fail, "container", `cannot be created: CreateContainerConfigError: secret "x" not found`, "a Secret"},
		{"restarts", []func(*Job){with("a", crashed)}, finding.Fail, "container restarts", "the last time with exit code 137: OOMKilled", "kubectl logs pi-a -n shop -c main --previous"},
		{"volume", []func(*Job){with("a", waiting("ContainerCreating", "")), event("a", "FailedMount", `configmap "x" not found`, time.Second)}, finding.Fail, "container start", `FailedMount: configmap "x" not found`, ""},
		{"volume, long ago", []func(*Job){with("a", waiting("ContainerCreating", "")), event("a", "FailedMount", "", time.Hour)}, finding.Warn, "container start", "the container main has not started: ContainerCreating", ""},
		{"start", []func(*Job){with("a", newborn, waiting("ContainerCreating", ""))}, finding.Warn, "container start", "is being started", "ask again"},
		{"init container that runs", []func(*Job){with("a", func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "fetch", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
			waiting("PodInitializing", "")(p)
		})}, finding.OK, "running", "", ""},
		{"silent kubelet", []func(*Job){with("a", silent)}, finding.Fail, "kubelet", "the kubelet of the node n1 has reported nothing", "kubectl describe node n1"},
		{"no room", []func(*Job){with("a", nowhere, scheduled("False", "Unschedulable", "0/3 nodes are available"))}, finding.Fail, "unschedulable", "Unschedulable: 0/3 nodes are available (the Pod pi-a, for 8m)", "make room"},
		{"gate", []func(*Job){with("a", nowhere, func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "x/y"}} })}, finding.Fail, "scheduling gate", "x/y", ""},
		{"no scheduler", []func(*Job){with("a", nowhere)}, finding.Fail, "scheduler", `spec.schedulerName is "default-scheduler"`, ""},
		{"a moment without a node", []func(*Job){with("a", nowhere, newborn)}, finding.Warn, "scheduling", "waits for the scheduler", ""},
		{"image before room", []func(*Job){with("a", nowhere, scheduled("False", "Unschedulable", "")), with("b", waiting("ErrImagePull", ""))}, finding.Fail, "image pull", "", ""},
		{"room before a retry", []func(*Job){says(v1alpha1.BackingOffCondition, "PodFailed", "the next Pod is created at 2026-11-22T12:00:40Z"), with("a", nowhere, scheduled("False", "Unschedulable", ""))}, finding.Fail, "unschedulable", "", ""},
		{"quota before room", []func(*Job){says(v1alpha1.RefusedCondition, "Forbidden", "CreatePod: exceeded quota: few, requested"), with("a", nowhere, scheduled("False", "Unschedulable", ""))}, finding.Fail, "quota", "", ""},
		{"more reasons than are shown", []func(*Job){with("a", nowhere, scheduled("False", "Unschedulable", "0")), func(j *Job) {
			for i := range 9 {
				with(fmt.Sprint("p", i), nowhere, scheduled("False", "Unschedulable", fmt.Sprint(i+1)))(j)
			}
		}}, finding.Fail, "unschedulable", "", ""},

		{"node that does not end a Pod of a decided Job", []func(*Job){says(batchv1.JobFailureTarget, "BackoffLimitExceeded", ""), with("a", leaves)}, finding.Fail, "node", "the Pod pi-a on n1, for 5m after its grace period", "kubectl delete pod pi-a -n shop --grace-period=0 --force"},
		{"node that holds up the replacement", []func(*Job){func(j *Job) { j.Object.Spec.PodReplacementPolicy = ptr.To(batchv1.Failed) }, with("a", leaves)}, finding.Fail, "node", "n1", ""},
		{"node that holds up nothing", []func(*Job){with("a", leaves), with("b")}, finding.OK, "running", "", ""},
		{"decided, within the grace period", []func(*Job){says(batchv1.JobSuccessCriteriaMet, "CompletionsReached", "enough"), with("a", func(p *corev1.Pod) { at := ago(-time.Minute); p.DeletionTimestamp = &at })}, finding.Warn, "ending", "it has succeeded (CompletionsReached: enough)", ""},

		{"deleted, with a finalizer", []func(*Job){deleting, holding("foregroundDeletion", "example.com/keep"), written("argocd", time.Minute, `{"f:metadata":{"f:finalizers":{"v:\"example.com/keep\"":{}}}}`)}, finding.Fail, "finalizer",
			"the finalizer example.com/keep of another program holds it (set by argocd)", "kubectl edit job.batch pi -n shop"},
		{"deleted, with a Pod that has a finalizer", []func(*Job){deleting, holding("foregroundDeletion"), with("a", leaves, failed, hostage, tracked)}, finding.Fail, "finalizer", "the Pod pi-a", "kubectl edit pod pi-a -n shop"},
		{"deleted, with a Pod that its controller keeps", []func(*Job){deleting, holding("foregroundDeletion"), with("a", leaves, failed, tracked)}, finding.Fail, "controller", "1 Pod is being deleted and not released", "docs/uninstall.md"},
		{"deleted, and its Pods end", []func(*Job){deleting, holding("foregroundDeletion"), with("a")}, finding.Warn, "deletion", "waits for foregroundDeletion", "kubectl get pods -n shop -l batch.kubernetes.io/job-name=pi"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			check(t, seen(tt.change...).Explain(), tt.level, tt.check, tt.says, tt.advice)
		})
	}
}

// Only a Pod whose status does not show what it waits for has Events that are worth a request.
func TestUnexplained(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change []func(*corev1.Pod)
		want   bool
	}{
		{"runs", nil, false},
		{"its containers are created", []func(*corev1.Pod){waiting("ContainerCreating", "")}, true},
		{"its kubelet is silent", []func(*corev1.Pod){silent}, true},
		{"its image", []func(*corev1.Pod){waiting("ErrImagePull", "")}, false},
		{"no node", []func(*corev1.Pod){nowhere}, false},
		{"is being deleted", []func(*corev1.Pod){waiting("ContainerCreating", ""), leaves}, false},
	} {
		if got := Unexplained(seen(with("a", tt.change...)).Pods); (got != "") != tt.want {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}
