package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// What usual Jobs cost the API server, beside what the same Jobs cost under Kubernetes' own controller at the same time: -v prints it.
// The number of status writes is bounded, and no status shows more active Pods than exist.
func TestStatusWritesOfUsualJobs(t *testing.T) {
	t.Parallel()
	const each = 4
	// By its default of 20 requests a second the built-in controller would keep this test, and so all tests, waiting for minutes.
	s := own(t, harness.Config{Deployed: true, ControllerManagerFlags: []string{"--kube-api-qps=5000", "--kube-api-burst=5000"}})
	cases := []struct {
		name, script string
		size         func(*batchv1.JobSpec)
		ends         batchv1.JobConditionType
		most         int  // status writes of one Job
		paced        bool // its Pods change so often that it may have one more for each second that a slow machine takes
	}{
		{"1 Pod of 0.05 s", "sleep 0.05", harness.Size(1, 1, 0), batchv1.JobComplete, 4, false},
		{"1 Pod of 2 s", "sleep 2", harness.Size(1, 1, 0), batchv1.JobComplete, 4, false},
		{"1 Pod of 20 s", "sleep 20", harness.Size(1, 1, 0), batchv1.JobComplete, 4, false},
		{"1 Pod that fails, and is tried again", "exit 1", harness.Size(1, 1, 1), batchv1.JobFailed, 8, false},
		{"20 Pods of 5 s at once", "sleep 5", harness.Size(20, 20, 0), batchv1.JobComplete, 15, true},
		{"100 Pods of 1 s, 20 at once", "sleep 1", harness.Size(100, 20, 0), batchv1.JobComplete, 50, true},
	}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nJobs\tstatus writes\tof the built-in controller\tother requests of jobstream's programs")
	lines := make([]string, len(cases))
	t.Run("of", func(t *testing.T) {
		for i, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				ours, theirs := cost(t, s, c.script, c.size, c.ends, each, true), cost(t, s, c.script, c.size, c.ends, each, false)
				lines[i] = fmt.Sprintf("%d x %s\t%d\t%d\t%s", each, c.name, ours.writes, theirs.writes, ours.others)
				most := c.most
				if c.paced {
					most += min(int(ours.took.Seconds()), 2*most)
				}
				if ours.writes > each*most {
					t.Errorf("%d status writes for %d Jobs in %v, at most %d for each are expected", ours.writes, each, ours.took, most)
				}
			})
		}
	})
	for _, line := range lines {
		fmt.Fprintln(w, line)
	}
	w.Flush()
	t.Log(table.String())
}

// What the runs of a ScheduledJob cost the API server: -v prints it. For each run there are at most two status writes of the ScheduledJob, one
// that lists the Job and one that counts its end.
func TestRequestsOfScheduledRuns(t *testing.T) {
	t.Parallel()
	s := own(t, harness.Config{Deployed: true})
	p := s.Space(t)
	sj := p.Schedule(harness.Every("tick", "*/3 * * * * *", "true", harness.KeepAll, func(s *v1alpha1.ScheduledJobSpec) { s.ConcurrencyPolicy = v1alpha1.ForbidConcurrent }))
	const least = 10
	p.AwaitSchedule("tick", timeout, "to have run", func(s *v1alpha1.ScheduledJob) bool { return s.Status.Successful >= least })
	p.Reschedule("tick", `{"suspend":true}`)
	end := p.AwaitSchedule("tick", timeout, "to be at rest", func(s *v1alpha1.ScheduledJob) bool {
		return meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.SuspendedCondition) && len(s.Status.Active) == 0
	})
	requests, err := s.Requests(p.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	runs, all := len(p.Runs(sj.UID)), map[string]int{}
	for _, r := range requests {
		if strings.HasPrefix(r.Agent, "jobstream") {
			all[r.Verb+" "+r.Resource]++
		}
	}
	t.Logf("%d runs, of one Pod each: %v", runs, all)
	writes := 0
	for kind, n := range all {
		if strings.Contains(kind, "scheduledjobs/status") {
			writes += n
		}
	}
	// And those of the first status and the suspension. On a slow machine a Job may still run at the next time, which is then skipped.
	others := int(end.Status.DecidedUntil.Sub(sj.CreationTimestamp.Time)/(3*time.Second)) + 1 - runs
	if most := 2*runs + max(0, others) + 4; writes == 0 || writes > most {
		t.Errorf("%d status writes for %d runs and %d other times, at most %d are expected", writes, runs, others, most)
	}
}

// costs are requests for the Jobs of one namespace.
type costs struct {
	writes int
	others string
	took   time.Duration
}

// cost runs the same Job so many times at once, in a namespace of its own.
func cost(t *testing.T, s *harness.System, script string, size func(*batchv1.JobSpec), ends batchv1.JobConditionType, times int, managed bool) (c costs) {
	t.Helper()
	p, began := s.Space(t), time.Now()
	for i := range times {
		j := harness.Shell(fmt.Sprintf("job-%d", i), script, size)
		if !managed {
			j.Spec.ManagedBy = nil
		}
		p.Apply(j)
	}
	stop := watchActive(t, p)
	for i := range times {
		p.AwaitEnd(fmt.Sprintf("job-%d", i), ends, timeout)
	}
	c.took = time.Since(began)
	stop()
	requests, err := s.Requests(p.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	c.writes = harness.Count(requests, harness.StatusWrite)
	others := map[string]int{}
	for _, r := range requests {
		if strings.HasPrefix(r.Agent, "jobstream") && !harness.StatusWrite(r) {
			others[r.Verb+" "+r.Resource]++
		}
	}
	c.others = fmt.Sprint(others)
	return c
}

// watchActive fails the test when a status shows more active Pods than exist. The function that it returns ends that.
func watchActive(t *testing.T, p *harness.Space) (stop func()) {
	t.Helper()
	w, err := p.Client.BatchV1().Jobs(p.Namespace).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range w.ResultChan() {
			j, ok := e.Object.(*batchv1.Job)
			if !ok || j.Status.Active == 0 {
				continue
			}
			pods, err := p.Client.CoreV1().Pods(p.Namespace).List(context.WithoutCancel(t.Context()), metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + j.Name})
			if err == nil && int(j.Status.Active) > len(pods.Items) {
				t.Errorf("the status of %s shows %d active Pods, %d exist: %s", j.Name, j.Status.Active, len(pods.Items), harness.Brief(j.Status))
			}
		}
	}()
	return func() {
		w.Stop()
		<-done
	}
}
