// Package census knows what the trigger's lists and watches show at present, for metrics: numbers, not objects.
//
//	watch --Listed, Saw, Missed--> [ Pods that are Pending, Jobs that back off, runs without a Pod, ScheduledJobs ] --> /metrics
//
// A Census decides nothing, and nothing depends on it: it may forget everything at any time, and the next complete list fills it
// again. It sends no request. Its memory is bounded: 24 bytes for each Pending Pod and for each Job that backs off (BenchmarkMemory), both
// of which the API server holds anyway; MaxAwaited runs; and as many ScheduledJobs as its Config allows, none by default.
//
//	census.go     Pods that are Pending, by reason, and Jobs that back off
//	awaited.go    runs whose first Pod has not started, to measure how late it starts
//	schedules.go  ScheduledJobs as kube-state-metrics shows CronJobs
package census
