package why

import (
	"testing"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/finding"
)

// TestRefused: the messages are those that Kubernetes 1.36 writes, behind the kind of the effect.
func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		name, reason, message string
		level                 finding.Level
		check, says, advice   string
	}{
		{"quota", "Forbidden", `CreatePod: pods "pi-0-x" is forbidden: exceeded quota: few, requested: pods=1, used: pods=0, limited: pods=0`, finding.Fail, "quota", `the API server refuses to create its Pods (for 10m): pods "pi-0-x" is forbidden`, "kubectl describe quota few -n shop"},
		{"quota that wants requests", "Forbidden", `CreatePod: pods "pi-0-x" is forbidden: failed quota: compute: must specify requests.cpu for: main`, finding.Fail, "quota", "must specify requests.cpu", "the quota compute requires requests or limits: the template of a Job cannot be changed"},
		{"webhook", "Forbidden", `CreatePod: admission webhook "pods.example.com" denied the request: no team label`, finding.Fail, "admission webhook", "no team label", "the owner of the webhook pods.example.com"},
		{"webhook that is away", "InternalError", `CreatePod: Internal error occurred: failed calling webhook "pods.example.com": connection refused`, finding.Fail, "admission webhook", "connection refused", "cannot reach the webhook pods.example.com"},
		{"policy", "Invalid", `CreatePod: pods "pi-0-x" is forbidden: ValidatingAdmissionPolicy 'teams' with binding 'all' denied request: no team label`, finding.Fail, "admission policy", "no team label", "kubectl describe validatingadmissionpolicy teams"},
		{"pod security", "Forbidden", `CreatePod: pods "pi-0-x" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true`, finding.Fail, "pod security", "runAsNonRoot", "the level restricted allows"},
		{"service account", "Forbidden", `CreatePod: pods "pi-0-x" is forbidden: error looking up service account shop/robot: serviceaccount "robot" not found`, finding.Fail, "service account", "robot", "kubectl create serviceaccount robot -n shop"},
		{"priority class", "Forbidden", `CreatePod: pods "pi-0-x" is forbidden: no PriorityClass with name urgent was found`, finding.Fail, "priority class", "urgent", "create urgent"},
		{"limit range", "Forbidden", `CreatePod: pods "pi-0-x" is forbidden: maximum cpu usage per Container is 1, but limit is 2`, finding.Fail, "limit range", "maximum cpu", "kubectl describe limitrange -n shop"},
		{"namespace", "NamespaceTerminating", `CreatePod: pods "pi-0-x" is forbidden: unable to create new content in namespace shop because it is being terminated`, finding.Fail, "namespace", "being terminated", ""},
		{"permissions", "Forbidden", `CreatePod: pods is forbidden: User "system:serviceaccount:jobstream:reconciler" cannot create resource "pods"`, finding.Fail, "permissions", "cannot create", "system:serviceaccount:jobstream:reconciler"},
		{"template", "Invalid", `CreatePod: field spec.containers[0].image: FieldValueRequired`, finding.Fail, "template", "image", "create it again"},
		{"values", "ConfigMapNotFound", `ReadParameters: the ConfigMap nowhere does not exist`, finding.Fail, "values", "it does not go on (for 10m): the ConfigMap nowhere", "create the ConfigMap"},
		{"too few values", "TooFewValues", `ReadParameters: the ConfigMap x has values for 2 completions`, finding.Fail, "values", "for 2 completions", "correct the ConfigMap"},
		{"finalizer", "Forbidden", `RemoveFinalizer pi-0-x: admission webhook "f.example.com" denied the request: no`, finding.Fail, "admission webhook", "refuses to remove jobstream's finalizer of the Pod pi-0-x", ""},
		{"too many Pods", "TooManyPods", "500 Pods wait to be counted, adopted or tried again, more are created and adopted as these settle", finding.Warn, "too many pods", "500 Pods", ""},
		{"too large", "StateTooLarge", "what has to be remembered of this Job's Pods is too large", finding.Fail, "state too large", "too large", "fewer Pods"},
		{"anything else", "Teapot", "DeletePod pi-0-x: short and stout: no", finding.Fail, "refused", "the API server refuses to delete the Pod pi-0-x (for 10m): Teapot: short and stout: no", ""},
		{"without a kind", "Teapot", "short: and stout", finding.Fail, "refused", "the API server refuses it (for 10m): Teapot: short: and stout", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			check(t, seen(says(v1alpha1.RefusedCondition, tt.reason, tt.message)).Explain(), tt.level, tt.check, tt.says, tt.advice)
		})
	}
}
