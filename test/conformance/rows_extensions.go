package main

// rowsOfExtensions are what jobstream does beyond Kubernetes' Job controller, or instead of it.
var rowsOfExtensions = []row{
	{
		"backoff-seconds", "The annotation `jobstream.dev/backoff-seconds`: the first delay after a failure (proposal job.md).", "none",
		all(e2e("TestRetriesComeSoonerAndFewFailedPodsStay"), scripts("backoff_seconds"), worlds),
	},
	{
		"failed-pods-limit", "The annotation `jobstream.dev/failed-pods-limit`: only so many failed Pods stay, the newest; all are counted (proposal job.md).", "none",
		all(e2e("TestRetriesComeSoonerAndFewFailedPodsStay"), scripts("failed_pods_limit"),
			job("TestAPodWithAnotherFinalizerIsDeletedOnce", "TestAKeptPodThatAUserHasTakenIsNotDeleted"), worlds),
	},
	{
		"per-completion-env", "The annotation `jobstream.dev/per-completion-env`: each index has its own values, without a shell; a ConfigMap that is missing, mutable or too short starts no Pod and is reported (proposal indexed-job.md).", "none",
		all(e2e("TestEachIndexHasItsOwnValues", "TestListsThatCannotBeUsedAreReportedAndWaitedFor"), scripts("parameters"), pod("TestReadParameters", "TestParametersComeFirst"),
			scripts("refused_for_its_parameters", "quota_with_parameters"), job("TestPodsRefusedForTheirParametersRest")),
	},
	{
		"pending-deadline", "The annotation `jobstream.dev/pending-deadline-seconds`: a Pod that does not start in time has failed.", "none; issues 101584, 66756, 62816",
		all(e2e("TestPodThatCannotStartFailsInTime", "TestPodThatIsReplacedMayStart"), scripts("pending_deadline")),
	},
	{
		"bad-annotations", "An invalid annotation of jobstream's is ignored; a condition and an Event report it.", "none",
		all(e2e("TestOptionThatCannotBeReadIsIgnoredAndReported"), scripts("ignored_annotation")),
	},
	{
		"waits-shown", "A Job shows what it waits for: Pods that have not started within 30 s, with the reason of most of them, and who has suspended it.", "none; issue 94012",
		all(e2e("TestAJobShowsThatItsPodsWait", "TestAJobShowsWhoHasSuspendedIt"), scripts("pods_wait", "pod_waits_for_a_finalizer", "suspended_by"),
			job("TestPodsThatStartInTimeCostNothing", "TestAFleetThatWaitsIsWrittenOnceAMinute"), worlds),
	},
	{
		"claim", "With `--claim-unmanaged` jobstream manages all Jobs that name no controller or the built-in one, which must be switched off.", "none",
		e2e("TestWeTakeOverFromTheBuiltInController"),
	},
	{
		"backoff-survives", "The delay between retries outlives the reconciler, the bus, and both at once.", "none; issue 114650",
		all(e2e("TestBackoffOutlivesTheReconcilerAndTheBus"), scripts("backoff_survives_loss", "index_backoff_survives_loss")),
	},
	{
		"refusals", "What refuses the Pods or the removal of their finalizers (a quota, a webhook, an invalid template) is named where `kubectl describe job` shows it; retries become ever rarer.", "none; issues 109164, 88718",
		all(e2e("TestRefusedPodsAreReportedAndRetried", "TestWebhookThatKeepsOurFinalizerIsNamedAndWaitedFor"), scripts("quota"), act("TestRefused"),
			job("TestAClockThatIsBehindDoesNotSpin")),
	},
	{
		"api-trouble", "An API server that answers 429 and 500 for a while, or is gone, delays and miscounts nothing.", "none",
		e2e("TestAPIServerThatAnswers429And500MiscountsNothing", "TestKilledAPIServerMiscountsNothing"),
	},
	{
		"status-writes", "A thousand Pods are counted exactly with at most 100 writes of the status.", "none",
		all(e2e("TestThousandCompletionsAreCountedExactly/NonIndexed", "TestThousandCompletionsAreCountedExactly/Indexed"),
			scripts("throttled_while_an_index_rests")),
	},
	{
		"secrets", "No secret of a Pod travels on the bus.", "none",
		e2e("TestSecretsOfAPodAppearNowhereOnTheBus"),
	},
}
