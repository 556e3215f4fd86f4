package app

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/census"
)

// observing is a trigger's metrics, and the censuses of two namespaces, each of which shows so many ScheduledJobs.
func observing(schedules int) (m *metrics, shop, lab *census.Census) {
	c := TriggerDefaults()
	c.ScheduledJobMetrics, c.MetricsAddress = schedules, "127.0.0.1:0"
	m = newMetrics()
	m.forTrigger()
	c.showSchedules(m)
	shop, lab = c.census(m), c.census(m)
	m.takeCensus(censuses{shop, lab})
	return m, shop, lab
}

func TestPendingPodsAndJobsThatBackOff(t *testing.T) {
	m, shop, lab := observing(0)
	for _, reason := range census.Reasons {
		if want := `reason="` + reason + `"} 0`; !strings.Contains(series(t, m, "jobstream_pending_pods{"), want) {
			t.Errorf("it does not begin with %s", want)
		}
	}
	shop.SawPod("shop", "job", events.Pod{UID: "a", Phase: events.Pending, Waiting: "ErrImagePull"})
	lab.SawPod("lab", "job", events.Pod{UID: "b", Phase: events.Pending, Waiting: "ErrImagePull"})
	lab.SawPod("lab", "job", events.Pod{UID: "c", Phase: events.Pending, Waiting: "Unheard"})
	lab.SawJob(events.Job{UID: "job", Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: v1alpha1.BackingOffCondition, Status: corev1.ConditionTrue}}}}, false)
	got := series(t, m, "jobstream_")
	for _, want := range []string{`pending_pods{reason="ErrImagePull"} 2`, `pending_pods{reason="other"} 1`, `pending_pods{reason="none"} 0`, "backing_off_jobs 1"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
}

// A trigger that serves no metrics remembers nothing for them.
func TestNoCensusWithoutMetrics(t *testing.T) {
	c := TriggerDefaults()
	for address, want := range map[string]bool{Off: false, "": false, "127.0.0.1:0": true} {
		c.MetricsAddress = address
		if got := c.census(newMetrics()) != nil; got != want {
			t.Errorf("%q: %v", address, got)
		}
	}
}

// twinned are the metrics that kube-state-metrics 2.17 has of each CronJob (docs/metrics/workload/cronjob-metrics.md), with the labels
// beside namespace and cronjob. It also has those of labels and annotations, which it shows only on request, and of the resourceVersion.
var twinned = map[string][]string{
	"kube_cronjob_info":                              {"concurrency_policy", "schedule", "timezone"},
	"kube_cronjob_created":                           nil,
	"kube_cronjob_next_schedule_time":                nil,
	"kube_cronjob_status_active":                     nil,
	"kube_cronjob_status_last_schedule_time":         nil,
	"kube_cronjob_status_last_successful_time":       nil,
	"kube_cronjob_spec_suspend":                      nil,
	"kube_cronjob_spec_starting_deadline_seconds":    nil,
	"kube_cronjob_spec_successful_job_history_limit": nil,
	"kube_cronjob_spec_failed_job_history_limit":     nil,
}

// nightly is a ScheduledJob of which kube-state-metrics would have everything to say, were it a CronJob.
func nightly(change ...func(*events.ScheduledJob)) events.ScheduledJob {
	at := func(minutes int) *metav1.Time {
		return &metav1.Time{Time: time.Unix(1000, 0).Add(time.Duration(minutes) * time.Minute)}
	}
	j := events.ScheduledJob{Namespace: "shop", Name: "nightly", UID: "1", Schedule: `0 2 * * "`, TimeZone: "Europe/Berlin", Created: time.Unix(1000, 0),
		ConcurrencyPolicy: v1alpha1.ForbidConcurrent, StartingDeadlineSeconds: new(int64(30)), SuccessfulJobs: 3, FailedJobs: 1,
		Status: v1alpha1.ScheduledJobStatus{NextScheduleTime: at(3), LastScheduleTime: at(1), LastSuccessfulTime: at(2), Active: make([]corev1.ObjectReference, 2)}}
	for _, f := range change {
		f(&j)
	}
	return j
}

func TestTwinsOfKubeStateMetrics(t *testing.T) {
	m, shop, lab := observing(2)
	shop.SawSchedule(nightly())
	lab.SawSchedule(nightly(func(j *events.ScheduledJob) {
		*j = events.ScheduledJob{Namespace: "lab", Name: "once", UID: "2", Suspended: true, ConcurrencyPolicy: v1alpha1.AllowConcurrent, Created: time.Unix(2000, 0)}
	}))
	code, page := get(t, m.handler(), twinsPath)
	if code != http.StatusOK {
		t.Fatalf("%d: %s", code, page)
	}
	var got []string
	for line := range strings.Lines(page) {
		if s, ours := strings.CutPrefix(strings.TrimSpace(line), "kube_cronjob_"); ours {
			got = append(got, s)
		}
	}
	want := []string{
		`created{cronjob="nightly",namespace="shop"} 1000`,
		`created{cronjob="once",namespace="lab"} 2000`,
		`info{concurrency_policy="Allow",cronjob="once",namespace="lab",schedule="",timezone="UTC"} 1`,
		`info{concurrency_policy="Forbid",cronjob="nightly",namespace="shop",schedule="0 2 * * \"",timezone="Europe/Berlin"} 1`,
		`next_schedule_time{cronjob="nightly",namespace="shop"} 1180`,
		`spec_failed_job_history_limit{cronjob="nightly",namespace="shop"} 1`,
		`spec_failed_job_history_limit{cronjob="once",namespace="lab"} 0`,
		`spec_starting_deadline_seconds{cronjob="nightly",namespace="shop"} 30`,
		`spec_successful_job_history_limit{cronjob="nightly",namespace="shop"} 3`,
		`spec_successful_job_history_limit{cronjob="once",namespace="lab"} 0`,
		`spec_suspend{cronjob="nightly",namespace="shop"} 0`,
		`spec_suspend{cronjob="once",namespace="lab"} 1`,
		`status_active{cronjob="nightly",namespace="shop"} 2`,
		`status_active{cronjob="once",namespace="lab"} 0`,
		`status_last_schedule_time{cronjob="nightly",namespace="shop"} 1060`,
		`status_last_successful_time{cronjob="nightly",namespace="shop"} 1120`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if _, page := get(t, m.handler(), "/metrics"); strings.Contains(page, "kube_cronjob") {
		t.Error("they are among the program's own metrics, too")
	}
	shop.MissedSchedule("1")
	if _, page := get(t, m.handler(), twinsPath); strings.Contains(page, "nightly") || !strings.Contains(page, "once") {
		t.Errorf("after its deletion:\n%s", page)
	}
}

func TestTwinsAreThoseOfKubeStateMetrics(t *testing.T) {
	m, shop, _ := observing(1)
	shop.SawSchedule(nightly())
	families, err := m.twins.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		labels, known := twinned[f.GetName()]
		var got []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			if name := l.GetName(); name != "namespace" && name != "cronjob" {
				got = append(got, name)
			}
		}
		if slices.Sort(got); !known || !slices.Equal(got, labels) || f.GetType().String() != "GAUGE" {
			t.Errorf("%s: known %v, labels %q, want %q", f.GetName(), known, got, labels)
		}
	}
	if len(families) != len(twinned) {
		t.Errorf("%d of %d", len(families), len(twinned))
	}
}

func TestTwinsAreOffByDefault(t *testing.T) {
	m, shop, _ := observing(TriggerDefaults().ScheduledJobMetrics)
	shop.SawSchedule(nightly())
	if code, page := get(t, m.handler(), twinsPath); code != http.StatusNotFound {
		t.Errorf("%d: %s", code, page)
	}
	if n := len(shop.Schedules()); n != 0 {
		t.Errorf("%d ScheduledJobs are remembered for nothing", n)
	}
}

// Watches, turns and scrapes come at once; with the race detector this test finds what they share without a lock.
func TestEverythingAtOnce(t *testing.T) {
	m, shop, lab := observing(5)
	m.forReconciler()
	m.tenants.allow(3)
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range 200 {
				uid := types.UID(fmt.Sprint(worker, "/", i%20))
				everything(m, fmt.Sprint("namespace-", i%7))
				shop.SawSchedule(nightly(func(j *events.ScheduledJob) { j.UID, j.Name = uid, string(uid) }))
				lab.SawPod("lab", "job", events.Pod{UID: uid, Phase: events.Pending})
				shop.SawJob(events.Job{UID: uid, Owner: &events.RunOwner{Nominal: noon}}, true)
				shop.SawPod("shop", uid, events.Pod{UID: uid, Phase: events.Running})
				shop.MissedSchedule(uid)
				lab.MissedPod(uid)
				if i%50 == 0 && worker < twinsAtOnce {
					for _, path := range []string{"/metrics", twinsPath} {
						if code, page := get(t, m.handler(), path); code != http.StatusOK {
							t.Errorf("%s: %d: %s", path, code, page)
						}
					}
				}
			}
		})
	}
	all.Wait()
	if got := series(t, m, `jobstream_pending_pods{reason="none"} `); got != "0" || len(shop.Schedules()) != 0 {
		t.Errorf("%s Pods and %d ScheduledJobs are left", got, len(shop.Schedules()))
	}
}

// BenchmarkTwins prints what a page of 10,000 ScheduledJobs takes.
func BenchmarkTwins(b *testing.B) {
	m, shop, _ := observing(10_000)
	for i := range 10_000 {
		shop.SawSchedule(nightly(func(j *events.ScheduledJob) {
			j.UID, j.Name = types.UID(fmt.Sprint(i)), fmt.Sprint("nightly-", i)
		}))
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.twins.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}
