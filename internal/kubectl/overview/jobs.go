package overview

import (
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/kubectl/list"
	"github.com/jobstream/jobstream/internal/progress"
)

var (
	jobColumns    = []string{"JOB", "STATE", "SUCCEEDED", "ACTIVE", "FAILED", "STARTED", "AGE", "REASON"}
	failedColumns = []string{"JOB", "ENDED", "SUCCEEDED", "FAILED", "AGE", "REASON"}
)

// order is the order in which the states of Jobs are shown.
var order = []string{"Running", "Failing", "Completing", "Waiting", "Suspended"}

// Managed reports whether jobstream manages the Job by its spec.
func Managed(j *batchv1.Job) bool {
	return ptr.Deref(j.Spec.ManagedBy, "") == v1alpha1.DefaultManagedBy
}

// SawJob adds a Job. A Job of another controller is only counted.
func (o *Overview) SawJob(j *batchv1.Job) {
	if !Managed(j) {
		o.others++
		return
	}
	state, why := progress.State(j)
	l := line{namespace: j.Namespace, name: j.Name, rank: slices.Index(order, state), at: j.CreationTimestamp.Time, state: state}
	age := duration.HumanDuration(o.Now.Sub(j.CreationTimestamp.Time))
	succeeded, failed := fmt.Sprint(j.Status.Succeeded), fmt.Sprint(j.Status.Failed)
	if n := j.Spec.Completions; n != nil {
		succeeded += fmt.Sprintf("/%d", *n)
	}
	switch state {
	case "Complete":
		o.complete++
	case "Failed":
		ended := endOf(j)
		if o.Now.Sub(ended) > lately {
			o.failedBefore++
			return
		}
		l.at = newest(ended)
		l.cells = []string{j.Name, duration.HumanDuration(o.Now.Sub(ended)) + " ago", succeeded, failed, age, why}
		o.failed = append(o.failed, l)
	default:
		started := ""
		if at := j.Status.StartTime; at != nil {
			started = duration.HumanDuration(o.Now.Sub(at.Time)) + " ago"
			l.at = at.Time
		}
		l.at = newest(l.at)
		if why == "" {
			why = o.reason(j)
		}
		l.cells = []string{j.Name, state, succeeded, fmt.Sprint(j.Status.Active), failed, started, age, why}
		o.unfinished = append(o.unfinished, l)
	}
}

// reason explains why a Job waits if its conditions do not.
func (o *Overview) reason(j *batchv1.Job) string {
	switch {
	case ptr.Deref(j.Spec.Suspend, false):
		return list.SuspendedBy(j.Labels[v1alpha1.SuspendedByLabel])
	case j.Status.StartTime == nil && o.Now.Sub(j.CreationTimestamp.Time) > list.Untouched:
		return "not taken up: it waits until jobstream runs in this cluster"
	}
	return ""
}

// endOf returns when a Job failed.
func endOf(j *batchv1.Job) time.Time {
	for _, c := range j.Status.Conditions {
		if c.Type == batchv1.JobFailed {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// newest returns a sort key that puts later times first.
func newest(at time.Time) time.Time { return time.Unix(-at.Unix(), 0) }

// jobsTitle returns the title with the number of jobstream's Jobs in each state.
func (o *Overview) jobsTitle() string {
	failed := len(o.failed) + o.failedBefore
	parts := []string{fmt.Sprintf("Jobs: %d unfinished", len(o.unfinished))}
	if o.Jobs() == 0 {
		parts[0] = "Jobs: none"
	}
	if o.complete > 0 {
		parts = append(parts, fmt.Sprintf("%d complete", o.complete))
	}
	if failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", failed))
	}
	if o.others > 0 {
		parts = append(parts, fmt.Sprintf("%d that other controllers run", o.others))
	}
	return strings.Join(parts, ", ")
}

// failedTitle returns the title of the recently failed Jobs, "" if there are none.
func (o *Overview) failedTitle() string {
	if len(o.failed) == 0 {
		return ""
	}
	return fmt.Sprintf("Failed in the last %.0f hours: %d", lately.Hours(), len(o.failed))
}

// Empty reports whether the overview has no object of jobstream.
func (o *Overview) Empty() bool { return o.Jobs()+o.ScheduledJobs() == 0 }

// Jobs returns the number of jobstream's Jobs.
func (o *Overview) Jobs() int { return len(o.unfinished) + len(o.failed) + o.failedBefore + o.complete }
