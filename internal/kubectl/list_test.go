package kubectl

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/dev/controlplane"
)

// setStatus plays the reconciler: it writes the status of a ScheduledJob.
func (w *world) setStatus(name string, status v1alpha1.ScheduledJobStatus) {
	w.Helper()
	text, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		w.Fatal(err)
	}
	if err := w.schedules().rest.Patch(types.MergePatchType).Namespace(w.ns).Resource(v1alpha1.ScheduledJobResource).Name(name).
		SubResource("status").Body(text).Do(w.Context()).Error(); err != nil {
		w.Fatal(err)
	}
}

// in returns a time so far in the future, of whole seconds.
func in(d time.Duration) *metav1.Time {
	return &metav1.Time{Time: time.Now().Add(d).Truncate(time.Second)}
}

// paged records the requests of the plugin, with their limits.
func paged(requests *[]string) func(*tool) {
	var mu sync.Mutex
	return onTheWay(func(q *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		*requests = append(*requests, q.Method+" "+q.URL.Path[strings.LastIndex(q.URL.Path, "/")+1:]+" limit="+q.URL.Query().Get("limit"))
	})
}

// TestList: what needs a user comes first, whatever the output, and it takes one list.
func TestList(t *testing.T) {
	w := newWorld(t)
	shop := func(s *v1alpha1.ScheduledJob) { s.Labels = map[string]string{"app": "shop"} }
	w.newScheduled("later", shop)
	w.setStatus("later", v1alpha1.ScheduledJobStatus{ObservedGeneration: 1, NextScheduleTime: in(time.Hour), LastRun: &v1alpha1.EndedRun{JobName: "later-1", Result: "Complete", CompletionTime: *in(-3 * time.Hour)}})
	w.newScheduled("sooner", shop)
	w.setStatus("sooner", v1alpha1.ScheduledJobStatus{ObservedGeneration: 1, NextScheduleTime: in(50 * time.Minute)})
	w.newScheduled("paused", func(s *v1alpha1.ScheduledJob) { s.Spec.Suspend = ptr.To(true) })
	w.setStatus("paused", v1alpha1.ScheduledJobStatus{ObservedGeneration: 1})
	w.newScheduled("fails", shop)
	w.setStatus("fails", v1alpha1.ScheduledJobStatus{ObservedGeneration: 1, NextScheduleTime: in(2 * time.Hour), Missed: 2,
		LastRun: &v1alpha1.EndedRun{JobName: "fails-1", Result: "Failed", Reason: "BackoffLimitExceeded", CompletionTime: *in(-30 * time.Hour)}})
	w.newScheduled("blocked", nil)
	w.setStatus("blocked", v1alpha1.ScheduledJobStatus{ObservedGeneration: 1, NextScheduleTime: in(3 * time.Hour),
		Conditions: []metav1.Condition{{Type: v1alpha1.BlockedCondition, Status: metav1.ConditionTrue, Reason: "Forbidden", Message: "exceeded quota", LastTransitionTime: metav1.Now()}}})
	for _, tt := range []struct {
		args string
		want string // lines with one blank between the cells
	}{
		{"", `NAME SCHEDULE NEXT LAST ACTIVE MISSED REASON
			blocked @yearly in 179m 0 0 Forbidden: exceeded quota
			fails @yearly in 119m Failed 30h ago 0 2 last run: BackoffLimitExceeded
			sooner @yearly in 49m 0 0
			later @yearly in 59m Complete 3h ago 0 0
			paused @yearly suspended 0 0`},
		{"-l app=shop -o name", "scheduledjob.jobstream.dev/fails\nscheduledjob.jobstream.dev/sooner\nscheduledjob.jobstream.dev/later"},
		{"-A -l app=shop -o jsonpath={.items[*].metadata.name}", "fails sooner later"},
	} {
		var requests []string
		got := call(t, "", append([]string{"list"}, strings.Fields(tt.args)...), w.here, paged(&requests))
		var have []string
		for line := range strings.Lines(got.out) {
			line = strings.Join(strings.Fields(line), " ")
			for was, is := range map[string]string{"in 50m": "in 49m", "in 60m": "in 59m", "in 120m": "in 119m", "in 3h": "in 179m"} {
				line = strings.ReplaceAll(line, was+" ", is+" ")
			}
			have = append(have, line)
		}
		if got.code != 0 || got.err != "" || strings.Join(have, "\n") != strings.ReplaceAll(tt.want, "\t", "") {
			t.Errorf("%q: want\n%s\ngot %s", tt.args, tt.want, got)
		}
		if all := strings.Join(requests, ", "); all != "GET scheduledjobs limit=500" {
			t.Errorf("%q: it has asked for %s", tt.args, all)
		}
	}
	if got := w.call("list", "-A", "-o", "wide"); got.code != 0 || !strings.HasPrefix(squeezed(got.out), "NAMESPACE NAME SCHEDULE NEXT LAST ACTIVE MISSED ZONE NEXT TIME LAST JOB REASON\n") || !strings.Contains(squeezed(got.out), " Failed 30h ago 0 2 UTC 20") {
		t.Errorf("got %s", got)
	}
	for args, says := range map[string]string{
		"-l app=nothing": "no ScheduledJob in the namespace " + w.ns + " has the labels app=nothing\n",
		"-n default":     "no ScheduledJobs in the namespace default: -A lists all namespaces, and -n chooses another\n",
	} {
		got := w.call(append([]string{"list"}, strings.Fields(args)...)...)
		if got.code != 0 || got.out != "" || got.err != says {
			t.Errorf("%s: got %s", args, got)
		}
	}
}

// TestListIsRefused: the error has the remedy.
func TestListIsRefused(t *testing.T) {
	w := newWorld(t)
	w.schedules()
	if got := w.call("list", "--as=guest"); got.code != ExitFailed || !strings.HasPrefix(got.err, "error: cannot list the ScheduledJobs: ") || !strings.HasSuffix(got.err, ": list your permissions with: kubectl auth can-i --list -n "+w.ns+"\n") {
		t.Errorf("got %s", got)
	}
	elsewhere := onTheWay(func(q *http.Request) {
		q.URL.Path = strings.Replace(q.URL.Path, "/"+v1alpha1.Group+"/", "/nowhere.example.com/", 1)
	})
	if got := call(t, "", []string{"list"}, w.here, elsewhere); got.code != ExitFailed || got.err != "error: this cluster does not know ScheduledJobs: ask an administrator to install them with: kubectl apply -k deploy/crd\n" {
		t.Errorf("got %s", got)
	}
}

// TestListOfThousands: 2,000 ScheduledJobs with full statuses arrive in pages.
func TestListOfThousands(t *testing.T) {
	w := newWorld(t)
	const n = 2000
	verdicts := make([]v1alpha1.TickVerdict, v1alpha1.RecentVerdicts)
	for i := range verdicts {
		verdicts[i] = v1alpha1.TickVerdict{Time: *in(-time.Hour), Count: 1, Verdict: "Started", JobName: strings.Repeat("j", 60), JobUID: types.UID(strings.Repeat("u", 36)), Result: "Complete", CompletionTime: in(0)}
	}
	w.newScheduled("s-0000", nil)
	w.setStatus("s-0000", v1alpha1.ScheduledJobStatus{ObservedGeneration: 1, Recent: verdicts, NextScheduleTime: in(time.Hour)})
	first, err := w.schedules().get(t.Context(), w.ns, "s-0000")
	if err != nil {
		t.Fatal(err)
	}
	w.store(v1alpha1.Group+"/"+v1alpha1.ScheduledJobResource, 1, n, func(i int) controlplane.Object {
		s := first.DeepCopy()
		s.APIVersion, s.Kind = v1alpha1.GroupVersion.String(), v1alpha1.ScheduledJobKind
		s.Name, s.UID = fmt.Sprintf("s-%04d", i), uuid.NewUUID()
		return s
	})
	var requests []string
	began := time.Now()
	got := call(t, "", []string{"list"}, w.here, paged(&requests))
	t.Logf("list of %d ScheduledJobs with %d verdicts each: %v, %d requests", n, len(verdicts), time.Since(began).Round(10*time.Millisecond), len(requests))
	if got.code != 0 || strings.Count(got.out, "\n") != n+1 || !strings.Contains(got.out, "\ns-1999 ") || len(requests) != n/500 {
		t.Errorf("%d lines after %q: %.300s", strings.Count(got.out, "\n"), requests, got)
	}
}
