package main

var rowsOfPods = []row{
	{
		"parallelism", "With completions, as many Pods are active as `parallelism` and the remaining completions allow; a change of `parallelism` creates or deletes Pods.",
		"IT TestParallelJobWithCompletions, TestParallelJobChangingParallelism; UT \"too few active pods\", \"too many active pods\", \"more active pods than remaining completions\"",
		all(same("nonindexed", "parallelism"), scripts("scale_down"), e2e("TestParallelismGoesUpAndDownWithoutFailures/NonIndexed"), worlds),
	},
	{
		"nothing-to-do", "A Job with zero completions is complete, and no Pod is created.",
		"UT \"nothing to do\"; IT TestElasticIndexedJob",
		all(same("completions-zero", "elastic-to-zero"), scripts("nothing_to_do")),
	},
	{
		"scale-down", "Surplus Pods are deleted in this order: without a node, pending, not ready, ready for a shorter time, more restarts, younger. Their finalizer is removed first, so that they are no failures.",
		"IT TestParallelJobChangingParallelism; UT \"too many active pods\"",
		all(differential("TestPodsThatGo"), same("parallelism", "elastic", "unschedulable"), scripts("scale_down"), worlds),
	},
	{
		"work-queue", "Without `completions`, Pods are created until the first has succeeded; then running ones may end, and the Job is complete. `backoffLimit` still applies.",
		"IT TestParallelJob; UT \"WQ job ...\"",
		all(same("work-queue"), scripts("work_queue", "work_queue_under_quota"), e2e("TestWorkQueueIsWorkedOffOnce"),
			scripts("work_queue_fails_at_its_backoff_limit", "work_queue_waits_for_found_pods"), worlds),
	},
	{
		"replace-terminating", "podReplacementPolicy `TerminatingOrFailed`: a terminating Pod has failed and is replaced at once, and stays a failure even if it ends well.",
		"IT TestJobPodReplacementPolicy; UT \"WQ job: recreate pods when terminating or failed\"",
		all(same("replace-when-terminating"), scripts("deleted_pod_counts_as_failed"), worlds),
	},
	{
		"replace-failed", "podReplacementPolicy `Failed`, and under a `podFailurePolicy`: a terminating Pod keeps its place and its index until it has ended.",
		"IT TestJobPodReplacementPolicy; UT \"more terminating pods than parallelism; PodFailurePolicy used\"; E2E \"should recreate pods only after they have failed\"",
		all(same("replace-when-failed", "eviction-ignored"), scripts("replace_failed_only"),
			scripts("terminating_pod_keeps_its_index"), worlds),
	},
	{
		"deleted-pods", "A Pod that a user deletes while it runs has failed and is replaced; its finalizer keeps it until it is counted.",
		"UT TestGetNewFinshedPods \"deleted pods\"; IT TestJobPodReplacementPolicy",
		all(same("user-deletes-pod", "eviction-counted"), scripts("deleted_pod_counts_as_failed"), worlds),
	},
	{
		"creation", "At most 500 Pods are created in a row, few at first, more as they are accepted. After refusals and failures the Job waits: 1 s, doubled up to 1 min.",
		"UT \"too few active pods, with controller error\", TestJobApiBackoffReset",
		all(scripts("quota"), e2e("TestRefusedPodsAreReportedAndRetried"), act("TestCreatePodRefused", "TestClientGoDoesNotRetry"),
			job("TestPodsFeelTheirWay"), worlds),
	},
	{
		"template", "Pods have the labels, annotations, finalizers and spec of the template, with the owner reference and the tracking finalizer.",
		"UT TestControllerSyncJob; IT validateJobPodsStatus",
		all(same("template", "sidecar"), pod("TestBuild"), act("TestCreatePod")),
	},
	{
		"no-doubles", "No Pod is created twice and no success counted twice, however old the view of the cluster is.",
		"IT TestDelayedJobUpdateEvent; UT TestSyncJobExpectations, TestFinalizersRemovedExpectations, TestUIDTrackingExpectations",
		all(e2e("TestThousandCompletionsAreCountedExactly/NonIndexed", "TestThousandCompletionsAreCountedExactly/Indexed", "TestFrozenProgramsThatWakeUpLateMiscountNothing",
			"TestTwoOfEachAndOneOfEachKilled"), laws,
			scripts("pod_made_twice", "late_observation_of_a_pod_with_another_serial"), job("TestTwoPodsWithOneSerialBothCount", "TestACopyDoesNotTakeThePlaceOfAPodThatIsBeingMade", "TestANameThatIsUsedAgainMeansThatTheFirstPodIsGone", "TestAnEditedSerialChangesNothing", "TestTheSerialOfAnOrphanIsForeign"), worlds),
	},
}

var rowsOfFailure = []row{
	{
		"backoff-limit-never", "restartPolicy `Never`: the Job fails with the first failure beyond `backoffLimit`, and running Pods are deleted and count as failed.",
		"IT TestNonParallelJob, TestFinalizersClearedWhenBackoffLimitExceeded, TestJobFailedWithInterrupts; UT TestJobBackoffOnRestartPolicyNever",
		all(same("backoff-limit", "backoff-limit-others-run"), scripts("backoff_limit"), e2e("TestJobFailsAtItsBackoffLimit", "TestManyFailuresAreCountedAFewAtATime"), worlds),
	},
	{
		"backoff-limit-on-failure", "restartPolicy `OnFailure`: the restarts of the containers of all active Pods together count against `backoffLimit`; the failed Pods do, too.",
		"UT TestJobBackoffForOnFailure; E2E \"should run a job to completion when tasks sometimes fail and are locally restarted\"",
		all(same("on-failure", "on-failure-backoff-limit"), scripts("on_failure_restarts"), e2e("TestContainerThatIsRestartedInPlaceIsNoFailure", "TestRestartsInPlaceEndAtTheBackoffLimit"),
			scripts("on_failure_without_retries", "on_failure_restarts_of_terminating_pods"), worlds),
	},
	{
		"backoff", "After a failure the Job waits 10 s, doubled with each further one up to 10 min, from the end of the Pod; a success forgets the failures before it.",
		"IT TestJobPodsCreatedWithExponentialBackoff, TestImmediateJobRecreation; UT TestNewBackoffRecord, TestGetFinishedTime, TestGetRemainingBackoffTime, TestJobBackoff",
		all(differential("TestBackoff", "TestFinishedTime"), same("retry"), scripts("failed_pod_backs_off", "backoff_survives_loss"),
			e2e("TestBackoffOutlivesTheReconcilerAndTheBus/Reconciler", "TestBackoffOutlivesTheReconcilerAndTheBus/Bus", "TestBackoffOutlivesTheReconcilerAndTheBus/Both"), worlds),
	},
	{
		"failure-policy", "podFailurePolicy: the first rule that matches wins, by exit code (containers, then init containers) or by condition; `FailJob`, `FailIndex`, `Ignore`, `Count`; only Pods in the phase Failed are judged.",
		"IT TestJobPodFailurePolicy; UT TestMatchPodFailurePolicy, TestSyncJobWithJobPodFailurePolicy",
		all(differential("TestPodFailurePolicy"), same("failure-policy-fail-job", "failure-policy-init", "failure-policy-ignore", "failure-policy-count", "failure-policy-fail-index"),
			scripts("pod_failure_policy_counts", "pod_failure_policy_fails_index", "pod_failure_policy_fails_job", "pod_failure_policy_ignores"), worlds),
	},
	{
		"failure-policy-disruption", "podFailurePolicy on `DisruptionTarget`: an evicted Pod is ignored, or ends the Job, as the rule demands.",
		"IT TestJobPodFailurePolicy, TestJobPodFailurePolicyWithFailedPodDeletedDuringControllerRestart; E2E conformance",
		all(same("eviction-ignored", "eviction-fails-job"), scripts("pod_failure_policy_ignores"),
			scripts("ignored_pod_on_a_dead_node"), worlds),
	},
	{
		"deadline", "The Job fails at `activeDeadlineSeconds` after its start, not before and not much later; the time may be changed while it runs.",
		"UT TestSyncJobPastDeadline, TestPastDeadlineJobFinished; E2E \"should fail when exceeds active deadline\"",
		all(same("active-deadline", "deadline-shortened"), scripts("active_deadline", "active_deadline_is_edited", "active_deadline_pauses_with_the_job"),
			scripts("deadline_takes_found_pods_too"), worlds),
	},
	{
		"leftover-pods", "When a Job fails, every Pod that is still held and has not succeeded counts as failed.",
		"IT TestJobFailedWithInterrupts, TestDelayTerminalPhaseCondition",
		all(same("backoff-limit-others-run", "max-failed-indexes", "failure-policy-fail-job"), scripts("backoff_limit"), worlds),
	},
}
