package parity

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	complete = batchv1.JobComplete
	failed   = batchv1.JobFailed
)

// Cases are all cases: first this repository's, by feature, then those of the Kubernetes documentation.
var Cases = []Case{
	{File: "nonindexed.yaml", Shows: "completions and parallelism; conditions of others are kept", steps: addsCondition, ends: complete},
	{File: "indexed.yaml", Shows: "completion indexes: annotation, label, env, hostname", ends: complete},
	{File: "work-queue.yaml", Shows: "no completions: the first success ends the queue", steps: worksOffQueue, ends: complete},
	{File: "parallelism.yaml", Shows: "parallelism changes, 0 included", steps: changesParallelism, ends: complete},
	{File: "completions-zero.yaml", Shows: "completions: 0", ends: complete},
	{File: "elastic.yaml", Shows: "elastic Indexed Job, 10 -> 4 -> 12", steps: scales, ends: complete},
	{File: "elastic-to-zero.yaml", Shows: "elastic Indexed Job, 3 -> 0", steps: scalesToZero, ends: complete},

	{File: "retry.yaml", Shows: "a failed Pod is replaced after a delay", ends: complete},
	{File: "backoff-limit.yaml", Shows: "backoffLimit, restartPolicy Never", ends: failed},
	{File: "backoff-limit-others-run.yaml", Shows: "backoffLimit while other Pods run", steps: goes(3), ends: failed},
	{File: "on-failure.yaml", Shows: "restartPolicy OnFailure", ends: complete},
	{File: "on-failure-backoff-limit.yaml", Shows: "backoffLimit, restartPolicy OnFailure", ends: failed},
	{File: "active-deadline.yaml", Shows: "activeDeadlineSeconds; the end waits for terminating Pods", steps: outlivesDeadline, ends: failed},

	{File: "deadline-shortened.yaml", Shows: "activeDeadlineSeconds is changed", steps: meetsNewDeadline, ends: failed},

	{File: "suspended.yaml", Shows: "created suspended; template changed; resumed", steps: isAdmitted, ends: complete},
	{File: "suspended-empty.yaml", Shows: "suspended with completions: 0", ends: complete},
	{File: "suspend-resume.yaml", Shows: "suspended in the middle of a run; resources changed; resumed", steps: suspendsAndResumes, ends: complete},
	{File: "unschedulable.yaml", Shows: "Pods without a node, suspended, given another nodeSelector", steps: findsNode, ends: complete},

	{File: "failure-policy-fail-job.yaml", Shows: "podFailurePolicy FailJob on an exit code", steps: goes(3), ends: failed},
	{File: "failure-policy-init.yaml", Shows: "podFailurePolicy and an init container", ends: failed},
	{File: "failure-policy-ignore.yaml", Shows: "podFailurePolicy Ignore on an exit code", ends: complete},
	{File: "failure-policy-count.yaml", Shows: "podFailurePolicy Count", ends: failed},
	{File: "failure-policy-fail-index.yaml", Shows: "podFailurePolicy FailIndex", ends: failed},
	{File: "eviction-ignored.yaml", Shows: "eviction under podFailurePolicy Ignore", steps: survivesEviction, ends: complete},
	{File: "eviction-fails-job.yaml", Shows: "eviction under podFailurePolicy FailJob", steps: diesOfEviction, ends: failed},
	{File: "eviction-counted.yaml", Shows: "eviction without a policy", steps: survivesEviction, ends: complete},

	{File: "success-policy-indexes.yaml", Shows: "successPolicy by indexes", steps: goes(3), ends: complete},
	{File: "success-policy-count.yaml", Shows: "successPolicy by count", steps: hasEnough, ends: complete},
	{File: "backoff-limit-per-index.yaml", Shows: "backoffLimitPerIndex, failure counts on Pods", ends: failed},
	{File: "max-failed-indexes.yaml", Shows: "maxFailedIndexes", steps: failsTwoIndexes, ends: failed},
	{File: "per-index-user-deletes.yaml", Shows: "backoffLimitPerIndex and a deleted Pod", steps: losesIndex, ends: complete},
	{File: "per-index-ignored.yaml", Shows: "backoffLimitPerIndex and an ignored failure", ends: complete},
	{File: "success-despite-failed-index.yaml", Shows: "successPolicy with a failed index", steps: succeedsDespite, ends: complete},

	{File: "replace-when-failed.yaml", Shows: "podReplacementPolicy Failed", steps: replacesWhenFailed, ends: complete},
	{File: "replace-when-terminating.yaml", Shows: "podReplacementPolicy TerminatingOrFailed", steps: replacesWhenTerminating, ends: complete},
	{File: "user-deletes-pod.yaml", Shows: "a user deletes Pods", steps: losesPods, ends: complete},
	{File: "condition-by-others.yaml", Name: "condition-by-others.yaml, FailureTarget", Shows: "another controller writes FailureTarget", steps: isToldToEnd(batchv1.JobFailureTarget), ends: failed},
	{File: "condition-by-others.yaml", Name: "condition-by-others.yaml, SuccessCriteriaMet", Shows: "another controller writes SuccessCriteriaMet", steps: isToldToEnd(batchv1.JobSuccessCriteriaMet), ends: complete},

	{File: "manual-selector.yaml", Shows: "manualSelector: adoption and release", prepare: leavesOrphan, steps: adoptsAndReleases, ends: complete},
	{File: "adopted-indexes.yaml", Shows: "adopted Pods without an index of the Job", prepare: leavesIndexes, steps: goes(2), ends: complete},
	{File: "adopted-too-many.yaml", Shows: "more successes than completions", prepare: leavesSucceeded, ends: complete},
	{File: "template.yaml", Shows: "labels, annotations, finalizers, env and hostname of the template", prepare: stripsAtEnd, ends: complete},
	{File: "sidecar.yaml", Shows: "init containers and sidecars", ends: complete},
	{File: "ttl.yaml", Shows: "ttlSecondsAfterFinished", ends: complete, after: goesWithItsPods},
	{File: "deleted.yaml", Name: "deleted.yaml, Background", Shows: "propagation policy Background", steps: isDeleted(metav1.DeletePropagationBackground)},
	{File: "deleted.yaml", Name: "deleted.yaml, Foreground", Shows: "propagation policy Foreground", steps: isDeleted(metav1.DeletePropagationForeground)},
	{File: "deleted.yaml", Name: "deleted.yaml, Orphan", Shows: "propagation policy Orphan", steps: isOrphaned},
	{File: "deleted-and-kept.yaml", Shows: "deleted, and kept by a finalizer", steps: isDeletedAndKept},

	{File: "job-pi.yaml", Documented: true, Shows: "one Pod", needs: [][]string{{"perl", "-Mbignum=bpi", "-e", "1"}}, ends: complete},
	{File: "indexed-job.yaml", Documented: true, Shows: "Indexed Job with an init container", needs: [][]string{bash, {"rev", "--version"}}, ends: complete},
	{File: "job-sidecar.yaml", Documented: true, Shows: "sidecar", needs: [][]string{{"tail", "--version"}}, ends: complete},
	{File: "job-backoff-limit-per-index-example.yaml", Documented: true, Shows: "backoffLimitPerIndex", needs: [][]string{python}, ends: failed},
	{File: "job-backoff-limit-per-index-failindex.yaml", Documented: true, Shows: "FailIndex", needs: [][]string{python}, ends: failed},
	{
		File: "job-pod-failure-policy-failjob.yaml", Documented: true, Shows: "FailJob; one Pod is faster than the other", needs: [][]string{bash},
		prepare: standIn("sleep", drawLots+"[ $rank = 0 ] || exec sleep 600\nexec sleep $1"), ends: failed, within: 2 * time.Minute,
	},
	{
		File: "job-pod-failure-policy-ignore.yaml", Documented: true, Shows: "Ignore; one Pod is evicted", needs: [][]string{bash},
		prepare: aTenth, steps: losesOneOfTwo, ends: complete, within: 10 * time.Minute,
	},
	{
		File: "job-success-policy.yaml", Documented: true, Name: "job-success-policy.yaml, index 2 first", Shows: "successPolicy met", needs: [][]string{python},
		prepare: standIn("python3", atTheGate+"[ $JOB_COMPLETION_INDEX = 2 ] || exec sleep 600\nexec python3 \"$@\""), steps: letsGoWhenAllAreThere(10), ends: complete,
	},
	{
		File: "job-success-policy.yaml", Documented: true, Name: "job-success-policy.yaml, index 2 last", Shows: "successPolicy not met before backoffLimit", needs: [][]string{python},
		prepare: standIn("python3", atTheGate+"case $JOB_COMPLETION_INDEX in 2|8|9) exec sleep 600;; esac\nexec python3 \"$@\""), steps: letsGoWhenAllAreThere(10), ends: failed,
	},
	{
		File: "cronjob.yaml", Documented: true, Shows: "a Job that the CronJob controller makes",
		prepare: standIn("date", "echo some day"), create: byCronJob, ends: complete, within: 3 * time.Minute,
	},
}

var (
	bash   = []string{"bash", "-c", "true"}
	python = []string{"python3", "-c", "pass"}
)
