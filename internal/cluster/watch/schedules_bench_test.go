package watch

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/cluster"
)

// idleSchedules plays an API server that has the given number of ScheduledJobs without work, and nothing else.
func idleSchedules(b *testing.B, many int) *rest.Config {
	b.Helper()
	until, next := metav1.NewTime(time.Now().Add(-time.Hour)), metav1.NewTime(time.Now().Add(24*time.Hour))
	var sent [][]byte
	for first := 0; first < many; first += cluster.PageSize {
		page := v1alpha1.ScheduledJobList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}}
		page.APIVersion, page.Kind = v1alpha1.GroupVersion.String(), "ScheduledJobList"
		if first+cluster.PageSize < many {
			page.Continue = strconv.Itoa(len(sent) + 1)
		}
		for i := range cluster.PageSize {
			n := first + i
			page.Items = append(page.Items, v1alpha1.ScheduledJob{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("nightly-earnings-report-%d", n), Namespace: fmt.Sprintf("team-%d", n%500),
					UID: types.UID(fmt.Sprintf("5ef034e0-1890-11e6-8935-%012d", n)), ResourceVersion: strconv.Itoa(n + 1), Generation: 1, CreationTimestamp: until},
				Spec: v1alpha1.ScheduledJobSpec{Schedule: fmt.Sprintf("%d %d * * *", n%60, n/60%24), SuccessfulJobsHistoryLimit: new(int32(3)), FailedJobsHistoryLimit: new(int32(1)),
					JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
						Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/reports/earnings:1.2.3", Args: []string{"--since=yesterday", "--to=s3://reports"},
							Env: []corev1.EnvVar{{Name: "REGION", Value: "eu"}, {Name: "LEVEL", Value: "info"}}}}}}}}},
				Status: v1alpha1.ScheduledJobStatus{ObservedGeneration: 1, DecidedUntil: &until, NextScheduleTime: &next, LastScheduleTime: &until, LastDecision: "Started", LastRun: &v1alpha1.EndedRun{JobName: "hello-zzzzz", Result: "Complete", CompletionTime: until}, Successful: 300,
					Conditions: []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Scheduled", LastTransitionTime: until}}},
			})
		}
		body, err := json.Marshal(page)
		if err != nil {
			b.Fatal(err)
		}
		sent = append(sent, body)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/apis/jobstream.dev/v1alpha1/scheduledjobs":
			n, _ := strconv.Atoi(r.URL.Query().Get("continue"))
			_, _ = w.Write(sent[n])
		case "/apis/batch/v1/jobs":
			_, _ = w.Write([]byte(`{"apiVersion":"batch/v1","kind":"JobList","metadata":{"resourceVersion":"9"},"items":[]}`))
		default:
			_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"PodList","metadata":{"resourceVersion":"9"},"items":[]}`))
		}
	}))
	b.Cleanup(server.Close)
	return &rest.Config{Host: server.URL, QPS: -1}
}

// BenchmarkRelistIdleSchedules prints what it costs a trigger to list 50,000 ScheduledJobs without work: the time, and the memory
// that is held at the end of the list.
func BenchmarkRelistIdleSchedules(b *testing.B) {
	const many = 50_000
	config := idleSchedules(b, many)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		b.Fatal(err)
	}
	schedules, err := cluster.NewScheduledJobs(config)
	if err != nil {
		b.Fatal(err)
	}
	sink := &memorySink{}
	w, err := New(Config{Client: client, ScheduledJobs: schedules, Sink: sink, Cluster: "c"})
	if err != nil {
		b.Fatal(err)
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for b.Loop() {
		before := heap()
		r, err := w.relist(b.Context())
		if err != nil || len(r.Schedules) != many || len(sink.facts) != 0 {
			b.Fatalf("%d ScheduledJobs, %d facts, %v", len(r.Schedules), len(sink.facts), err)
		}
		b.ReportMetric(float64(heap()-before)/many, "B/schedule-held")
		runtime.KeepAlive(r)
	}
}
