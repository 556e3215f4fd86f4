package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

// counted matches Kubernetes' metrics of what happened to Jobs and Pods. The others are about the inside of its controller.
var counted = regexp.MustCompile(`^job_controller_(jobs_finished_total|job_pods_finished_total|job_finished_indexes_total|` +
	`job_pods_creation_total|pod_failures_handled_by_failure_policy_total)\{`)

// The metrics for dashboards and alerts have the names, labels and values of the built-in controller's.
func TestMetricsTellOfJobsAsTheBuiltInControllersDo(t *testing.T) {
	t.Parallel()
	s := own(t, harness.Config{})
	p := s.Space(t)
	want := map[string]batchv1.JobConditionType{}
	for _, ours := range []bool{true, false} {
		for _, j := range measuredJobs() {
			end := batchv1.JobComplete
			if strings.HasPrefix(j.Name, "bad-") {
				end = batchv1.JobFailed
			}
			if !ours {
				j.Name, j.Spec.ManagedBy = j.Name+"-theirs", nil
			}
			want[p.Apply(j).Name] = end
		}
	}
	for name, end := range want {
		p.AwaitEnd(name, end, time.Minute)
	}
	harness.Until(t, 15*time.Second, "both to have the same counts", func(ctx context.Context) error {
		text, err := harness.Metrics(ctx, s.Reconcilers[0])
		if err != nil {
			return err
		}
		theirs, err := builtInMetrics(ctx, s)
		if err != nil {
			return err
		}
		if have, want := samples(text), samples(theirs); !maps.Equal(have, want) {
			return fmt.Errorf("jobstream has counted\n%s\nand the built-in controller\n%s", list(have), list(want))
		}
		if len(samples(text)) < 8 {
			return fmt.Errorf("there is little to compare: %s", list(samples(text)))
		}
		return nil
	})
}

// measuredJobs end in several ways.
func measuredJobs() []*batchv1.Job {
	failsJob := func(s *batchv1.JobSpec) {
		s.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{Action: batchv1.PodFailurePolicyActionFailJob,
			OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{7}}}}}
	}
	failsIndexes := func(s *batchv1.JobSpec) {
		s.BackoffLimit, s.BackoffLimitPerIndex = nil, new(int32)
	}
	return []*batchv1.Job{
		harness.Shell("good", "true", harness.Size(3, 3, 0)),
		harness.Shell("good-indexed", "true", harness.Size(3, 3, 0), harness.Indexed),
		harness.Shell("bad-limit", "exit 1", harness.Size(1, 1, 0)),
		harness.Shell("bad-policy", "exit 7", harness.Size(1, 1, 3), failsJob),
		harness.Shell("bad-indexes", "exit $JOB_COMPLETION_INDEX", harness.Size(2, 2, 0), harness.Indexed, failsIndexes),
	}
}

func builtInMetrics(ctx context.Context, s *harness.System) (string, error) {
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // it is ours, on this machine
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.ControlPlane.ControllerManagerURL()+"/metrics", nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

// samples returns the lines that count Jobs and Pods, with their values. A zero is the same as a missing line.
func samples(metrics string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(metrics) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "} "); ok && counted.MatchString(line) && value != "0" {
			out[name+"}"] = value
		}
	}
	return out
}

func list(samples map[string]string) string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(samples)) {
		lines = append(lines, name+" "+samples[name])
	}
	return strings.Join(lines, "\n")
}
