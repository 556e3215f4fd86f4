package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/internal/dev/processnode"
	"github.com/jobstream/jobstream/test/bench/report"
)

// workload is work for a controller, and what is measured of it.
type workload struct {
	name string
	what string // for the reader of the tables
	jobs []batch
	// due is how many schedules are due in the same second, each with a Job of one Pod, instead of jobs.
	due int
	// inTurn creates each Job when the last one has ended, instead of all at once.
	inTurn bool
	// limited is also measured if requests are limited, or take long. The others would take hours then.
	limited  bool
	large    bool // only on request
	measures []measure
}

// batch are equal Jobs.
type batch struct {
	count, completions, parallelism int
	indexed, failing                bool
	runs                            time.Duration // how long each Pod runs
}

// measure is a number that tells how fast a workload was.
type measure struct {
	name string
	// more is true of a number that is better if it is greater.
	more bool
	of   func(load) float64
}

var (
	podsPerSecond = measure{"Pods/s", true, func(l load) float64 { return float64(l.pods) / l.took().Seconds() }}
	jobsPerSecond = measure{"Jobs/s", true, func(l load) float64 { return float64(len(l.jobs)) / l.took().Seconds() }}
	seconds       = measure{"s until all ended", false, func(l load) float64 { return l.took().Seconds() }}
	toPod50       = measure{"created to Pod, p50 ms", false, func(l load) float64 { return millis(l.each(toPod), 50) }}
	toPod99       = measure{"created to Pod, p99 ms", false, func(l load) float64 { return millis(l.each(toPod), 99) }}
	dueToJob50    = measure{"due to Job, p50 ms", false, func(l load) float64 { return millis(l.each(toJob), 50) }}
	dueToJob99    = measure{"due to Job, p99 ms", false, func(l load) float64 { return millis(l.each(toJob), 99) }}
	dueToPod50    = measure{"due to Pod, p50 ms", false, func(l load) float64 { return millis(l.each(toPod), 50) }}
	dueToPod99    = measure{"due to Pod, p99 ms", false, func(l load) float64 { return millis(l.each(toPod), 99) }}
	toEnd50       = measure{"created to Complete, p50 ms", false, func(l load) float64 { return millis(l.each(toEnd), 50) }}
	toEnd99       = measure{"created to Complete, p99 ms", false, func(l load) float64 { return millis(l.each(toEnd), 99) }}
)

var dueMeasures = []measure{jobsPerSecond, dueToJob50, dueToJob99, dueToPod50, dueToPod99}

// workloads are all that there are. Pods end at once unless a batch has a time: the controllers are measured, and not the node.
var workloads = []workload{
	{name: "one", what: "30 Jobs of one Pod, one after the other", inTurn: true, limited: true,
		jobs: []batch{{count: 30, completions: 1, parallelism: 1}}, measures: []measure{toPod50, toPod99, toEnd50, toEnd99}},
	{name: "big500", what: "a Job of 500 Pods, 500 at once", limited: true,
		jobs: []batch{{count: 1, completions: 500, parallelism: 500}}, measures: []measure{podsPerSecond}},
	{name: "big2000", what: "a Job of 2,000 Pods, 500 at once",
		jobs: []batch{{count: 1, completions: 2000, parallelism: 500}}, measures: []measure{podsPerSecond}},
	{name: "big5000", what: "a Job of 5,000 Pods, 500 at once",
		jobs: []batch{{count: 1, completions: 5000, parallelism: 500}}, measures: []measure{podsPerSecond}},
	{name: "indexed5000", what: "an Indexed Job of 5,000 Pods, 500 at once",
		jobs: []batch{{count: 1, completions: 5000, parallelism: 500, indexed: true}}, measures: []measure{podsPerSecond}},
	{name: "indexed10000", what: "an Indexed Job of 10,000 Pods, 1,000 at once",
		jobs: []batch{{count: 1, completions: 10000, parallelism: 1000, indexed: true}}, measures: []measure{podsPerSecond}},
	{name: "storm", what: "1,000 Jobs of one Pod, created at once", limited: true,
		jobs: []batch{{count: 1000, completions: 1, parallelism: 1}}, measures: []measure{jobsPerSecond, toPod50, toPod99, toEnd50, toEnd99}},
	{name: "due1000", what: "1,000 schedules due in the same second, each with a Job of one Pod", limited: true, due: 1000, measures: dueMeasures},
	{name: "due5000", what: "5,000 schedules due in the same second, each with a Job of one Pod", due: 5000, measures: dueMeasures},
	{name: "failing", what: "an Indexed Job of 1,000 Pods, 500 at once, each of which fails once and for all",
		jobs: []batch{{count: 1, completions: 1000, parallelism: 500, indexed: true, failing: true}}, measures: []measure{seconds}},
	{name: "mixed", what: "2,000 Pods of one second: half in Jobs of 5, a quarter in Jobs of 20, a quarter in Jobs of 400 and 100",
		jobs: []batch{
			{count: 200, completions: 5, parallelism: 5, runs: time.Second}, {count: 25, completions: 20, parallelism: 20, runs: time.Second},
			{count: 1, completions: 400, parallelism: 400, runs: time.Second}, {count: 1, completions: 100, parallelism: 100, runs: time.Second},
		}, measures: []measure{seconds, toEnd50, toEnd99}},
	{name: "large", what: "a Job of 100,000 Pods, 1,000 at once", large: true,
		jobs: []batch{{count: 1, completions: 100000, parallelism: 1000}}, measures: []measure{podsPerSecond}},
}

// String returns the name.
func (w workload) String() string { return w.name }

// under reports whether the workload is measured under the limit.
func (w workload) under(l limit, asked bool) bool { return asked || !l.limits || w.limited }

// scaled returns the workload with a part of its size: of many Jobs fewer, of one Job a smaller one.
func (w workload) scaled(part float64) workload {
	of := func(n int) int { return max(1, int(math.Round(float64(n)*part))) }
	w.jobs = slices.Clone(w.jobs)
	if w.due > 0 {
		w.due = of(w.due)
	}
	for i, b := range w.jobs {
		if b.count > 1 {
			w.jobs[i].count = of(b.count)
			continue
		}
		w.jobs[i].completions = of(b.completions)
		w.jobs[i].parallelism = min(b.parallelism, w.jobs[i].completions)
	}
	return w
}

func (w workload) pods() int {
	n := w.due
	for _, b := range w.jobs {
		n += b.count * b.completions
	}
	return n
}

// watchesPods reports whether a measure needs the Pods' arrival. Otherwise they are not watched, since that costs the API server.
func (w workload) watchesPods() bool {
	return w.inTurn || w.due > 0 || slices.ContainsFunc(w.jobs, batch.small)
}

func (b batch) small() bool { return b.completions == 1 }

// timeout is how long a side may take at most: several times as long as the slower one ever has.
func (w workload) timeout(l limit) time.Duration {
	each := 100 * time.Millisecond
	if l.limits {
		each = time.Second // at 20 requests a second, a Pod of a one-Pod Job costs 300 ms
	}
	return 3*time.Minute + w.lead() + time.Duration(w.pods())*each
}

// objects are the workload's Jobs for a controller.
func (w workload) objects(managedBy *string) (all []*batchv1.Job) {
	for i, b := range w.jobs {
		for n := range b.count {
			all = append(all, b.object(w.nameOf(i, n), managedBy))
		}
	}
	return all
}

// nameOf is the name of a batch's n-th Job.
func (w workload) nameOf(batch, n int) string { return fmt.Sprintf("%s-%d-%04d", w.name, batch, n) }

func (b batch) object(name string, managedBy *string) *batchv1.Job {
	annotations := map[string]string{processnode.DurationAnnotation: b.runs.String()}
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{
		ManagedBy: managedBy, Completions: ptr.To(int32(b.completions)), Parallelism: ptr.To(int32(b.parallelism)),
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: annotations},
			Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
				Containers: []corev1.Container{{Name: "main", Image: "busybox", Command: []string{"true"}}}}},
	}}
	if b.indexed {
		j.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
	}
	if b.failing {
		j.Spec.BackoffLimitPerIndex = ptr.To[int32](0)
		annotations[processnode.ExitCodeAnnotation] = strconv.Itoa(1)
	}
	return j
}

func millis(sorted []time.Duration, percent int) float64 {
	return float64(report.Quantile(sorted, percent)) / float64(time.Millisecond)
}
