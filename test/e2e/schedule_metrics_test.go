package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// Nominal times, their lateness, ends of Jobs and waits are counted once, by whichever reconciler and however often facts come; what
// waits now is shown by every trigger alike; and what is deleted is shown no more.
func TestMetricsOfSchedulesAndTheirJobs(t *testing.T) {
	t.Parallel()
	s := own(t, harness.Config{Triggers: 2, Reconcilers: 2, TriggerFlags: []string{"--scheduledjob-metrics=100"}})
	p := s.Space(t)
	once := func(name string, late time.Duration, deadline *int64) {
		p.Schedule(harness.Every(name, "", "exit 0", func(s *v1alpha1.ScheduledJobSpec) {
			s.RunAt, s.StartingDeadlineSeconds = new(metav1.NewTime(time.Now().Add(-late).Truncate(time.Second))), deadline
		}))
	}
	for i := range 3 {
		once(fmt.Sprint("once-", i), 0, nil)
	}
	once("too-late", time.Hour, new(int64(1)))
	p.Schedule(harness.Every("nightly", "0 2 29 2 *", "exit 0", func(s *v1alpha1.ScheduledJobSpec) { s.TimeZone = new("Europe/Berlin") }))
	p.Apply(harness.Shell("good", "exit 0"))
	p.Apply(harness.Shell("bad", "exit 1", harness.Size(1, 1, 0)))
	p.Apply(annotated(harness.Shell("resting", "exit 1", harness.Size(1, 1, 6)), v1alpha1.BackoffSecondsAnnotation, "300"))
	stuck := harness.Shell("stuck", "exit 0")
	stuck.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: "missing"}}}}
	p.Apply(stuck)

	m := meters{s, p.Namespace}
	did := map[string]float64{`ticks_total Started`: 3, `ticks_total Missed`: 1, `tick_job_lateness_seconds_count `: 3,
		`jobs_finished_total Succeeded`: 4, `jobs_finished_total Failed`: 1, `retry_wait_seconds_sum `: 300, `retry_wait_seconds_count `: 1}
	sees := map[string]float64{`pending_pods CreateContainerConfigError`: 1, `backing_off_jobs `: 1, `tick_pod_lateness_seconds_count `: 3}
	m.await(t, "everything to be counted", did, sees, sees)
	harness.Until(t, time.Minute, "both triggers to show the same", func(context.Context) error {
		if first, second := m.twins(t, 0), m.twins(t, 1); first != second || !strings.Contains(first, `kube_cronjob_info{concurrency_policy="Allow",cronjob="nightly",namespace="`+
			p.Namespace+`",schedule="0 2 29 2 *",timezone="Europe/Berlin"} 1`) {
			return fmt.Errorf("one shows\n%s\nand the other\n%s", first, second)
		}
		return nil
	})

	if err := errors.Join(s.Triggers[0].Kill(), s.Triggers[0].Start()); err != nil { // lists everything, and publishes it again
		t.Fatal(err)
	}
	harness.Until(t, timeout, "the trigger to watch", func(ctx context.Context) error { return harness.Readiness(ctx, s.Triggers[0]) }) // else it misses once-3
	p.Delete("stuck")
	p.Delete("resting")
	for _, name := range []string{"once-0", "nightly"} {
		p.Unschedule(name, metav1.DeletePropagationBackground)
	}
	once("once-3", 0, nil) // whose facts follow those
	p.AwaitSchedule("once-3", time.Minute, "to have ended", func(s *v1alpha1.ScheduledJob) bool { return s.Status.Successful == 1 })
	did[`ticks_total Started`], did[`tick_job_lateness_seconds_count `], did[`jobs_finished_total Succeeded`] = 4, 4, 5
	again := map[string]float64{`tick_pod_lateness_seconds_count `: 1} // it knows of no earlier starts
	m.await(t, "nothing to be counted twice", did, again, map[string]float64{`tick_pod_lateness_seconds_count `: 4})
	for trigger := range s.Triggers {
		harness.Until(t, time.Minute, "what is deleted to be shown no more", func(context.Context) error {
			if page := m.twins(t, trigger); strings.Contains(page, `"once-0"`) || strings.Contains(page, `"nightly"`) || !strings.Contains(page, `"once-1"`) {
				return errors.New(page)
			}
			return nil
		})
	}
}

// meters are the metrics of a System's programs about one namespace.
type meters struct {
	*harness.System
	namespace string
}

// await waits until the reconcilers together have counted what they did, and each trigger shows what it sees; what is not named is 0.
func (m meters) await(t *testing.T, what string, did map[string]float64, sees ...map[string]float64) {
	t.Helper()
	harness.Until(t, 2*time.Minute, what, func(ctx context.Context) error {
		total := map[string]float64{}
		for _, r := range m.Reconcilers {
			page, err := harness.Metrics(ctx, r)
			if err != nil {
				return err
			}
			m.add(total, page)
		}
		if !maps.Equal(total, did) {
			return fmt.Errorf("the reconcilers have counted %v, want %v", total, did)
		}
		for i, r := range m.Triggers {
			page, err := harness.Metrics(ctx, r)
			if err != nil {
				return err
			}
			one := map[string]float64{}
			if m.add(one, page); !maps.Equal(one, sees[i]) {
				return fmt.Errorf("%s shows %v, want %v", r.Name, one, sees[i])
			}
		}
		return nil
	})
}

// add adds the samples about the namespace that are not 0, by their names and the last label.
func (m meters) add(to map[string]float64, page string) {
	wanted := []string{"ticks_total", "tick_job_lateness_seconds_count", "tick_pod_lateness_seconds_count", "jobs_finished_total",
		"retry_wait_seconds_sum", "retry_wait_seconds_count", "pending_pods", "backing_off_jobs"}
	for line := range strings.Lines(page) {
		series, text, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, "jobstream_")), " ")
		name, labels, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
		value, err := strconv.ParseFloat(text, 64)
		if err != nil || value == 0 || !slices.Contains(wanted, name) {
			continue
		}
		last := ""
		for _, label := range strings.Split(labels, ",") {
			key, v, _ := strings.Cut(label, "=")
			switch v = strings.Trim(v, `"`); {
			case key == "namespace" && v != m.namespace:
				name = "of another namespace: " + name
			case key != "namespace":
				last = v
			}
		}
		to[name+" "+last] += value
	}
}

// twins is the page of a trigger about ScheduledJobs.
func (m meters) twins(t *testing.T, trigger int) string {
	t.Helper()
	page, err := harness.SchedulePage(t.Context(), m.Triggers[trigger])
	if err != nil {
		t.Fatal(err)
	}
	return page
}
