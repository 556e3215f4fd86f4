package watch

import (
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/cluster"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
	"github.com/jobstream/jobstream/internal/dev/controlplane"
	"github.com/jobstream/jobstream/internal/dev/controlplane/controlplanetest"
)

// TestWatcherWithoutScheduledJobs begins without their definition, on an API server of its own.
func TestWatcherWithoutScheduledJobs(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a second control plane")
	}
	if _, err := controlplane.Assets(); err != nil {
		t.Skip("needs a real API server: ", err)
	}
	cp := controlplanetest.Start(t, controlplane.Config{})
	client, config, err := cluster.NewClient(cluster.ClientConfig{Kubeconfig: cp.Kubeconfig()})
	if err != nil {
		t.Fatal(err)
	}
	schedules, err := cluster.NewScheduledJobs(config)
	if err != nil {
		t.Fatal(err)
	}
	alarm := &memoryAlarm{}
	x := startWatcher(t, &memorySink{}, client, nil, func(c *Config) {
		c.ScheduledJobs, c.Alarm, c.lookAgain = schedules, alarm, 100*time.Millisecond
	})
	w := &world{World: &clustertest.World{T: t, Interface: client, NS: "default", Admin: schedules}}
	logged := func(what string) {
		t.Helper()
		clustertest.Eventually(t, func() string {
			if strings.Contains(x.log.String(), what) {
				return ""
			}
			return what + "; log:\n" + x.log.String()
		})
	}
	works := func(name string) {
		t.Helper()
		_, key := w.CreateJob(name)
		clustertest.Eventually(t, func() string {
			if len(x.sink.about(key)) == 0 {
				return "a fact about the Job " + name + "; log:\n" + x.log.String()
			}
			return ""
		})
	}
	logged("this cluster has no ScheduledJobs")
	works("early")

	if err := cluster.InstallScheduledJobs(t.Context(), cp.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	sj, key := w.CreateSchedule("nightly")
	clustertest.Eventually(t, func() string {
		if _, known := alarm.of(sj.UID); !known || len(x.sink.about(key)) == 0 {
			return "the ScheduledJob; log:\n" + x.log.String()
		}
		return ""
	})
	works("middle")

	admin, err := dynamic.NewForConfig(cp.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	x.log.Reset()
	if err := admin.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}).Delete(t.Context(), "scheduledjobs.jobstream.dev", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	logged("this cluster has no ScheduledJobs")
	if len(of[events.ScheduledJobGone](x.sink, key)) == 0 {
		t.Error("no fact reported that it is gone")
	}
	works("late")
	if log := x.log.String(); strings.Count(log, "this cluster has no ScheduledJobs") != 1 || strings.Count(log, "level=WARN") > 1 {
		t.Errorf("log:\n%s", log)
	}
}

// TestWatcherThatMayNotSeeScheduledJobs works for Jobs, and logs what is missing.
func TestWatcherThatMayNotSeeScheduledJobs(t *testing.T) {
	w := newWorld(t)
	client, schedules, seen := clustertest.Clients(t)
	seen.Inject(func(q *http.Request) (*http.Response, error) {
		if strings.HasSuffix(q.URL.Path, "/v1alpha1/scheduledjobs") {
			return clustertest.Answer(q, http.StatusForbidden, metav1.Status{Status: "Failure", Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden}), nil
		}
		return nil, nil
	})
	x := startWatcher(t, &memorySink{}, client, seen, func(c *Config) { c.ScheduledJobs, c.lookAgain = schedules, 20*time.Millisecond })
	_, key := w.CreateJob("pi")
	clustertest.Eventually(t, func() string {
		if len(x.sink.about(key)) == 0 {
			return "a fact about the Job"
		}
		return ""
	})
	if log := x.log.String(); strings.Count(log, "level=WARN") != 1 || !strings.Contains(log, "give its role") {
		t.Errorf("log:\n%s", log)
	}
	sj, key := w.CreateSchedule("nightly")
	seen.Inject(nil)
	clustertest.Eventually(t, func() string {
		if len(x.sink.about(key)) == 0 {
			return "a fact about " + sj.Name + "; log:\n" + x.log.String()
		}
		return ""
	})
}

// TestScheduledJobsWatchEnds: a watch that cannot be resumed starts a new session, which resets the alarm.
func TestScheduledJobsWatchEnds(t *testing.T) {
	w := newWorld(t)
	sj, _ := w.CreateSchedule("nightly")
	client, schedules, seen := clustertest.Clients(t)
	ends := make(chan struct{}, 1)
	ends <- struct{}{}
	seen.Inject(func(q *http.Request) (*http.Response, error) {
		if clustertest.IsWatch(q, "scheduledjobs") {
			select {
			case <-ends:
				return clustertest.Answer(q, http.StatusGone, metav1.Status{Status: "Failure", Code: http.StatusGone, Reason: metav1.StatusReasonExpired}), nil
			default:
			}
		}
		return nil, nil
	})
	alarm := &memoryAlarm{}
	startWatcher(t, &memorySink{}, client, seen, func(c *Config) { c.ScheduledJobs, c.Alarm = schedules, alarm })
	clustertest.Eventually(t, func() string {
		alarm.mu.Lock()
		defer alarm.mu.Unlock()
		if _, known := alarm.known[sj.UID]; !known || alarm.resets < 2 {
			return "the alarm to be wound up again"
		}
		return ""
	})
}
