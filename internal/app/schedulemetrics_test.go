package app

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// tick is a verdict on the nominal time so many minutes after noon.
func tick(minutes int, v events.Verdict, change ...func(*v1alpha1.TickVerdict)) v1alpha1.TickVerdict {
	out := v1alpha1.TickVerdict{Time: metav1.NewTime(noon.Add(time.Duration(minutes) * time.Minute)), Count: 1, Verdict: string(v)}
	for _, f := range change {
		f(&out)
	}
	return out
}

// until makes a verdict one on a range of n times.
func until(minutes int, n int64) func(*v1alpha1.TickVerdict) {
	return func(v *v1alpha1.TickVerdict) {
		v.Until, v.Count = &metav1.Time{Time: noon.Add(time.Duration(minutes) * time.Minute)}, n
	}
}

func because(reason string) func(*v1alpha1.TickVerdict) {
	return func(v *v1alpha1.TickVerdict) { v.Reason = reason }
}

func recent(v ...v1alpha1.TickVerdict) *v1alpha1.ScheduledJob {
	return &v1alpha1.ScheduledJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}, Status: v1alpha1.ScheduledJobStatus{Recent: v}}
}

func TestTicks(t *testing.T) {
	started, skipped := tick(0, events.Started), tick(1, events.Skipped)
	announced := started
	announced.Announced, announced.Result = true, "Complete"
	for _, tt := range []struct {
		name          string
		before, after *v1alpha1.ScheduledJob
		dropped       []events.TickDecided
		want          string // of the verdicts that are not 0
	}{
		{"the first status of all", recent(), recent(), nil, ""},
		{"one more", recent(started), recent(started, skipped), nil, "Skipped=1"},
		{"the same, announced and ended", recent(started), recent(announced), nil, ""},
		{"the oldest has made room", recent(started, skipped), recent(skipped, tick(2, events.Blocked)), nil, "Blocked=1"},
		{"a range of times", recent(started), recent(started, tick(1, events.Missed, until(9, 9))), nil, "Missed=9"},
		{"a range that begins like a single time", recent(tick(1, events.Missed)), recent(tick(1, events.Missed), tick(1, events.Missed, until(9, 9))), nil, "Missed=9"},
		{"every verdict", recent(), recent(started, skipped, tick(2, events.Missed), tick(3, events.Blocked), tick(4, events.NotCreated)), nil,
			"Blocked=1 Failed=1 Missed=1 Skipped=1 Started=1"},
		{"a Job that a user has started", recent(), recent(tick(0, events.Started, because(events.ReasonManual)), tick(1, events.Started, because(events.ReasonBackfill))), nil, ""},
		{"the same second as a Job that a user has started", recent(tick(0, events.Started, because(events.ReasonManual))),
			recent(tick(0, events.Started, because(events.ReasonManual)), started), nil, "Started=1"},
		{"a verdict that has left unannounced", recent(started), recent(skipped), []events.TickDecided{{Verdict: events.Started, Nominal: noon, Count: 1}}, "Skipped=1"},
		{"a verdict that found no room", recent(), recent(skipped), []events.TickDecided{{Verdict: events.Missed, Nominal: noon, Until: noon.Add(time.Hour), Count: 61}}, "Missed=61 Skipped=1"},
		{"a verdict of a forged state", recent(), recent(tick(0, "Owned"), tick(1, "Pwned")), nil, "other=2"},
		{"a number of a forged state", recent(), recent(tick(0, events.Missed, until(5, -7))), nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := counting()
			m.schedules.ScheduleStatusWritten(tt.before, tt.after, tt.dropped)
			got := series(t, m, `jobstream_ticks_total{namespace="shop",verdict="`)
			for _, v := range verdicts {
				if !strings.Contains(got, string(v)+`"} `) {
					t.Errorf("%s does not begin at 0:\n%s", v, got)
				}
				got = strings.TrimPrefix(strings.ReplaceAll("\n"+got, "\n"+string(v)+`"} 0`, ""), "\n")
			}
			if got := strings.NewReplacer(`"} `, "=", "\n", " ").Replace(got); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

func TestLatenessOfJobs(t *testing.T) {
	for _, tt := range []struct {
		name    string
		late    time.Duration
		bucket  string // the first that includes it
		outside string // the last that does not
		sum     string
	}{
		{"milliseconds", 20 * time.Millisecond, "0.025", "0.01", "0.02"},
		{"seconds", 2 * time.Second, "2.5", "1", "2"},
		{"after a downtime", 2 * time.Hour, "+Inf", "3600", "7200"},
		{"a clock that was set back", -time.Second, "0.01", "", "0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := counting()
			m.forTrigger()
			m.schedules.JobCreated("shop", noon, noon.Add(tt.late))
			m.podStarted("shop", noon, noon.Add(tt.late))
			for _, name := range []string{"jobstream_tick_job_lateness_seconds", "jobstream_tick_pod_lateness_seconds"} {
				got := series(t, m, name)
				for _, want := range []string{`_bucket{namespace="shop",le="` + tt.bucket + `"} 1`, `_sum{namespace="shop"} ` + tt.sum, `_count{namespace="shop"} 1`} {
					if !strings.Contains(got, want) {
						t.Errorf("%s: no %s in\n%s", name, want, got)
					}
				}
				if tt.outside != "" && !strings.Contains(got, `le="`+tt.outside+`"} 0`) {
					t.Errorf("%s: it is below %s:\n%s", name, tt.outside, got)
				}
			}
			if got := series(t, m, "cronjob_controller_job_creation_skew_duration_seconds"); !strings.Contains(got, "_sum "+tt.sum+"\n_count 1") {
				t.Errorf("Kubernetes' own has\n%s", got)
			}
		})
	}
}

// Kubernetes' buckets are among those of its metric, so that an alert on one of them keeps working.
func TestSkewHasTheBucketsOfKubernetes(t *testing.T) {
	m := counting()
	m.schedules.JobCreated("shop", noon, noon)
	got := series(t, m, "cronjob_controller_job_creation_skew_duration_seconds_bucket")
	for _, bucket := range []string{"1", "2", "4", "8", "16", "32", "64", "128", "256", "512", "+Inf"} {
		if !strings.Contains(got, `le="`+bucket+`"`) {
			t.Errorf("no bucket %s", bucket)
		}
	}
}
