package job_test

import (
	"strconv"
	"testing"

	"github.com/cockroachdb/datadriven"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/events"
)

// parseJob reads "job completions=3 parallelism=2 backoffLimit=6 indexed on-failure replace-failed-only unsupported=field".
func parseJob(t *testing.T, d *datadriven.TestData) events.Job {
	t.Helper()
	j := events.Job{Name: "pi", Parallelism: 1, BackoffLimit: 6}
	one := int32(1)
	j.Completions = &one
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "completions":
			if a.Vals[0] == "nil" {
				j.Completions = nil
				continue
			}
			n := int32(atoi(t, d, a.Vals[0]))
			j.Completions = &n
		case "parallelism":
			j.Parallelism = int32(atoi(t, d, a.Vals[0]))
		case "backoffLimit":
			j.BackoffLimit = int32(atoi(t, d, a.Vals[0]))
		case "indexed":
			j.Indexed = true
		case "on-failure":
			j.RestartsInPlace = true
		case "replace-failed-only":
			j.ReplaceFailedOnly = true
		case "foreign":
			j.Foreign = true
		case "unsupported":
			j.Unsupported = a.Vals
		default:
			d.Fatalf(t, "unknown argument %q", a.Key)
		}
	}
	return j
}

func atoi(t *testing.T, d *datadriven.TestData, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return n
}

func declareFailed(j *events.Job) {
	j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: batchv1.JobFailureTarget, Status: "True",
		Reason: "Operator", Message: "stopped by hand"})
}
