package script

import (
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/job"
)

// limits are the defaults of Kubernetes, with finished Jobs deleted in time.
func limits() job.Limits {
	l := job.DefaultLimits()
	l.DeleteExpired = true
	return l
}

// edit reads "completions=3 parallelism=2 indexed …": the fields of a Job's spec, and its annotations.
func edit(t *testing.T, d *datadriven.TestData, j *events.Job) {
	t.Helper()
	for _, a := range d.CmdArgs {
		if flag, ok := flags[a.Key]; ok {
			flag(j)
			continue
		}
		if list, ok := lists[a.Key]; ok {
			list(t, d, j, a.Vals)
			continue
		}
		number, ok := numbers[a.Key]
		if !ok {
			d.Fatalf(t, "unknown argument %q", a.Key)
		}
		if a.Vals[0] == "nil" {
			j.Completions = nil
			continue
		}
		number(j, int32(atoi(t, d, a.Vals[0])))
	}
}

var flags = map[string]func(*events.Job){
	"indexed":             func(j *events.Job) { j.Indexed = true },
	"on-failure":          func(j *events.Job) { j.RestartsInPlace = true },
	"replace-failed-only": func(j *events.Job) { j.ReplaceFailedOnly = true },
	"foreign":             func(j *events.Job) { j.Foreign = true },
	"suspended":           func(j *events.Job) { j.Suspended = true },
	"resumed":             func(j *events.Job) { j.Suspended, j.SuspendedBy, j.Queue = false, "", "" },
	"deleting":            func(j *events.Job) { j.Deleting = true },
}

var numbers = map[string]func(*events.Job, int32){
	"completions":       func(j *events.Job, n int32) { j.Completions = &n },
	"parallelism":       func(j *events.Job, n int32) { j.Parallelism = n },
	"backoffLimit":      func(j *events.Job, n int32) { j.BackoffLimit = n },
	"per-index":         func(j *events.Job, n int32) { j.BackoffLimitPerIndex, j.BackoffLimit = &n, 1<<31-1 },
	"maxFailedIndexes":  func(j *events.Job, n int32) { j.MaxFailedIndexes = &n },
	"deadline":          func(j *events.Job, n int32) { j.ActiveDeadlineSeconds = new(int64(n)) },
	"ttl":               func(j *events.Job, n int32) { j.TTLSecondsAfterFinished = &n },
	"backoff-seconds":   func(j *events.Job, n int32) { j.Options.BackoffSeconds = new(int64(n)) },
	"failed-pods-limit": func(j *events.Job, n int32) { j.Options.FailedPodsLimit = new(int(n)) },
	"pending-deadline":  func(j *events.Job, n int32) { j.Options.PendingDeadlineSeconds = new(int64(n)) },
}

var lists = map[string]func(*testing.T, *datadriven.TestData, *events.Job, []string){
	"by":          func(_ *testing.T, _ *datadriven.TestData, j *events.Job, v []string) { j.SuspendedBy = v[0] },
	"queue":       func(_ *testing.T, _ *datadriven.TestData, j *events.Job, v []string) { j.Queue = v[0] },
	"unsupported": func(_ *testing.T, _ *datadriven.TestData, j *events.Job, v []string) { j.Unsupported = v },
	"ignored":     func(_ *testing.T, _ *datadriven.TestData, j *events.Job, v []string) { j.Options.Ignored = v },
	"parameters":  func(_ *testing.T, _ *datadriven.TestData, j *events.Job, v []string) { j.Options.Parameters = v[0] },
	"selector": func(_ *testing.T, _ *datadriven.TestData, j *events.Job, v []string) {
		j.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": v[0]}}
	},
	"on-exit":      onExit,
	"on-condition": onCondition,
	"enough":       enough,
}

// onExit reads "on-exit=(Ignore,3,4)": a rule of the podFailurePolicy for exit codes.
func onExit(t *testing.T, d *datadriven.TestData, j *events.Job, v []string) {
	r := batchv1.PodFailurePolicyRule{Action: batchv1.PodFailurePolicyAction(v[0]),
		OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpIn}}
	for _, code := range v[1:] {
		r.OnExitCodes.Values = append(r.OnExitCodes.Values, int32(atoi(t, d, code)))
	}
	addRule(j, r)
}

// onCondition reads "on-condition=(Ignore,DisruptionTarget)": a rule of the podFailurePolicy for a condition.
func onCondition(_ *testing.T, _ *datadriven.TestData, j *events.Job, v []string) {
	addRule(j, batchv1.PodFailurePolicyRule{Action: batchv1.PodFailurePolicyAction(v[0]),
		OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.PodConditionType(v[1]), Status: corev1.ConditionTrue}}})
}

func addRule(j *events.Job, r batchv1.PodFailurePolicyRule) {
	if j.PodFailurePolicy == nil {
		j.PodFailurePolicy = &batchv1.PodFailurePolicy{}
	}
	j.PodFailurePolicy.Rules = append(j.PodFailurePolicy.Rules, r)
	j.ReplaceFailedOnly = true
}

// enough reads "enough=0-1" or "enough=(0-4,count-3)" or "enough=count-3": a rule of the successPolicy.
func enough(t *testing.T, d *datadriven.TestData, j *events.Job, v []string) {
	var r batchv1.SuccessPolicyRule
	for _, part := range v {
		if n, ok := strings.CutPrefix(part, "count-"); ok {
			r.SucceededCount = new(int32(atoi(t, d, n)))
		} else {
			r.SucceededIndexes = &part
		}
	}
	if j.SuccessPolicy == nil {
		j.SuccessPolicy = &batchv1.SuccessPolicy{}
	}
	j.SuccessPolicy.Rules = append(j.SuccessPolicy.Rules, r)
}

func atoi(t *testing.T, d *datadriven.TestData, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return n
}

func declareFailed(j *events.Job) {
	addCondition(j, batchv1.JobFailureTarget)
	c := &j.Status.Conditions[len(j.Status.Conditions)-1]
	c.Reason, c.Message = "Operator", "stopped by hand"
}

func declareSuspended(j *events.Job) {
	j.Suspended, j.Status.StartTime, j.Status.Active, j.Status.Ready = true, nil, 0, new(int32(0))
	addCondition(j, batchv1.JobSuspended)
}

func addCondition[T ~string](j *events.Job, t T) {
	j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: batchv1.JobConditionType(t), Status: corev1.ConditionTrue})
}
