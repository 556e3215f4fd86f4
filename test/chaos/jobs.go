package chaos

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

const (
	// plenty is a backoffLimit that the loss of a few nodes does not reach.
	plenty = 1000
	// poison is the exit code that a podFailurePolicy names.
	poison = 42
	// twoFail is the exit rule of Jobs of which two indexes fail for good.
	twoFail = "case $JOB_COMPLETION_INDEX in 3|13) code=1;; esac"
)

// intent is how a Job must end.
type intent struct {
	end    batchv1.JobConditionType
	reason string
	// completions is how many Pods or indexes must have succeeded, -1 if that is open.
	completions int
	// indexes are the status' completedIndexes, "" if that is open.
	indexes string
	// excuses reports whether the loss of a node does not count.
	excuses bool
}

// job returns the Job of the Task, and how it must end.
func (t Task) job(ledger string) (*batchv1.Job, intent) {
	size, rule, want := t.shape()
	j := harness.Shell(t.Name, script(ledger, t.Seconds, rule), size)
	if t.Indexed || t.Sort == Indexes {
		harness.Indexed(&j.Spec)
		if want.completions > 0 && want.indexes == "" {
			want.indexes = allIndexes(want.completions)
		}
	}
	ignoreNodes := batchv1.PodFailurePolicyRule{Action: batchv1.PodFailurePolicyActionIgnore,
		OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}}
	switch t.Sort {
	case Policy:
		j.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{Action: batchv1.PodFailurePolicyActionFailJob,
			OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{poison}}}, ignoreNodes}}
	case Fragile, Indexes:
		j.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{ignoreNodes}}
	}
	want.excuses = j.Spec.PodFailurePolicy != nil
	if t.Sort == Indexes {
		j.Spec.BackoffLimit, j.Spec.BackoffLimitPerIndex = nil, ptr.To[int32](0)
	}
	knows(&j.Spec.Template.Spec.Containers[0])
	return j, want
}

// shape returns what differs from sort to sort.
func (t Task) shape() (size func(*batchv1.JobSpec), rule string, want intent) {
	complete := func(n int) intent { return intent{end: batchv1.JobComplete, completions: n} }
	switch t.Sort {
	case Single:
		return harness.Size(1, 1, plenty), "", complete(1)
	case Large:
		return harness.Size(400, 60, plenty), harness.OneInTwenty, complete(400)
	case Failing:
		return harness.Size(4, 2, 1), "code=1", intent{end: batchv1.JobFailed, reason: batchv1.JobReasonBackoffLimitExceeded}
	case Policy:
		return harness.Size(6, 2, plenty), "code=42", intent{end: batchv1.JobFailed, reason: batchv1.JobReasonPodFailurePolicy}
	case Indexes:
		return harness.Size(20, 10, 0), twoFail, intent{end: batchv1.JobFailed, reason: batchv1.JobReasonFailedIndexes, completions: 18, indexes: "0-2,4-12,14-19"}
	case Fragile:
		return harness.Size(20, 10, 0), "", complete(20)
	case Deleted:
		return harness.Size(20, 10, plenty), "", intent{completions: -1}
	case Paused:
		return harness.Size(20, 10, plenty), "", complete(20)
	default: // Twenty
		return harness.Size(20, 10, plenty), harness.OneInTwenty, complete(20)
	}
}

// schedules are the ScheduledJobs that exist during the whole run.
func schedules(ledger string) []*v1alpha1.ScheduledJob {
	every := func(name, schedule, seconds string, change func(*v1alpha1.ScheduledJobSpec)) *v1alpha1.ScheduledJob {
		return scheduled(name, ledger, seconds, func(s *v1alpha1.ScheduledJobSpec) { s.Schedule = schedule; change(s) })
	}
	return []*v1alpha1.ScheduledJob{
		every("each-second", "* * * * * *", "0.1", func(s *v1alpha1.ScheduledJobSpec) {
			// Without a deadline only the latest 100 are made up for, and a slow machine heals for longer than that.
			s.CatchUp, s.StartingDeadlineSeconds = v1alpha1.CatchUpAll, ptr.To[int64](3600)
		}),
		every("latest-only", "*/3 * * * * *", "0.5", func(s *v1alpha1.ScheduledJobSpec) { s.CatchUp = v1alpha1.CatchUpLatest }),
		every("never-two", "*/2 * * * * *", "3", func(s *v1alpha1.ScheduledJobSpec) { s.ConcurrencyPolicy = v1alpha1.ForbidConcurrent }),
		every(string(Triggered), "0 0 1 1 *", "1", func(s *v1alpha1.ScheduledJobSpec) { s.Suspend = ptr.To(true) }),
	}
}

// periods are the nominal times of the schedules that are not suspended, as multiples of a duration.
var periods = map[string]time.Duration{"each-second": time.Second, "latest-only": 3 * time.Second, "never-two": 2 * time.Second}

// once returns a ScheduledJob with one nominal time.
func once(name, ledger, seconds string, at time.Time) *v1alpha1.ScheduledJob {
	return scheduled(name, ledger, seconds, func(s *v1alpha1.ScheduledJobSpec) { s.Schedule, s.RunAt = "", ptr.To(metav1.NewTime(at)) })
}

func scheduled(name, ledger, seconds string, change func(*v1alpha1.ScheduledJobSpec)) *v1alpha1.ScheduledJob {
	s := harness.Every(name, "", script(ledger, seconds, ""), harness.KeepAll, change)
	s.Spec.JobTemplate.Spec.BackoffLimit = ptr.To[int32](plenty)
	knows(&s.Spec.JobTemplate.Spec.Template.Spec.Containers[0])
	return s
}
