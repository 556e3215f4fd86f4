package chaos

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

var epoch = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// sound is a world in which nothing is wrong. It has a Job of two completions, one of which needed two Pods; an Indexed Job that
// fails, with one failed index; and a schedule that has decided four seconds, of which two started and two were skipped by one
// verdict. One more Job of the schedule was started by a user.
func sound() world {
	w := world{jobs: map[types.UID]batchv1.Job{}, lives: map[types.UID]life{}, wants: map[string]want{}}
	w.addJob("plain", batchv1.JobStatus{Succeeded: 2, Failed: 1, Conditions: conditions(batchv1.JobComplete, "")}, nil, "0 - 0", "1 - 3", "2 - 0")
	w.wants["plain"] = want{Task: Task{Sort: Twenty}, intent: intent{end: batchv1.JobComplete, completions: 2}, uid: "plain"}
	w.addJob("indexed", batchv1.JobStatus{Succeeded: 2, Failed: 1, CompletedIndexes: "0,2", Conditions: conditions(batchv1.JobFailed, batchv1.JobReasonFailedIndexes)},
		func(j *batchv1.Job) { j.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion) }, "0 0 0", "1 1 1", "2 2 0")
	w.wants["indexed"] = want{Task: Task{Sort: Indexes}, uid: "indexed",
		intent: intent{end: batchv1.JobFailed, reason: batchv1.JobReasonFailedIndexes, completions: 2, indexes: "0,2", excuses: true}}
	w.wants["deleted"] = want{Task: Task{Sort: Deleted}, intent: intent{completions: -1}, uid: "deleted"}
	w.schedules = []v1alpha1.ScheduledJob{{ObjectMeta: metav1.ObjectMeta{Name: "each-second", UID: "sj", CreationTimestamp: metav1.NewTime(epoch)},
		Status: v1alpha1.ScheduledJobStatus{DecidedUntil: ptr.To(metav1.NewTime(epoch.Add(4 * time.Second))), Successful: 3}}}
	for _, second := range []int{1, 4} {
		at := epoch.Add(time.Duration(second) * time.Second)
		name := fmt.Sprintf("run-%d", second)
		w.addJob(name, batchv1.JobStatus{Succeeded: 1, Conditions: conditions(batchv1.JobComplete, "")}, func(j *batchv1.Job) {
			j.Annotations = map[string]string{v1alpha1.NominalTimeAnnotation: at.Format(time.RFC3339)}
			j.OwnerReferences = []metav1.OwnerReference{{UID: "sj", Name: "each-second", Controller: ptr.To(true)}}
		}, "0 - 0")
		w.say(name, fmt.Sprintf(`{"scheduledJob":{"uid":"sj"},"verdict":"Started","nominal":%q,"count":1,"job":{"uid":%q}}`, at.Format(time.RFC3339), name))
	}
	w.say("gap", `{"scheduledJob":{"uid":"sj"},"verdict":"Skipped","nominal":"2026-11-21T12:00:02Z","until":"2026-11-21T12:00:03Z","count":2}`)
	w.addJob("urgent", batchv1.JobStatus{Succeeded: 1, Conditions: conditions(batchv1.JobComplete, "")}, func(j *batchv1.Job) {
		j.Annotations = map[string]string{v1alpha1.InstantiateAnnotation: v1alpha1.InstantiateManual, v1alpha1.NominalTimeAnnotation: epoch.Format(time.RFC3339)}
		j.OwnerReferences = []metav1.OwnerReference{{UID: "sj", Name: "each-second", Controller: ptr.To(true)}}
	}, "0 - 0")
	w.say("urgent", urgentTick)
	for _, name := range slices.Sorted(maps.Keys(w.jobs)) {
		w.announce(w.jobs[name])
	}
	return w
}

// urgentTick is the verdict on the Job that a user has started.
const urgentTick = `{"scheduledJob":{"uid":"sj"},"verdict":"Started","reason":"Manual","nominal":"2026-11-21T12:00:02Z","count":1,"job":{"uid":"urgent"}}`

// announce adds the JobStart and the JobFinish of the Job.
func (w *world) announce(j batchv1.Job) {
	result := "Succeeded"
	if harness.Is(&j, batchv1.JobFailed) {
		result = "Failed"
	}
	for _, kind := range []string{startType, finishType} {
		w.events = append(w.events, told{Source: "/s", ID: kind + j.Name, Type: kind, Data: fmt.Appendf(nil,
			`{"job":{"uid":%q},"result":%q,"succeeded":%d,"failed":%d,"completedIndexes":%q}`, j.UID, result, j.Status.Succeeded, j.Status.Failed, j.Status.CompletedIndexes)})
	}
}

func conditions(t batchv1.JobConditionType, reason string) []batchv1.JobCondition {
	return []batchv1.JobCondition{{Type: t, Status: corev1.ConditionTrue, Reason: reason}}
}

// addJob adds a Job and its Pods: "<name> <index> <exit code>".
func (w *world) addJob(name string, status batchv1.JobStatus, change func(*batchv1.Job), pods ...string) {
	j := batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Status: status}
	if change != nil {
		change(&j)
	}
	w.jobs[j.UID] = j
	for _, p := range pods {
		words := strings.Fields(p)
		l := line{job: name, index: words[1], uid: types.UID(name + "/" + words[0]), node: "node-0"}
		ended := life{job: j.UID, index: strings.Trim(words[1], "-"), counts: corev1.PodSucceeded, phase: corev1.PodSucceeded}
		if words[2] != "0" {
			l.code, ended.counts, ended.phase = 1, corev1.PodFailed, corev1.PodFailed
		}
		w.lines, w.lives[l.uid] = append(w.lines, l), ended
		w.pods = append(w.pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: string(l.uid), UID: l.uid}})
	}
}

func (w *world) say(id, data string) {
	w.events = append(w.events, told{Source: "/s", ID: id, Type: tickType, Data: json.RawMessage(data)})
}

func (w *world) status(job types.UID, change func(*batchv1.JobStatus)) {
	j := w.jobs[job]
	change(&j.Status)
	w.jobs[job] = j
}

func (w *world) life(uid types.UID, change func(*life)) {
	l := w.lives[uid]
	change(&l)
	w.lives[uid] = l
}

func TestCheckerLetsASoundWorldPass(t *testing.T) {
	if wrong := sound().check(); len(wrong) > 0 {
		t.Error(strings.Join(wrong, "\n"))
	}
}

// The checker finds everything that the suite promises to find.
func TestCheckerFinds(t *testing.T) {
	for what, c := range map[string]struct {
		harm func(*world)
		want string
	}{
		"a completion that is counted but did not run": {func(w *world) { w.lines = w.lines[1:] }, "has not done its work"},
		"a completion that ran but is not counted":     {func(w *world) { w.status("plain", func(s *batchv1.JobStatus) { s.Succeeded-- }) }, "succeeded is 1, but 2 Pods have"},
		"a failure that is counted twice":              {func(w *world) { w.status("plain", func(s *batchv1.JobStatus) { s.Failed++ }) }, "failed is 2, but 1 Pods have"},
		"a failure that is not counted":                {func(w *world) { w.status("indexed", func(s *batchv1.JobStatus) { s.Failed = 0 }) }, "failed is 0, but 1 Pods have"},
		"an index that is not completed":               {func(w *world) { w.status("indexed", func(s *batchv1.JobStatus) { s.CompletedIndexes = "0-2" }) }, "completedIndexes should be"},
		"a Pod that ran twice":                         {func(w *world) { w.lines = append(w.lines, w.lines[0]) }, "has run twice"},
		"a Pod that was never stored":                  {func(w *world) { w.lines = append(w.lines, line{job: "plain", uid: "ghost"}) }, "was never stored"},
		"a Pod whose failure became a success":         {func(w *world) { w.lines[1].code, w.lines[0].code = 0, 1 }, "has failed, and its phase is Succeeded"},
		"a Pod that is held":                           {func(w *world) { w.pods[0].Finalizers = []string{batchv1.JobTrackingFinalizer} }, "keeps the tracking finalizer"},
		"a Job that has failed but should be complete": {func(w *world) {
			w.status("plain", func(s *batchv1.JobStatus) { s.Conditions = conditions(batchv1.JobFailed, "BackoffLimitExceeded") })
		}, "it should be Complete"},
		"a Job that has failed for another reason": {func(w *world) {
			w.status("indexed", func(s *batchv1.JobStatus) { s.Conditions[0].Reason = "DeadlineExceeded" })
		}, "it should be Failed (FailedIndexes)"},
		"a Job that is not at rest":        {func(w *world) { w.status("plain", func(s *batchv1.JobStatus) { s.Active = 1 }) }, "is not at rest"},
		"a Job that is gone":               {func(w *world) { delete(w.jobs, "plain") }, "Job plain exists: false"},
		"a deleted Job that exists":        {func(w *world) { w.addJob("deleted", batchv1.JobStatus{}, nil) }, "Job deleted exists: true"},
		"a Job that no user has asked for": {func(w *world) { w.addJob("stranger", batchv1.JobStatus{}, nil) }, "no user and no schedule has asked for it"},
		"a tick without a verdict":         {func(w *world) { w.events = w.events[1:] }, "no verdict on 2026-11-21T12:00:01Z"},
		"a tick with two verdicts": {func(w *world) {
			w.say("again", `{"scheduledJob":{"uid":"sj"},"verdict":"Missed","nominal":"2026-11-21T12:00:03Z","count":1}`)
		}, "2 verdicts on 2026-11-21T12:00:03Z"},
		"a verdict whose count is less than its range": {func(w *world) {
			w.events[2].Data = json.RawMessage(strings.Replace(string(w.events[2].Data), `"count":2`, `"count":1`, 1))
		}, "covers 2 times, but has count 1"},
		"a tick with two Jobs": {func(w *world) {
			w.addJob("twin", w.jobs["run-1"].Status, func(j *batchv1.Job) { j.ObjectMeta = w.jobs["run-1"].ObjectMeta; j.UID = "twin" }, "0 - 0")
		}, "2 Jobs for 2026-11-21T12:00:01Z"},
		"a Job of a tick that was not started": {func(w *world) {
			w.events[0].Data = json.RawMessage(strings.Replace(string(w.events[0].Data), "Started", "Missed", 1))
		}, "is Missed (), but its Jobs are [run-1]"},
		"a Job that a user has started, not announced":   {func(w *world) { w.drop("urgent") }, "Job urgent, which a user has started, has 0 verdicts"},
		"a Job that a user has started, announced twice": {func(w *world) { w.say("once more", urgentTick) }, "Job urgent, which a user has started, has 2 verdicts"},
		"a Job that a user has started, not counted":     {func(w *world) { w.schedules[0].Status.Successful = 2 }, "each-second: 3 Jobs, but the status has successful=2"},
		"a started tick without a Job":                   {func(w *world) { delete(w.jobs, "run-4") }, "has started"},
		"a status that counts too few":                   {func(w *world) { w.schedules[0].Status.Successful-- }, "successful=2"},
		"a start that was not announced":                 {func(w *world) { w.drop(startType + "plain") }, "Job plain has 0 JobStarts"},
		"an end that was not announced":                  {func(w *world) { w.drop(finishType + "plain") }, "Job plain has no JobFinish"},
		"an end that was announced twice":                {func(w *world) { w.announce(w.jobs["plain"]) }, "Job plain plain has finished twice"},
		"an end that was announced too early":            {func(w *world) { w.status("indexed", func(s *batchv1.JobStatus) { s.Failed++ }) }, "Job indexed: its JobFinish has"},
		"an event about a Job without UID":               {func(w *world) { w.events = append(w.events, told{Type: startType, Data: json.RawMessage(`{}`)}) }, "names no Job"},
		"a fault that cannot be healed":                  {func(w *world) { w.problems.add("no healing") }, "no healing"},
	} {
		t.Run(what, func(t *testing.T) {
			w := sound()
			c.harm(&w)
			if all := strings.Join(w.check(), "\n"); !strings.Contains(all, c.want) {
				t.Errorf("no finding has %q:\n%s", c.want, all)
			}
		})
	}
}

// What the checker cannot know is no finding.
func TestCheckerExcuses(t *testing.T) {
	for what, excuse := range map[string]func(*world){
		"a Pod that was lost with its node after it had done its work": func(w *world) {
			w.lines = append(w.lines, line{job: "plain", uid: "plain/3"})
			w.lives["plain/3"] = life{job: "plain", counts: corev1.PodFailed, phase: corev1.PodFailed, disrupted: true, gone: true}
			w.status("plain", func(s *batchv1.JobStatus) { s.Failed++ })
			w.drop(startType + "plain")
			w.drop(finishType + "plain")
			w.announce(w.jobs["plain"])
		},
		"a node's loss that the podFailurePolicy ignores": func(w *world) {
			w.lives["indexed/3"] = life{job: "indexed", index: "0", counts: corev1.PodFailed, phase: corev1.PodFailed, disrupted: true, gone: true}
		},
		"a Pod that lost its finalizer before it ended": func(w *world) {
			w.lives["plain/3"] = life{job: "plain", phase: corev1.PodFailed, gone: true}
		},
		"a Pod whose finalizer the built-in controller removed before it was counted": func(w *world) {
			w.lives["plain/3"] = life{job: "plain", counts: corev1.PodFailed, phase: corev1.PodFailed, stripped: true, gone: true}
		},
		"a Pod whose finalizer the built-in controller removed after it was counted": func(w *world) { w.life("plain/1", func(l *life) { l.stripped = true }) },
		"an event that a wipe deleted before the recorder received it":               func(w *world) { w.events, w.deaf = w.events[1:], true },
	} {
		t.Run(what, func(t *testing.T) {
			w := sound()
			excuse(&w)
			if wrong := w.check(); len(wrong) > 0 {
				t.Error(strings.Join(wrong, "\n"))
			}
		})
	}
}

func (w *world) drop(id string) {
	var left []told
	for _, e := range w.events {
		if e.ID != id {
			left = append(left, e)
		}
	}
	w.events = left
}

// The removal of a finalizer is attributed to the built-in Job controller only if the audit log proves it.
func TestFinalizersThatTheBuiltInControllerRemoves(t *testing.T) {
	patch := func(agent, controller string) harness.Request {
		return harness.Request{Verb: "patch", Resource: "pods", Name: "p", Agent: agent, Controller: controller, Code: http.StatusOK}
	}
	theirs, ours := patch("kube-controller-manager", "job-controller"), patch("jobstream", "0000000")
	refused, another := theirs, patch("kube-controller-manager", "generic-garbage-collector")
	refused.Code = http.StatusConflict
	for what, c := range map[string]struct {
		log  []harness.Request
		name string // of a second Pod
		want bool
	}{
		"theirs":                             {[]harness.Request{theirs}, "q", true},
		"theirs before ours":                 {[]harness.Request{theirs, ours}, "q", true},
		"ours before theirs":                 {[]harness.Request{ours, theirs}, "q", false},
		"theirs was refused":                 {[]harness.Request{refused}, "q", false},
		"of another controller":              {[]harness.Request{another}, "q", false},
		"theirs, but two Pods have the name": {[]harness.Request{theirs}, "p", false},
		"theirs, but the Job is gone":        {[]harness.Request{theirs}, "q", false},
	} {
		w := world{jobs: map[types.UID]batchv1.Job{"job": {}}, lives: map[types.UID]life{"p": {name: "p", job: "job"}, "q": {name: c.name, job: "job"}}}
		if strings.Contains(what, "the Job is gone") {
			delete(w.jobs, "job")
		}
		var wrong findings
		w.checkStripped(c.log, &wrong)
		if got := w.lives["p"].stripped; got != c.want || w.lives["q"].stripped || len(wrong) > 0 {
			t.Errorf("%s: %v, %v", what, w.lives, wrong)
		}
	}
	w := world{jobs: map[types.UID]batchv1.Job{"job": {}}, lives: map[types.UID]life{}}
	var log []harness.Request
	for i := range 11 { // one more than is excused in a short run
		q := theirs
		q.Name = fmt.Sprint(i)
		log, w.lives[types.UID(q.Name)] = append(log, q), life{name: q.Name, job: "job"}
	}
	var wrong findings
	if w.checkStripped(log, &wrong); len(wrong) != 1 {
		t.Errorf("all of them: %v", wrong)
	}
}
