package kubectl

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/dev/controlplane"
	"github.com/jobstream/jobstream/internal/finding"
)

// asked returns the causes that "why" reports so long after now.
func (w *world) asked(after time.Duration, args ...string) []finding.Finding {
	w.Helper()
	return w.findings(args, w.here, func(p *tool) { p.now = func() time.Time { return time.Now().Add(after) } })
}

// findings returns the causes that "why" reports.
func (w *world) findings(args []string, change ...func(*tool)) []finding.Finding {
	w.Helper()
	got := call(w.T, "", append([]string{"why", "-o", "json"}, args...), change...)
	var answer struct{ Findings []finding.Finding }
	if err := json.Unmarshal([]byte(got.out), &answer); err != nil || got.code != 0 || len(answer.Findings) == 0 {
		w.Fatalf("%v: got %s", err, got)
	}
	return answer.Findings
}

// newPod creates a Pod of the Job, and writes its status.
func (w *world) newPod(j *batchv1.Job, name string, status corev1.PodStatus) *corev1.Pod {
	w.Helper()
	owner := metav1.NewControllerRef(j, batchv1.SchemeGroupVersion.WithKind(jobKind))
	p, err := w.CoreV1().Pods(w.ns).Create(w.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{*owner},
		Labels: map[string]string{batchv1.ControllerUidLabel: string(j.UID)}}, Spec: podTemplate.Spec}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	p.Status = status
	if p, err = w.CoreV1().Pods(w.ns).UpdateStatus(w.Context(), p, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
	return p
}

// warn writes a Warning Event about the Job.
func (w *world) warn(j *batchv1.Job, reason, message string) *corev1.Event {
	w.Helper()
	e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{GenerateName: j.Name + "."}, Type: corev1.EventTypeWarning, Reason: reason, Message: message, LastTimestamp: metav1.Now(),
		InvolvedObject: corev1.ObjectReference{Kind: jobKind, Namespace: w.ns, Name: j.Name, UID: j.UID}}
	e, err := w.CoreV1().Events(w.ns).Create(w.Context(), e, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return e
}

// started plays the controller that has begun to process the Job.
func (w *world) started(name string, conditions ...batchv1.JobCondition) *batchv1.Job {
	w.Helper()
	j := w.job(name)
	j.Status.StartTime, j.Status.Conditions = ptr.To(metav1.Now()), conditions
	j, err := w.BatchV1().Jobs(w.ns).UpdateStatus(w.Context(), j, metav1.UpdateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return j
}

var unschedulable = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
	Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available: 3 Insufficient cpu."}}}

// TestWhyNothingHappens: no jobstream runs here, so what is created waits for it.
func TestWhyNothingHappens(t *testing.T) {
	w := newWorld(t)
	w.schedules() // first, since it may take longer than a Job counts as new
	w.newJob("pi", nil)
	w.newJob("theirs", func(j *batchv1.Job) { j.Spec.ManagedBy = nil })
	w.newJob("suspended", func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) })
	w.newScheduled("nightly", nil)
	w.newScheduled("due", nil)
	next := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	w.scheduleStatus("due", fmt.Sprintf(`{"observedGeneration":1,"nextScheduleTime":%q}`, next.UTC().Format(time.RFC3339)))
	for _, tt := range []struct {
		object string
		after  time.Duration
		first  string
		level  finding.Level
		says   string
	}{
		{"pi", 0, "new", finding.Warn, "its controller has not processed it yet"},
		{"pi", time.Hour, "controller", finding.Fail, "jobstream has not touched it since its creation 60m ago"},
		{"theirs", time.Hour, "managed by", finding.Fail, "spec.managedBy is not set, so it belongs to the built-in Job controller"},
		{"suspended", time.Hour, "suspended", finding.Fail, "when it was created 60m ago"},
		{"nightly", 0, "new", finding.Warn, "jobstream has not processed it yet"},
		{"nightly", time.Hour, "controller", finding.Fail, "jobstream has not touched it since its creation 60m ago"},
		{"scheduledjob/due", time.Hour, "controller", finding.Fail, "has passed without a decision"},
	} {
		if f := w.asked(tt.after, tt.object)[0]; f.Check != tt.first || f.Level != tt.level || !strings.Contains(f.Found, tt.says) {
			t.Errorf("%s after %v: %+v", tt.object, tt.after, f)
		}
	}
	if w.requests = nil; w.call("why", "pi").code != 0 || len(w.requests) > 0 {
		t.Errorf("it has changed something: %q", w.requests)
	}
	for object, want := range map[string]string{"nowhere": "there is neither a ScheduledJob nor a Job nowhere in the namespace " + w.ns, "job/nowhere": "there is no Job nowhere", "schedjob/pi": "there is no ScheduledJob pi"} {
		if got := w.call("why", object); got.code != ExitFailed || got.out != "" || !strings.Contains(got.err, want) || !strings.Contains(got.err, "-n chooses another") {
			t.Errorf("%s: want %q, got %s", object, want, got)
		}
	}
}

// TestWhyPrints: for people a line for each cause and what to do below it; for scripts an object.
func TestWhyPrints(t *testing.T) {
	w := newWorld(t)
	w.newJob("pi", nil)
	w.newPod(w.started("pi"), "pi-x", unschedulable)
	got := w.call("why", "pi")
	for i, want := range []string{"job/pi: Waiting (0 of 1 succeeded, 0 active, 0 failed, created ", "", "1. unschedulable: the scheduler finds no node: Unschedulable: 0/3 nodes are available: 3 Insufficient cpu. (the Pod pi-x, for ", "   -> make room or add a node"} {
		if lines := strings.Split(got.out, "\n"); len(lines) != 5 || !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d is not %q: %s", i, want, got)
		}
	}
	for format, want := range map[string]string{"json": `"check": "unschedulable"`, "yaml": "  check: unschedulable\n", "jsonpath={.state} {.findings[0].status} {.object.name}": "Waiting FAIL pi",
		"go-template={{range .findings}}{{.check}}{{end}}": "unschedulable"} {
		if got := w.call("why", "pi", "-o", format); got.code != 0 || !strings.Contains(got.out, want) {
			t.Errorf("%s: want %q, got %s", format, want, got)
		}
	}
}

// TestWhyForALimitedUser: what a user may not read is reported, and the rest is answered.
func TestWhyForALimitedUser(t *testing.T) {
	w := newWorld(t)
	w.newJob("pi", nil)
	w.newPod(w.started("pi"), "pi-x", unschedulable)
	as := func(user string, rules ...rbacv1.PolicyRule) []string {
		if _, err := w.RbacV1().Roles(w.ns).Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.RbacV1().RoleBindings(w.ns).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		return []string{"why", "pi", "--as=" + user, "--as-group=system:authenticated"}
	}
	jobs := rbacv1.PolicyRule{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"get"}} // and no ScheduledJobs
	pods := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}}
	for _, tt := range []struct {
		name string
		args []string
		want []string
	}{
		{"no Events", as("podreader", jobs, pods), []string{"\n1. unschedulable: ", "\n2. not read: cannot list the Events: ", "ask an administrator for list on Events in this namespace; without it a cause may be missing\n"}},
		{"neither Pods nor Events", as("jobreader", jobs), []string{"\n1. not read: cannot list the Pods: ", "\n2. not read: cannot list the Events: "}},
	} {
		eventually(t, func() string { // the authorizer learns of it a moment later
			got := w.call(tt.args...)
			for _, want := range tt.want {
				if got.code != 0 || !strings.Contains(got.out, want) {
					return fmt.Sprintf("%s: %q in %s", tt.name, want, got)
				}
			}
			return ""
		})
	}
	if got := w.call("why", "pi", "--as=guest", "--as-group=system:authenticated"); got.code != ExitFailed || !strings.Contains(got.err, "kubectl auth can-i --list -n "+w.ns) {
		t.Errorf("got %s", got)
	}
}

// TestWhyIsNotSteered: other programs write names, messages and Events. None of them reaches the terminal as a control sequence, is
// printed at any length, or hides the true cause.
func TestWhyIsNotSteered(t *testing.T) {
	w := newWorld(t)
	const evil = "\x1b[2J\x1b]0;owned\x07 \u202eabc\n\n1. running: nothing is wrong\r"
	w.newJob("pi", func(j *batchv1.Job) { j.Annotations = map[string]string{v1alpha1.LastFailureAnnotation: evil} })
	j := w.started("pi", batchv1.JobCondition{Type: v1alpha1.RefusedCondition, Status: "True", Reason: "Evil", Message: "CreatePod: " + evil + strings.Repeat("x", 20_000)},
		batchv1.JobCondition{Type: "Evil", Status: "True", Reason: "Evil", Message: evil})
	status := *unschedulable.DeepCopy()
	status.Conditions[0].Message = evil + strings.Repeat("y", 20_000)
	w.newPod(j, "pi-x", status)
	for range 20 {
		w.warn(j, "FailedCreate", evil)
	}
	for _, format := range []string{"", "-o=json", "-o=yaml", "-o=jsonpath={.findings[*].found}"} {
		got := w.call(strings.Fields("why pi " + format)...)
		if got.code != 0 || strings.ContainsAny(got.out, "\x1b\x07\r\u202e") || strings.Contains(got.out, "\n1. running") || len(got.out) > 8_000 {
			t.Errorf("%s: %d bytes: %q", format, len(got.out), got.out)
		}
	}
	if f := w.asked(0, "pi")[0]; f.Check != "refused" || f.Level != finding.Fail {
		t.Errorf("%+v", f)
	}
}

// TestWhyOfWhatIsGone: a status may name Jobs that have been deleted since, and that another Job has the name of one.
func TestWhyOfWhatIsGone(t *testing.T) {
	w := newWorld(t)
	w.newScheduled("nightly", nil)
	w.newJob("namesake", nil)
	now := time.Now().UTC().Format(time.RFC3339)
	w.scheduleStatus("nightly", `{"observedGeneration":1,"active":[{"name":"gone","uid":"1"},{"name":"namesake","uid":"2"},{"name":"../../secrets/x","uid":"3"}],
		"lastRun":{"jobName":"past","jobUID":"4","result":"Failed","reason":"BackoffLimitExceeded","completionTime":"`+now+`"}}`)
	all := w.asked(0, "nightly")
	if f := all[0]; f.Check != "last run" || !strings.Contains(f.Found, "the Job past failed at "+now) || !strings.Contains(f.Found, "BackoffLimitExceeded; it does not exist any more") {
		t.Errorf("%+v", all)
	}
	for _, f := range all {
		if strings.Contains(f.Found, "namesake") {
			t.Errorf("another Job of the name is explained: %+v", f)
		}
	}
}

// scheduleStatus plays the reconciler that writes the status of a ScheduledJob.
func (w *world) scheduleStatus(name, status string) {
	w.Helper()
	err := w.schedules().rest.Patch(types.MergePatchType).Namespace(w.ns).Resource(v1alpha1.ScheduledJobResource).Name(name).SubResource("status").
		Body([]byte(`{"status":` + status + `}`)).Do(w.Context()).Error()
	if err != nil {
		w.Fatal(err)
	}
}

// TestWhyOfManyPods: a Pod that waits is found even if it is the last of more Pods than fit into a page, and also by a selector of the
// user's own. A Pod that the selector selects and that is not the Job's does not count.
func TestWhyOfManyPods(t *testing.T) {
	w := newWorld(t)
	w.newJob("pi", func(j *batchv1.Job) {
		j.Spec.ManualSelector, j.Spec.Selector = ptr.To(true), &metav1.LabelSelector{MatchLabels: map[string]string{"app": "pi"}}
		j.Spec.Template.Labels = map[string]string{"app": "pi"}
	})
	w.newJob("other", nil)
	pi, other := w.started("pi"), w.job("other")
	running := w.newPod(pi, "pi-0000", corev1.PodStatus{Phase: corev1.PodRunning})
	w.newPod(other, "another", corev1.PodStatus{Phase: corev1.PodPending})
	w.newPod(pi, "zz-last", unschedulable)
	for _, name := range []string{running.Name, "another", "zz-last"} {
		p, err := w.CoreV1().Pods(w.ns).Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"labels":{"app":"pi"}}}`), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if name == running.Name {
			running = p
		}
	}
	w.store("pods", 1, whyPage+20, func(i int) controlplane.Object { return podOf(running, pi, fmt.Sprintf("pi-%04d", i)) })
	all := w.asked(0, "pi")
	if f := all[0]; f.Check != "unschedulable" || !strings.Contains(f.Found, "zz-last") {
		t.Errorf("%+v", all)
	}
	for _, f := range all {
		if strings.Contains(f.Found, "another") {
			t.Errorf("another Job's Pod is explained: %+v", f)
		}
	}
}

// selecting records what the plugin's requests ask for: an object's name, or a resource with what is selected and the length of a page.
func selecting(requests *[]string) func(*tool) {
	var mu sync.Mutex
	return onTheWay(func(q *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asks := path.Base(q.URL.Path)
		for _, key := range []string{"labelSelector", "fieldSelector"} {
			if selected := q.URL.Query().Get(key); selected != "" {
				asks += " " + selected
			}
		}
		if page := q.URL.Query().Get("limit"); page != "" {
			asks += " limit=" + page
		}
		*requests = append(*requests, asks)
	})
}

// many is the number of Jobs, of Pods and of Events beside the one that is asked about.
const many = 2000

// TestWhyAmongManyJobs: beside 2,000 Jobs with their Pods and Events, "why" sends the requests that it sends where the Job is alone,
// which select by its UID. Neither do 4,000 Events about the Job itself keep it from an answer.
func TestWhyAmongManyJobs(t *testing.T) {
	w := newWorld(t)
	w.newJob("pi", nil)
	pi := w.started("pi")
	w.newPod(pi, "pi-x", unschedulable)
	ours := w.warn(pi, "BackoffLimitExceeded", "it failed")
	w.store("events", 1, 2*many, func(i int) controlplane.Object { return eventOf(ours, pi, i) })
	ask := func() []string {
		t.Helper()
		var requests []string
		got := w.findings([]string{"job/pi"}, w.here, selecting(&requests))
		if last := got[len(got)-1]; got[0].Check != "unschedulable" || last.Check != "events" || !strings.Contains(last.Found, "there are more than 2000 Warning Events") {
			t.Fatalf("%+v", got)
		}
		slices.Sort(requests) // some are sent at the same time
		return requests
	}
	alone := ask()
	events := fmt.Sprintf("events involvedObject.uid=%s,type=Warning limit=500", pi.UID)
	want := []string{events, events, events, events, "pi", fmt.Sprintf("pods %s=%s limit=500", batchv1.ControllerUidLabel, pi.UID)}
	if !slices.Equal(alone, want) {
		t.Errorf("it has requested\n%s\nwant\n%s", strings.Join(alone, "\n"), strings.Join(want, "\n"))
	}
	first := w.newJob("other-0", nil)
	pod, theirs := w.newPod(first, "other-0-x", unschedulable), w.warn(first, "BackOff", "it failed")
	others := make([]*batchv1.Job, many)
	for i := range others {
		others[i] = jobLike(first, fmt.Sprintf("other-%d", i))
	}
	others[0] = first
	w.store("jobs", 1, many, func(i int) controlplane.Object { return others[i] })
	w.store("pods", 1, many, func(i int) controlplane.Object { return podOf(pod, others[i], others[i].Name+"-x") })
	w.store("events", 1, many, func(i int) controlplane.Object { return eventOf(theirs, others[i], i) })
	if beside := ask(); !slices.Equal(beside, alone) {
		t.Errorf("beside %d Jobs it has requested\n%s\nalone\n%s", many, strings.Join(beside, "\n"), strings.Join(alone, "\n"))
	}
}
