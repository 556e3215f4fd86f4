package app

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/app/apptest"
)

// scheduledJobs lets the API server list one ScheduledJob, which can be suspended and is seen to be at once.
func scheduledJobs(api *apptest.API) (suspended *atomic.Bool) {
	suspended = &atomic.Bool{}
	object := func() v1alpha1.ScheduledJob {
		s := v1alpha1.ScheduledJob{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ScheduledJobKind},
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nightly", UID: "u"}}
		s.Spec.Suspend = new(suspended.Load())
		return s
	}
	const path = " /apis/jobstream.dev/v1alpha1"
	api.HandleFunc("GET"+path+"/scheduledjobs", func(w http.ResponseWriter, _ *http.Request) {
		apptest.Answer(w, v1alpha1.ScheduledJobList{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ScheduledJobKind + "List"},
			ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []v1alpha1.ScheduledJob{object()}})
	})
	api.HandleFunc("PATCH"+path+"/namespaces/shop/scheduledjobs/nightly", func(w http.ResponseWriter, _ *http.Request) {
		suspended.Store(true)
		apptest.Answer(w, object())
	})
	return suspended
}

// jobs lets the API server list one unfinished Job for so many times, and then none. A pattern with the host beats the one that
// apptest has.
func jobs(api *apptest.API, times int32) *atomic.Int32 {
	left := &atomic.Int32{}
	left.Store(times)
	api.HandleFunc("GET 127.0.0.1/apis/batch/v1/jobs", func(w http.ResponseWriter, _ *http.Request) {
		list := batchv1.JobList{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "JobList"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
		if left.Add(-1) >= 0 {
			list.Items = []batchv1.Job{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pi", UID: "j"},
				Spec: batchv1.JobSpec{ManagedBy: new(v1alpha1.DefaultManagedBy), Suspend: new(true)}}}
		}
		apptest.Answer(w, list)
	})
	return left
}

// Of a cluster without anything of jobstream, and without ScheduledJobs, one may take leave. The bus is not needed.
func TestDrainOfNothing(t *testing.T) {
	api := apptest.Start(t)
	code, out, complaint := call(t, DrainCommand(), "--kubeconfig="+api.Kubeconfig)
	if code != ExitFine || complaint != "" || !strings.HasPrefix(out, "nothing of jobstream is left unfinished") {
		t.Errorf("exit code %d: %s%s", code, out, complaint)
	}
	if code, out, _ := call(t, DrainCommand(), "--kubeconfig="+api.Kubeconfig, "--wait=1h", "-o=json"); code != ExitFine || strings.Join(strings.Fields(out), "") != `{"scheduledJobs":[],"jobs":[],"pods":[]}` {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// What it shows, and that it changes nothing unless it is told to twice.
func TestDrainShowsWhatIsLeft(t *testing.T) {
	api := apptest.Start(t)
	suspended := scheduledJobs(api)
	where := "--kubeconfig=" + api.Kubeconfig
	for _, tt := range []struct {
		name      string
		args      []string
		code      int
		suspended bool
		says      []string
	}{
		{"a look", nil, ExitFatal, false, []string{"ScheduledJobs at work: 1\n", "shop       nightly  at work", "left: 0 unfinished Jobs, 0 Pods with our finalizer, 1 ScheduledJob at work"}},
		{"what would be suspended", []string{"--suspend-schedules"}, ExitFatal, false, []string{"nothing was changed: add --yes"}},
		{"one that is at work is not waited for", []string{"--wait"}, ExitFatal, false, []string{"left: "}},
		{"suspended", []string{"--suspend-schedules", "--yes"}, ExitFine, true, []string{"suspended ScheduledJob shop/nightly\n", "nothing of jobstream"}},
		{"again", []string{"--suspend-schedules", "--yes", "-o=json"}, ExitFine, true, nil},
	} {
		code, out, complaint := call(t, DrainCommand(), append([]string{where}, tt.args...)...)
		if code != tt.code || suspended.Load() != tt.suspended {
			t.Errorf("%s: exit code %d, suspended %v: %s%s", tt.name, code, suspended.Load(), out, complaint)
		}
		for _, want := range tt.says {
			if !strings.Contains(out+complaint, want) {
				t.Errorf("%s: it does not say %q: %s%s", tt.name, want, out, complaint)
			}
		}
	}
}

// It waits until the Job has gone, or the time is over, and says so.
func TestDrainWaits(t *testing.T) {
	api := apptest.Start(t)
	left := jobs(api, 2)
	code, out, complaint := call(t, DrainCommand(), "--kubeconfig="+api.Kubeconfig, "--wait=1m")
	if code != ExitFine || !strings.Contains(out, " left: 1 unfinished Job (1 suspended), ") || !strings.HasSuffix(out, "(docs/uninstall.md)\n") || left.Load() != -1 {
		t.Errorf("exit code %d: %s%s", code, out, complaint)
	}
	left.Store(1000)
	began := time.Now()
	code, out, complaint = call(t, DrainCommand(), "--kubeconfig="+api.Kubeconfig, "--wait=1500ms", "-o=json")
	var answer drained
	if err := json.Unmarshal([]byte(out), &answer); err != nil || code != ExitFatal || len(answer.Jobs) != 1 || !answer.Jobs[0].Suspended || !strings.Contains(complaint, "1 unfinished Job") {
		t.Errorf("exit code %d: %v: %s%s", code, err, out, complaint)
	}
	if took := time.Since(began); took < 1500*time.Millisecond || took > soon {
		t.Errorf("it took %v", took)
	}
}
