package kubectl

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

// onTheWay passes every request of the plugin to look first, which may change it.
func onTheWay(look func(*http.Request)) func(*tool) {
	return func(p *tool) {
		before := p.config.WrapConfigFn
		p.config.WrapConfigFn = func(c *rest.Config) *rest.Config {
			if before != nil {
				c = before(c)
			}
			c.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return roundTrip(func(q *http.Request) (*http.Response, error) {
					q = q.Clone(q.Context())
					look(q)
					return next.RoundTrip(q)
				})
			})
			return c
		}
	}
}

// youngAge is an age below two minutes.
var youngAge = regexp.MustCompile(`\b\d+s\b`)

// TestOverview: the overview of a namespace takes one list of Jobs and one of ScheduledJobs.
func TestOverview(t *testing.T) {
	w := newWorld(t)
	w.newScheduled("nightly", func(s *v1alpha1.ScheduledJob) {
		s.Labels, s.Spec.Suspend = map[string]string{"app": "orders", v1alpha1.SuspendedByLabel: "drain"}, ptr.To(true)
	})
	w.newJob("render", func(j *batchv1.Job) {
		j.Labels, j.Spec.Completions = map[string]string{"app": "orders"}, ptr.To[int32](200)
	})
	w.newJob("bad", nil)
	w.end("bad", batchv1.JobFailureTarget, batchv1.JobFailed)
	w.newJob("done", nil)
	w.end("done", batchv1.JobSuccessCriteriaMet, batchv1.JobComplete)
	w.newJob("theirs", func(j *batchv1.Job) { j.Spec.ManagedBy = nil })
	var mu sync.Mutex
	var asked []string
	note := onTheWay(func(q *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, q.Method+" "+q.URL.Path[strings.LastIndex(q.URL.Path, "/")+1:]+" limit="+q.URL.Query().Get("limit"))
	})
	for _, tt := range []struct {
		args string
		want []string // the beginnings of the lines, with one blank between the cells
	}{
		{"", []string{
			"Jobs: 1 unfinished, 1 complete, 1 failed, 1 that other controllers run",
			"JOB STATE SUCCEEDED ACTIVE FAILED STARTED AGE REASON",
			"render Waiting 0/200 0 0 ",
			"",
			"Failed in the last 24 hours: 1",
			"JOB ENDED SUCCEEDED FAILED AGE REASON",
			"bad 0s ago 0/1 0 0s Because: of a test",
			"",
			"ScheduledJobs: 1, 1 suspended",
			"SCHEDULEDJOB SCHEDULE ZONE NEXT IN LAST ACTIVE MISSED REASON",
			"nightly @yearly UTC suspended by drain 0 0",
		}},
		{"-l app=orders", []string{"Jobs: 1 unfinished", "JOB STATE", "render Waiting 0/200", "", "ScheduledJobs: 1, 1 suspended", "SCHEDULEDJOB SCHEDULE", "nightly @yearly"}},
		{"-l app=nothing", []string{"no Job of jobstream and no ScheduledJob in the namespace " + w.ns + " has the labels app=nothing"}},
		{"-l app=orders -o name", []string{"job.batch/render", "scheduledjob.jobstream.dev/nightly"}},
		{"-l app=orders -A -o jsonpath={.items[*].metadata.name}", []string{"render nightly"}},
	} {
		asked = nil
		got := call(t, "", strings.Fields(tt.args), w.here, note)
		lines := strings.Split(strings.TrimSuffix(got.out, "\n"), "\n")
		ok := got.code == 0 && got.err == "" && len(lines) == len(tt.want)
		for i := 0; ok && i < len(lines); i++ {
			line := strings.Join(strings.Fields(lines[i]), " ") + " "
			line = youngAge.ReplaceAllString(line, "0s")
			ok = strings.HasPrefix(line, tt.want[i])
		}
		if !ok {
			t.Errorf("%q: want\n%s\ngot %s", tt.args, strings.Join(tt.want, "\n"), got)
		}
		if requests := strings.Join(asked, ", "); requests != "GET jobs limit=500, GET scheduledjobs limit=500" {
			t.Errorf("%q: it has asked for %s", tt.args, requests)
		}
	}
	if got := w.call("-A"); got.code != 0 || !strings.Contains(got.out, "NAMESPACE ") || !strings.Contains(got.out, "\n"+w.ns+" ") {
		t.Errorf("got %s", got)
	}
}

// TestOverviewOfNothing: an empty overview explains how to begin; with -o it is an empty list.
func TestOverviewOfNothing(t *testing.T) {
	w := newWorld(t)
	w.schedules()
	if got := w.call(); got.code != 0 || got.err != "" || got.out != "no Jobs yet in the namespace "+w.ns+": kubectl jobstream run NAME --image=IMAGE -- COMMAND makes one\n" {
		t.Errorf("got %s", got)
	}
	got := w.call("-o", "json")
	var list metav1.List
	if err := json.Unmarshal([]byte(got.out), &list); err != nil || got.code != 0 || got.err != "" || list.Kind != "List" || list.Items == nil {
		t.Errorf("%v: %s", err, got)
	}
	if got := w.call("-o", "name"); got.code != 0 || got.out+got.err != "" {
		t.Errorf("got %s", got)
	}
}

// TestOverviewWithoutTheKind: Jobs need no ScheduledJobs.
func TestOverviewWithoutTheKind(t *testing.T) {
	w := newWorld(t)
	w.newJob("render", nil)
	elsewhere := onTheWay(func(q *http.Request) {
		q.URL.Path = strings.Replace(q.URL.Path, "/"+v1alpha1.Group+"/", "/nowhere.example.com/", 1)
	})
	got := call(t, "", nil, w.here, elsewhere)
	if got.code != 0 || got.err != "" || !strings.Contains(got.out, "\nrender ") || !strings.HasSuffix(got.out, "\n\nThis cluster does not know ScheduledJobs: install them with: kubectl apply -k deploy/crd\n") {
		t.Errorf("got %s", got)
	}
	if got := call(t, "", []string{"-o", "name"}, w.here, elsewhere); got.code != 0 || got.out != "job.batch/render\n" {
		t.Errorf("got %s", got)
	}
}

// TestOverviewIsForbidden: a user who may not list ScheduledJobs gets the Jobs, and a note on what is missing.
func TestOverviewIsForbidden(t *testing.T) {
	w := newWorld(t)
	w.newScheduled("nightly", nil)
	w.newJob("render", nil)
	w.allow("looker", []string{"list", "create"})
	w.allow("maker", []string{"create"})
	got := w.call("--as=looker")
	if got.code != ExitFailed || !strings.Contains(got.out, "\nrender ") || !strings.HasPrefix(got.err, "error: cannot list the ScheduledJobs: ") {
		t.Errorf("got %s", got)
	}
	if got := w.call("--as=maker"); got.code != ExitFailed || got.out != "" || !strings.HasPrefix(got.err, "error: cannot list the Jobs: ") {
		t.Errorf("got %s", got)
	}
}

// TestOverviewOfThousands: more Jobs than fit into one response arrive page by page, and the lines still fit on a screen.
func TestOverviewOfThousands(t *testing.T) {
	w := newWorld(t)
	w.schedules()
	const n = 520
	var made sync.WaitGroup
	for worker := range 8 {
		made.Go(func() {
			for i := worker; i < n; i += 8 {
				j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("j-%03d", i)}, Spec: batchv1.JobSpec{ManagedBy: ptr.To(v1alpha1.DefaultManagedBy), Template: podTemplate}}
				if _, err := w.BatchV1().Jobs(w.ns).Create(t.Context(), j, metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	made.Wait()
	got := w.call()
	if lines := strings.Count(got.out, "\n"); got.code != 0 || lines != 2+screenful+1 || !strings.HasPrefix(got.out, "Jobs: 520 unfinished\n") ||
		!strings.HasSuffix(got.out, "\nand 500 more: 500 Waiting (-o wide shows all)\n") {
		t.Errorf("%d lines: %s", lines, got)
	}
	if got := w.call("-o", "wide"); strings.Count(got.out, "\n") != 2+n {
		t.Errorf("%d lines", strings.Count(got.out, "\n"))
	}
}
