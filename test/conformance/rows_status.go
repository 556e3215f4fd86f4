package main

var rowsOfStatus = []row{
	{
		"conditions-failure", "A failing Job gets `FailureTarget` before any finalizer is removed, and `Failed` with the same reason and message when nothing is uncounted and no Pod is terminating; both stay.",
		"IT TestDelayTerminalPhaseCondition; UT TestTrackJobStatusAndRemoveFinalizers; E2E \"should fail to exceed backoffLimit\"",
		all(same("active-deadline", "backoff-limit-others-run"), scripts("backoff_limit"), oracle("TestRules"), worlds),
	},
	{
		"conditions-success", "A succeeding Job gets `SuccessCriteriaMet` (`CompletionsReached`, or `SuccessPolicy`) and then `Complete`, with the same reason and message; `completionTime` comes with `Complete` and never with `Failed`.",
		"IT TestDelayTerminalPhaseCondition, TestSuccessPolicy; UT TestSyncJobComplete, TestEnsureJobConditions",
		all(same("nonindexed", "success-policy-indexes"), scripts("one_pod_succeeds"), oracle("TestRules"), worlds),
	},
	{
		"verdict-recorded", "A decision in the status is final: `SuccessCriteriaMet` never turns into failure, nor `FailureTarget` into success, even if another controller wrote it. If both become true in the same turn, failure wins.",
		"UT TestSyncJobWithJobSuccessPolicy, TestSingleJobFailedCondition",
		all(same("condition-by-others, FailureTarget", "condition-by-others, SuccessCriteriaMet", "success-despite-failed-index"), scripts("failure_declared_by_another_controller"), worlds),
	},
	{
		"reasons", "Reasons and messages of a failure: `PodFailurePolicy`, `BackoffLimitExceeded`, `DeadlineExceeded`, `MaxFailedIndexesExceeded`, `FailedIndexes`.",
		"IT TestJobPodFailurePolicy, TestBackoffLimitPerIndex; UT TestSyncJobPastDeadline",
		same("failure-policy-fail-job", "eviction-fails-job", "backoff-limit", "active-deadline", "max-failed-indexes", "backoff-limit-per-index"),
	},
	{
		"foreign-conditions", "Conditions of unknown types survive every write of the controller.",
		"E2E \"should apply changes to a job status\"",
		all(same("nonindexed"), scripts("conditions_of_others_are_kept"), act("TestWriteJobStatus")),
	},
	{
		"events", "Events `SuccessfulCreate`, `SuccessfulDelete`, `FailedCreate`, `Suspended`, `Resumed`, `Completed`, `TooManySucceededPods` and one by the reason of a failure, with the same texts.",
		"IT TestSuspendJob; UT TestControllerSyncJob",
		all(same("suspend-resume", "elastic", "adopted-too-many", "backoff-limit"), act("TestEventsForPeople"), e2e("TestRefusedPodsAreReportedAndRetried"),
			scripts("too_many_succeeded")),
	},
	{
		"start-time", "`startTime` is set in the first turn of a Job that is not suspended, to the creation of its first Pod if there is one, reset when it is suspended, and set again when it is resumed.",
		"IT TestStartTimeUpdateOnResume, TestMutableSchedulingDirectivesForSuspendedJobs",
		all(same("suspend-resume", "suspended"), scripts("suspend_and_resume", "suspended_job_that_completes_has_started"), job("TestAJobStartsWithItsFirstPod"), worlds),
	},
	{
		"suspend", "A suspended Job gets no Pods; running ones are deleted and not counted; the deadline is paused; condition `Suspended`.",
		"IT TestSuspendJob, TestSuspendJobControllerRestart; E2E \"should not create pods when created in suspend state\", \"should delete pods when suspended\"",
		all(same("suspended", "suspend-resume", "unschedulable"), scripts("suspend_and_resume", "suspended_from_the_start", "active_deadline_pauses_with_the_job"),
			scripts("deleted_pod_counts_though_the_job_is_suspended", "deleted_index_fails_though_the_job_is_suspended", "suspended_job_takes_found_pods_too", "suspended_pod_without_finalizer"), worlds),
	},
	{
		"suspend-empty", "A suspended Job without completions is complete.",
		"IT TestSuspendJobWithZeroCompletions",
		all(same("suspended-empty"), scripts("suspended_job_without_completions_is_complete")),
	},
	{
		"resume", "A resumed Job has `Suspended=False` with the reason `JobResumed`; a Job that was never suspended has no such condition.",
		"IT TestSuspendJob; UT TestEnsureJobConditions",
		all(same("suspended", "suspend-resume"), scripts("suspend_and_resume")),
	},
	{
		"mutable-template", "Changes to the template of a suspended Job (labels, annotations, node selector, tolerations, resources) apply to the Pods after it is resumed.",
		"IT TestNodeSelectorUpdate, TestUpdateJobPodResources, TestMutableSchedulingDirectivesForSuspendedJobsNotYetStarted, TestMutablePodResourcesForSuspendedJobsNotYetStarted, TestMutablePodResourcesWithPodReplacementPolicyFailed",
		all(same("suspended", "suspend-resume", "unschedulable"), act("TestCreatePodFromTheRightTemplate"),
			job("TestPodsAreMadeOfTheNewestTemplate")),
	},
	{
		"counts-of-pods", "`active` has the Pods that exist and have been adopted, `ready` never exceeds it, `terminating` is always set; they change in the write that accompanies a deletion.",
		"UT TestControllerSyncJob \"count ready pods\", \"count terminating pods\"; E2E \"should update the status ready field\"",
		all(same("work-queue", "suspend-resume", "active-deadline", "replace-when-failed"), oracle("TestRules", "TestAnySoundStatus"),
			job("TestEveryStatusHasItsCounts"), worlds),
	},
	{
		"status-rules", "Every write obeys the API server's 25 rules for a status.",
		"VT TestStatusStrategy_ValidateUpdate, TestValidateJobUpdateStatus",
		all(oracle("TestRules", "TestAnySoundStatus"), e2e("TestThousandCompletionsAreCountedExactly/Indexed")),
	},
	{
		"finished", "A finished Job is left alone, except for Pods that are still held.",
		"UT TestSyncOrphanPod \"controlled_by_existing_finished_job\"",
		all(scripts("repeats_change_nothing", "late_news"),
			scripts("finished_job_lets_go_of_pods"), job("TestAFoundPodOfAFinishedJobDoesNotRunOn"), worlds),
	},
	{
		"ttl", "After `ttlSecondsAfterFinished` the Job is deleted, in the foreground. kube-controller-manager does it for jobstream's Jobs, too; if it does not, a flag of the reconciler does.",
		"pkg/controller/ttlafterfinished TestTimeLeft; test/e2e/apps/ttl_after_finished.go",
		all(same("ttl"), scripts("ttl_after_finished"), e2e("TestWeTakeOverFromTheBuiltInController/TimeToLive"), act("TestDeleteJob"),
			scripts("ttl_survives_loss", "ttl_is_set_later"), job("TestAFinishedJobIsRememberedForItsTimeToLive")),
	},
	{
		"managed-by", "Jobs that name another controller in `spec.managedBy` are left alone, and so are their Pods.",
		"IT TestManagedBy, TestManagedBy_RecreatedJob, TestManagedBy_UsingReservedJobFinalizers; UT TestSyncJobWhenManagedBy",
		all(scripts("foreign"), act("TestForeignJobs"), e2e("TestWeTakeOverFromTheBuiltInController/JobOfAnotherController", "TestWeTakeOverFromTheBuiltInController/JobThatNamesTheBuiltInController")),
	},
	{
		"metrics", "Jobs, Pods, indexes and failures are counted by metrics of the same names, labels and values.",
		"IT, in most cases; UT TestRecordFinishedPodWithTrackingFinalizer, TestRecordJobPodFailurePolicyActions",
		all(e2e("TestMetricsTellOfJobsAsTheBuiltInControllersDo"), app("TestStatusWritten", "TestPodCreation", "TestFinalizerRemoved", "TestSyncs", "TestNamesOfKubernetes"),
			job("TestEachHandledFailureIsReportedOnce")),
	},
}
