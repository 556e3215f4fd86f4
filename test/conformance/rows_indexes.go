package main

var rowsOfIndexes = []row{
	{
		"index-assignment", "The lowest indexes that have neither ended nor a Pod come first.",
		"IT TestIndexedJob; UT TestFirstPendingIndexes",
		all(differential("TestIndexesThatCome"), same("indexed"), scripts("indexed"), worlds),
	},
	{
		"index-identity", "The Pod has its index as annotation, label, the variable `JOB_COMPLETION_INDEX` in every container, unless the user has one of that name, its hostname `<job>-<index>` and its name `<job>-<index>-<suffix>`.",
		"IT validateIndexedJobPods; UT TestPodGenerateNameWithIndex; E2E \"should create pods for an Indexed job with completion indexes and specified hostname\"",
		all(same("indexed", "template"), pod("TestBuild", "TestName", "TestNameIsLegalForEveryJob", "TestHostnameIsALabel")),
	},
	{
		"index-duplicates", "A Pod without an index, with one out of range, or beside another of the same index is deleted; a second success of an index is not counted.",
		"UT \"indexed job repeated indexes\", \"pods without index\", \"indexes outside of range\", TestAppendDuplicatedIndexPodsForRemoval",
		all(same("adopted-indexes"), differential("TestPodsThatGo"),
			scripts("pod_without_an_index"), job("TestOfEachIndexOnePodCounts"), worlds),
	},
	{
		"completed-indexes", "`completedIndexes` is written as `1,3-5,7,8`; indexes out of range are omitted.",
		"UT TestCalculateSucceededIndexes, TestIntervalsHaveIndex; VT TestValidateIndexesString",
		all(differential("TestIntervals", "TestIntervalTexts"), of("functions/intervals")("TestASetIsWhatAMapOfBoolsIs", "TestParseRefuses"), same("success-policy-count", "elastic")),
	},
	{
		"elastic", "`completions` and `parallelism` change together: indexes out of range are deleted and forgotten, indexes that return run again, failures stay counted; at 0 the Job is complete.",
		"IT TestElasticIndexedJob; UT \"prev successful pods outside current completions index range\"",
		all(same("elastic", "elastic-to-zero"), scripts("elastic_indexed"), worlds),
	},
	{
		"success-policy", "successPolicy: the first rule met, by indexes, by count, or by count among indexes, completes the Job; running Pods are deleted and not counted.",
		"IT TestSuccessPolicy; UT TestMatchSuccessPolicy, TestSyncJobWithJobSuccessPolicy; E2E conformance",
		all(differential("TestSuccessPolicy"), same("success-policy-indexes", "success-policy-count", "success-despite-failed-index"),
			scripts("success_policy_by_count", "success_policy_by_index"), worlds),
	},
	{
		"backoff-limit-per-index", "Each index fails by itself after `backoffLimitPerIndex` failures. Annotations of its Pods have the numbers of its failures and ignored failures; the last failed Pod keeps its finalizer until the next one exists.",
		"IT TestBackoffLimitPerIndex, TestBackoffLimitPerIndex_DelayedPodDeletion; UT TestSyncJobWithJobBackoffLimitPerIndex, TestGetPodsWithDelayedDeletionPerIndex, TestGetNewIndexFailureCountValue",
		all(same("backoff-limit-per-index", "per-index-user-deletes", "per-index-ignored"), scripts("backoff_limit_per_index", "index_backoff_survives_loss"),
			pod("TestPodsCarryTheFailuresOfTheirIndex"),
			scripts("surplus_pod_keeps_its_index"), job("TestPodsThatWaitForASuccessorDoNotWedgeTheJob"), worlds),
	},
	{
		"backoff-per-index", "Each index has its own delay: 10 s, doubled with each failure of the index.",
		"IT TestBackoffLimitPerIndex_JobPodsCreatedWithExponentialBackoff; UT TestGetPodCreationInfoForIndependentIndexes, TestGetRemainingBackoffTimePerIndex",
		all(differential("TestBackoffPerIndex"), same("backoff-limit-per-index"), scripts("index_backoff_survives_loss", "delayed_index_does_not_hold_up_others"), worlds),
	},
	{
		"failed-indexes", "`failedIndexes` is set if and only if `backoffLimitPerIndex` is; it never overlaps `completedIndexes`.",
		"IT validateIndexedJobPods; UT TestCalculateFailedIndexes; VT TestValidateFailedIndexesNotOverlapCompleted",
		all(same("backoff-limit-per-index", "success-despite-failed-index", "indexed"), oracle("TestRules"),
			scripts("backoff_limit_per_index"), job("TestEveryStatusHasItsCounts"), worlds),
	},
	{
		"max-failed-indexes", "More failed indexes than `maxFailedIndexes` end the Job; otherwise it fails when all indexes have ended and one has failed.",
		"IT TestBackoffLimitPerIndex \"job execution terminated early due to exceeding max failed indexes\"; E2E conformance",
		all(same("max-failed-indexes", "failure-policy-fail-index"), scripts("max_failed_indexes"), worlds),
	},
}
