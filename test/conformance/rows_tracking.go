package main

var rowsOfOwnership = []row{
	{
		"selector", "The API server's selector and labels are used as they are; with `manualSelector` the user's.",
		"UT TestGetPodsForJob; strategy_test.go TestJobStrategy_PrepareForCreate",
		all(same("nonindexed", "manual-selector", "template"), scripts("selector_adopts_strangers")),
	},
	{
		"adoption", "A Pod that matches the selector and has no controller is adopted, after a live read of the Job, in one patch with the finalizer, and counts; one that no longer matches is released, also in one patch.",
		"UT TestGetPodsForJob, TestUpdatePodRelease, TestUpdatePodOrphanWithNewLabels, TestUpdatePodChangeControllerRef; E2E \"should adopt matching orphans and release non-matching pods\"",
		all(same("manual-selector", "adopted-indexes", "adopted-too-many"), scripts("orphan_is_adopted", "selector_adopts_strangers", "selector_no_longer_matches"),
			act("TestAdoptPod", "TestAdoptPodReadsTheJobLive", "TestAdoptPodThatIsNotToBeHad", "TestReleasePod"),
			scripts("lost_finalizer_is_put_back"), worlds),
	},
	{
		"deleted-jobs", "A Job that is being deleted gets no more Pods, and its Pods lose their finalizer at once, under every propagation policy; so are those of a Job that is gone.",
		"IT TestOrphanPodsFinalizersClearedWithGC; UT TestSyncJobDeleted, TestFinalizerCleanup; E2E \"should delete a job\", \"should remove pods when job is deleted\"",
		all(same("deleted, Background", "deleted, Foreground", "deleted, Orphan", "deleted-and-kept"), scripts("deleted_job", "deleted_in_the_foreground"),
			e2e("TestDeletedJobs/PodsAreGoneInSeconds", "TestDeletedJobs/PodsMayStay"), worlds),
	},
	{
		"deleted-while-away", "Pods of a Job that was deleted while the controller was down lose their finalizer when it is back.",
		"IT TestOrphanPodsFinalizersClearedOnRestart; UT TestWatchOrphanPods, TestSyncOrphanPod",
		all(e2e("TestJobDeletedWhileWeAreAwayLeavesNothingBehind/BesideTheBuiltInController", "TestJobDeletedWhileWeAreAwayLeavesNothingBehind/WithoutTheBuiltInController"), worlds),
	},
	{
		"namesakes", "Nothing of a deleted Job affects one of the same name.",
		"IT TestImmediateJobRecreation, TestManagedBy_RecreatedJob",
		e2e("TestDeletedJobs/NewJobOfTheNameShowsNoTrace"),
	},
}

var rowsOfTracking = []row{
	{
		"finalizer", "Every Pod is created with the finalizer `batch.kubernetes.io/job-tracking`, which is removed only when its end is in the status: its UID, or its index.",
		"IT validateJobPodsStatus; UT TestTrackJobStatusAndRemoveFinalizers",
		all(scripts("one_pod_succeeds", "indexed", "repeats_change_nothing"), same("nonindexed", "indexed", "backoff-limit"), act("TestRemoveFinalizer"), worlds),
	},
	{
		"uncounted-cap", "One status lists at most 500 Pods; the Job does not end before all have been listed and counted.",
		"IT TestParallelJobWithCompletions, TestFinalizersClearedWhenBackoffLimitExceeded; UT \"too many finished\"",
		all(e2e("TestManyFailuresAreCountedAFewAtATime"),
			job("TestNoStatusListsMoreThanTheLimit"), worlds),
	},
	{
		"late-success", "A Pod that is listed as failed and succeeds after all stays a failure and is not listed twice.",
		"UT \"pod flips from failed to succeeded\"",
		all(oracle("TestRules"),
			scripts("late_success_stays_a_failure"), job("TestAListedPodThatFlipsIsListedOnce"), worlds),
	},
	{
		"partial-removal", "If only some finalizers can be removed, only those Pods are counted, and the others later.",
		"UT \"pod patch errors\", \"status update error\"",
		all(e2e("TestWebhookThatKeepsOurFinalizerIsNamedAndWaitedFor", "TestAPIServerThatAnswers429And500MiscountsNothing/NonIndexed"),
			job("TestAPodThatKeepsItsFinalizerIsCountedLater"), worlds),
	},
	{
		"status-conflict", "A status is written against the version that it was decided on; after a conflict it is decided again.",
		"UT TestSyncJobUpdateRequeue",
		all(e2e("TestJobThatChangesUnderUsIsCountedExactly/NonIndexed", "TestJobThatChangesUnderUsIsCountedExactly/Indexed"), engine("TestAConflictIsDecidedAnewOnTheNewestState"),
			act("TestWriteJobStatus"),
			scripts("conflict_is_decided_anew"), job("TestARefusedStatusIsDecidedAnewForANewerJob"), worlds),
	},
	{
		"restart", "A restarted controller continues where its predecessor stopped, with exact counts.",
		"IT TestOrphanPodsFinalizersClearedOnRestart, TestSuspendJobControllerRestart",
		all(e2e("TestKilledReconcilerMiscountsNothing/NonIndexed", "TestKilledReconcilerMiscountsNothing/Indexed", "TestKilledTriggerMiscountsNothing/NonIndexed", "TestKilledTriggerMiscountsNothing/Indexed",
			"TestEverythingLostAtOnceMiscountsNothing", "TestBusReplacedByAnEmptyOneMiscountsNothing", "TestKilledAPIServerMiscountsNothing"), scripts("memory_lost", "gone_before_it_was_seen"), worlds),
	},
	{
		"take-over", "A Job in the middle of its run is taken over from another controller with exact counts.",
		"IT TestManagedBy, by the switch of the feature",
		all(e2e("TestWeTakeOverFromTheBuiltInController/NonIndexed", "TestWeTakeOverFromTheBuiltInController/Indexed"), scripts("found_pod_gets_a_serial"), act("TestInventoryOfATakeOver"),
			scripts("deadline_takes_found_pods_too", "work_queue_waits_for_found_pods"), job("TestAFoundPodThatIsListedAlreadyIsCountedOnce", "TestAFoundPodThatHasEndedCountsBeforeTheJobIsOver", "TestFoundPodsAreTakenAFewAtATime")),
	},
	{
		"documented", "Every Job of the Kubernetes documentation ends as under the built-in controller, and so does every other case below.",
		"the documentation's own examples",
		caseTests(),
	},
}
