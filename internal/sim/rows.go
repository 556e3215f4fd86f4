package sim

import (
	"fmt"
	"io"
	"slices"
)

// Row is one row of the behaviour table of a Job controller: what Kubernetes 1.36 does, in the order of the reference, then what
// this project adds.
type Row struct {
	ID    string
	Title string
	// Elsewhere names the test of a row that a simulator cannot exercise.
	Elsewhere string
}

// Rows are all rows.
var Rows = []Row{
	{ID: "failure-order", Title: "conditions & order, failure: FailureTarget first, Failed when nothing is left"},
	{ID: "success-order", Title: "conditions & order, success: SuccessCriteriaMet first, Complete when nothing is left"},
	{ID: "reason-PodFailurePolicy", Title: "failure reason PodFailurePolicy"},
	{ID: "reason-BackoffLimitExceeded", Title: "failure reason BackoffLimitExceeded"},
	{ID: "reason-DeadlineExceeded", Title: "failure reason DeadlineExceeded"},
	{ID: "reason-MaxFailedIndexesExceeded", Title: "failure reason MaxFailedIndexesExceeded"},
	{ID: "reason-FailedIndexes", Title: "failure reason FailedIndexes"},
	{ID: "failure-declared", Title: "FailureTarget that another controller wrote is honoured"},
	{ID: "condition-fields", Title: "conditions of unknown types survive status writes"},
	{ID: "events", Title: "Events: Completed, the failure's reason, Suspended, Resumed"},
	{ID: "start-time", Title: "startTime: set at the first unsuspended turn, reset at resume"},
	{ID: "suspend", Title: "suspend: Pods are deleted uncounted, Suspended=True, startTime reset"},
	{ID: "resume", Title: "resume: Suspended=False, startTime set again"},
	{ID: "suspend-completes", Title: "suspended Job with nothing to do completes"},
	{ID: "mutable-template", Title: "template mutable while suspended, Pods from the current one",
		Elsewhere: "internal/cluster/act TestCreatePodFromTheRightTemplate; test/e2e/parity suspended.yaml"},
	{ID: "active-ready-terminating", Title: "active, ready and terminating follow the Pods"},
	{ID: "parallelism", Title: "parallelism with fixed completions"},
	{ID: "scale-down", Title: "scale-down: the most expendable Pods are deleted, uncounted"},
	{ID: "work-queue", Title: "work queue: no Pods after the first success, complete when all have ended"},
	{ID: "replace-terminating", Title: "podReplacementPolicy TerminatingOrFailed: terminating Pods count and are replaced at once"},
	{ID: "replace-failed", Title: "podReplacementPolicy Failed: terminating Pods are waited for"},
	{ID: "backoff-limit-never", Title: "backoffLimit, restartPolicy Never"},
	{ID: "backoff-limit-on-failure", Title: "backoffLimit, restartPolicy OnFailure"},
	{ID: "backoff-global", Title: "exponential backoff, global"},
	{ID: "backoff-per-index", Title: "exponential backoff, per index"},
	{ID: "backoff-limit-per-index", Title: "backoffLimitPerIndex: counts handed from Pod to Pod"},
	{ID: "failed-indexes", Title: "status.failedIndexes"},
	{ID: "max-failed-indexes", Title: "maxFailedIndexes"},
	{ID: "policy-FailJob", Title: "podFailurePolicy FailJob"},
	{ID: "policy-FailIndex", Title: "podFailurePolicy FailIndex"},
	{ID: "policy-Ignore", Title: "podFailurePolicy Ignore"},
	{ID: "policy-Count", Title: "podFailurePolicy Count"},
	{ID: "policy-conditions", Title: "podFailurePolicy on Pod conditions"},
	{ID: "success-policy", Title: "successPolicy: SuccessCriteriaMet, the other Pods are deleted uncounted"},
	{ID: "active-deadline", Title: "activeDeadlineSeconds, also when edited"},
	{ID: "ttl", Title: "ttlSecondsAfterFinished"},
	{ID: "index-assignment", Title: "Indexed: lowest free indexes first"},
	{ID: "index-duplicates", Title: "Indexed: duplicates and invalid indexes are deleted"},
	{ID: "index-identity", Title: "Indexed: annotation, label, env and hostname of a Pod",
		Elsewhere: "functions/pod TestBuild, TestHostnameIsALabel; test/e2e/parity indexed.yaml, template.yaml"},
	{ID: "completed-indexes", Title: "status.completedIndexes"},
	{ID: "elastic-indexed", Title: "elastic Indexed: completions and parallelism change in tandem"},
	{ID: "adoption", Title: "adoption of Pods that match"},
	{ID: "release-of-pods", Title: "release of Pods that no longer match"},
	{ID: "manual-selector", Title: "the user's own selector"},
	{ID: "finalizer", Title: "finalizer on Pods until they are counted"},
	{ID: "uncounted-cap", Title: "uncounted cap: the others wait for another write"},
	{ID: "pod-flips-phase", Title: "Pod that is listed as failed and then succeeds stays failed"},
	{ID: "partial-removal", Title: "removal of a finalizer fails: only Pods that are no longer held are counted"},
	{ID: "deleted-pods", Title: "Pods that users delete count as failed and are replaced"},
	{ID: "failing-leftovers", Title: "failing Job: remaining Pods count as failed"},
	{ID: "deleted-background", Title: "Job deleted in the background"},
	{ID: "deleted-foreground", Title: "Job deleted in the foreground"},
	{ID: "deleted-orphan", Title: "Job deleted, Pods left behind"},
	{ID: "finished-jobs", Title: "finished Job: Pods that still have the finalizer lose it"},
	{ID: "recreated", Title: "delete and recreate under the same name"},
	{ID: "stale-caches", Title: "stale observations: no Pod is created twice or ends twice"},
	{ID: "status-conflict", Title: "status conflict: decided again, never overwritten"},
	{ID: "slow-start", Title: "slow start: after refusals creations come in growing batches"},
	{ID: "api-backoff", Title: "API errors: tried again later"},
	{ID: "metrics", Title: "metrics that users scrape",
		Elsewhere: "internal/app TestNamesOfKubernetes; test/e2e TestMetricsTellOfJobsAsTheBuiltInControllersDo"},
	{ID: "managed-by", Title: "managedBy: other controllers' Jobs are left alone",
		Elsewhere: "internal/cluster/act TestForeignJobs; functions/job/testdata/foreign.txt"},
	{ID: "pod-names", Title: "names of Pods",
		Elsewhere: "functions/pod TestName, TestNameIsLegalForEveryJob, TestNameIsInjectiveInTheSerial"},

	{ID: "backoff-seconds", Title: "extension: backoff-seconds"},
	{ID: "failed-pods-limit", Title: "extension: failed-pods-limit deletes counted failed Pods"},
	{ID: "pending-deadline", Title: "extension: pending-deadline-seconds"},
	{ID: "pods-waiting", Title: "extension: Pods that have not started for 30 s show in a condition"},
	{ID: "parameters", Title: "extension: per-completion parameters"},
	{ID: "parameters-bad", Title: "extension: per-completion parameters that are missing or too few, then fixed"},
	{ID: "no-serial", Title: "extension: Pods without a serial are given one"},
	{ID: "foreign-finalizer", Title: "extension: the user's own finalizer keeps deleted Pods, without a busy loop"},
	{ID: "memory-lost", Title: "extension: memory or the whole bus lost in a turn"},
}

// row records that the world has exercised a row.
func (w *World) row(id string) {
	if !w.Rows[id] && !slices.ContainsFunc(Rows, func(r Row) bool { return r.ID == id }) {
		panic("there is no row " + id)
	}
	w.Rows[id] = true
}

// PrintRows prints how many worlds have exercised each row, and returns the ids of those exercised by fewer than least.
func PrintRows(out io.Writer, worlds map[string]int, least int) (rare []string) {
	for _, r := range Rows {
		count := fmt.Sprint(worlds[r.ID])
		switch {
		case r.Elsewhere != "":
			count = "-"
		case worlds[r.ID] < least:
			rare = append(rare, r.ID)
		}
		fmt.Fprintf(out, "%8s  %-32s %s", count, r.ID, r.Title)
		if r.Elsewhere != "" {
			fmt.Fprintf(out, " (%s)", r.Elsewhere)
		}
		fmt.Fprintln(out)
	}
	return rare
}
