package main

// An exception is a test or a behaviour of Kubernetes that has no row, or that jobstream does differently.
type exception struct{ what, why string }

// exceptions are all exceptions.
var exceptions = []exception{
	{
		"Gang scheduling: Workload and PodGroup (IT TestJobGangScheduling, job_admission_test.go; UT job_scheduling_manager_test.go, TestSyncJobPodSchedulingGroup)",
		"out of scope: an alpha of 1.36 that is off by default, for the default scheduler alone",
	},
	{
		"Switching a feature off and on again (IT TestSuccessPolicy_ReEnabling, TestBackoffLimitPerIndex_Reenabling, TestManagedBy_Reenabling, TestJobPodReplacementPolicyFeatureToggling)",
		"these features are locked on since 1.33 to 1.35; clusters without them are too old for this version",
	},
	{
		"An unknown `completionMode` and the Event `UnknownCompletionMode`",
		"the API server of this version accepts no such Job; one with an unsupported field gets the condition `jobstream.dev/Unsupported` and no Pods (transcript `unsupported`)",
	},
	{
		"Expectations, consistency store and their time-outs (UT TestSyncJobExpectations, TestUIDTrackingExpectations, TestFinalizersRemovedExpectations)",
		"they exist because that controller cannot see its own writes; here names are deterministic, effects have preconditions, and the state is committed before any effect: row no-doubles tests their purpose",
	},
	{
		"An index that waits after a failure gives its place in `parallelism` to the next one at once",
		"the built-in controller may leave the place empty for as long as the index waits; each index has its Pods all the same (transcript `delayed_index_does_not_hold_up_others`)",
	},
	{
		"A Job with more than 20,000 unsettled Pods at once creates and adopts further ones as those settle",
		"its state is one message of at most 8 MB; `parallelism` beyond that is no use on one API server",
	},
	{
		"Of the unfinished Jobs of one namespace with `manualSelector`, the oldest 8 adopt Pods; the others run with the Pods that they create, and report it in the condition `jobstream.dev/NotAdopting`",
		"each change of an orphan is published to every Job that may adopt it: with a thousand such Jobs one namespace would fill the bus for all namespaces (transcript `selector_of_one_job_too_many`, cluster `TestOldestJobsAdopt`)",
	},
	{
		"A running Pod that has lost its finalizer gets it back; the built-in controller would not count its end and run it again",
		"kube-controller-manager may remove it from a Pod that was orphaned just before its adoption (transcript `lost_finalizer_is_put_back`)",
	},
	{
		"A Pod that is being deleted may lose its finalizer before it is counted; then it is not counted, and another does its work",
		"kube-controller-manager takes an unknown Job for deleted, and its watch of Jobs may be behind that of Pods after the API server was away ([ADR 8](adr/0008-managed-by.md), e2e `TestBuiltInControllerThatIsBehindLosesNoWork`)",
	},
	{
		"Pods of a finished Job that still run, or were created late, are deleted; the built-in controller removes the finalizer and lets them run",
		"a worker that slept may have created one after the verdict: it has no use, and no other controller would end it (transcript `finished_job_lets_go_of_pods`)",
	},
	{
		"The name of a NonIndexed Job longer than 57 characters is cut after 57, and a hyphen follows; the built-in controller's names have 58 characters and no hyphen then",
		"names keep one form, and end in the same number of characters",
	},
	{
		"Which of several Pods that end within the same second decides",
		"the built-in controller looks once a second, the reconciler at once: a Job whose Pods race each other, as those of `job-success-policy.yaml` do on a fast machine, may end either way under either controller; the cases below fix the order where it matters",
	},
}
