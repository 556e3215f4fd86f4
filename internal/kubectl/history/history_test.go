package history_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/kubectl/history"
)

// ten is a nominal time, and now the time at which the user looks.
var (
	ten = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	now = ten.Add(12 * time.Hour)
	me  = events.Reference{Namespace: "shop", Name: "nightly", UID: "uid-1"}
)

func at(hour int) time.Time { return ten.Add(time.Duration(hour) * time.Hour) }

func stamp(t time.Time) *metav1.Time { return &metav1.Time{Time: t} }

// started is a verdict of the status: the Job of an hour was created.
func started(hour int, change ...func(*v1alpha1.TickVerdict)) v1alpha1.TickVerdict {
	v := v1alpha1.TickVerdict{Time: *stamp(at(hour)), Count: 1, Verdict: "Started", JobName: job(hour).Name, JobUID: job(hour).UID}
	for _, f := range change {
		f(&v)
	}
	return v
}

// ended has the result of the verdict's Job, a minute after the nominal time.
func ended(result string) func(*v1alpha1.TickVerdict) {
	return func(v *v1alpha1.TickVerdict) {
		v.Result, v.CompletionTime = result, stamp(v.Time.Add(time.Minute))
	}
}

// not is a verdict of the status without a Job.
func not(hour int, verdict, reason, message string) v1alpha1.TickVerdict {
	return v1alpha1.TickVerdict{Time: *stamp(at(hour)), Count: 1, Verdict: verdict, Reason: reason, Message: message}
}

// job is the Job of an hour.
func job(hour int) events.Reference {
	return events.Reference{Namespace: me.Namespace, Name: "nightly-" + events.NominalHash(at(hour)), UID: types.UID(fmt.Sprint("job-", hour))}
}

// object is the Job of an hour in the cluster, which began half a minute after it.
func object(hour int, change ...func(*batchv1.Job)) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: me.Namespace, Name: job(hour).Name, UID: job(hour).UID, CreationTimestamp: *stamp(at(hour)),
		Annotations:     map[string]string{batchv1.CronJobScheduledTimestampAnnotation: at(hour).Format(time.RFC3339)},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ScheduledJobKind, Name: me.Name, UID: me.UID, Controller: ptr.To(true)}}},
		Status: batchv1.JobStatus{Active: 1, StartTime: stamp(at(hour).Add(30 * time.Second))}}
	for _, f := range change {
		f(j)
	}
	return j
}

// is ends the Job five minutes after its nominal time.
func is(kind batchv1.JobConditionType, reason, message string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Status.Active = 0
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message,
			LastTransitionTime: *stamp(j.CreationTimestamp.Add(5 * time.Minute))})
	}
}

// finish is the JobFinish of an hour, which took two minutes.
func finish(hour int, result events.JobResult, change ...func(*events.JobFinished)) events.JobFinished {
	e := events.JobFinished{Job: job(hour), Result: result, Reason: "CompletionsReached", Created: at(hour), Start: at(hour), End: at(hour).Add(2 * time.Minute),
		Owner: &events.RunOwner{ScheduledJob: me, Nominal: at(hour)}}
	for _, f := range change {
		f(&e)
	}
	return e
}

func scheduled(recent ...v1alpha1.TickVerdict) *v1alpha1.ScheduledJob {
	return &v1alpha1.ScheduledJob{ObjectMeta: metav1.ObjectMeta{Namespace: me.Namespace, Name: me.Name, UID: me.UID}, Status: v1alpha1.ScheduledJobStatus{Recent: recent}}
}

// said is the verdict of the status as it is announced.
func said(hour int, verdict events.Verdict) events.TickDecided {
	e := events.TickDecided{ScheduledJob: me, Verdict: verdict, Nominal: at(hour), Count: 1}
	if verdict == events.Started {
		e.Job = ptr.To(job(hour))
	}
	return e
}

// brief describes ticks in a line: "10:00 Started Complete 2m0s; 11:00 Skipped(Overlap)".
func brief(ticks []history.Tick) string {
	var all []string
	for _, t := range ticks {
		one := t.Nominal.Format("15:04") + " " + string(t.Verdict)
		if t.Reason != "" {
			one += "(" + t.Reason + ")"
		}
		if r := t.Run; r != nil {
			one = strings.TrimRight(one+" "+r.State, " ")
			if took, ok := r.Took(now); ok {
				one += " " + took.String()
			}
		}
		all = append(all, one)
	}
	return strings.Join(all, "; ")
}

// Each source knows a part; together they know more than each, and nothing twice.
func TestSources(t *testing.T) {
	for _, tt := range []struct {
		name string
		saw  func(*history.History)
		want string
	}{
		{"nothing", func(*history.History) {}, ""},
		{"the status alone has ends, and no durations", func(h *history.History) {
			h.SawStatus(scheduled(started(0, ended("Complete")), started(1, ended("Failed")), not(2, "Skipped", "Overlap", ""), started(3)))
		}, "10:00 Started Complete; 11:00 Started Failed; 12:00 Skipped(Overlap); 13:00 Started"},
		{"Jobs without UIDs are not taken for each other", func(h *history.History) {
			anonymous := func(v *v1alpha1.TickVerdict) { v.JobUID = "" }
			h.SawStatus(scheduled(started(0, ended("Failed"), anonymous), started(1, ended("Complete"), anonymous), started(2, anonymous)))
		}, "10:00 Started Failed; 11:00 Started Complete; 12:00 Started"},
		{"the last run has a duration", func(h *history.History) {
			s := scheduled(started(0, ended("Complete")))
			s.Status.LastRun = &v1alpha1.EndedRun{JobName: job(0).Name, JobUID: job(0).UID, Result: "Complete", StartTime: stamp(at(0)), CompletionTime: *stamp(at(1))}
			h.SawStatus(s)
		}, "10:00 Started Complete 1h0m0s"},
		{"a Job that exists has its duration", func(h *history.History) {
			h.SawJob(object(0, is(batchv1.JobComplete, "", "")))
			h.SawStatus(scheduled(started(0, ended("Complete")), started(1)))
			h.SawJob(object(1))
		}, "10:00 Started Complete 4m30s; 11:00 Started Running 10h59m30s"},
		{"a Job that is active, and that the user may not list", func(h *history.History) {
			s := scheduled(started(0))
			s.Status.Active = []corev1.ObjectReference{{Name: job(0).Name, UID: job(0).UID}}
			h.SawStatus(s)
		}, "10:00 Started Active"},
		{"a Job whose verdict has left the status was started", func(h *history.History) {
			h.SawJob(object(0, is(batchv1.JobFailed, "", "")))
			h.SawJob(object(1, func(j *batchv1.Job) {
				j.Annotations[v1alpha1.InstantiateAnnotation] = v1alpha1.InstantiateManual
			}))
			h.SawJob(object(2, func(j *batchv1.Job) { j.Name, j.Annotations = "by-hand", nil }))
		}, "10:00 Started Failed 4m30s; 11:00 Started(Backfill) Running 10h59m30s; 12:00 Started(Manual) Running 9h59m30s"},
		{"a backfill is beside the time that it makes up for", func(h *history.History) {
			h.SawStatus(scheduled(not(0, "Missed", "Deadline", ""), started(0, func(v *v1alpha1.TickVerdict) { v.Reason = "Backfill" })))
		}, "10:00 Started(Backfill); 10:00 Missed(Deadline)"},
		{"the stream repeats what the status has", func(h *history.History) {
			h.SawStatus(scheduled(started(0, ended("Complete")), not(1, "Skipped", "", "")))
			h.Announced(said(0, events.Started))
			h.Announced(said(1, events.Skipped))
			h.Announced(finish(0, events.JobSucceeded))
			h.Announced(finish(0, events.JobSucceeded))
		}, "10:00 Started Complete 2m0s; 11:00 Skipped"},
		{"a deletion that the reconciler saw before the end", func(h *history.History) {
			h.Announced(finish(0, events.JobSucceeded))
			h.SawStatus(scheduled(started(0, ended("Missing"))))
		}, "10:00 Started Complete 2m0s"},
		{"an end without its verdict", func(h *history.History) { h.Announced(finish(0, events.JobFailed)) }, "10:00 Started Failed 2m0s"},
		{"a start without its end", func(h *history.History) { h.Announced(said(0, events.Started)) }, "10:00 Started"},
		{"other objects", func(h *history.History) {
			h.Announced(events.TickDecided{ScheduledJob: events.Reference{Namespace: "shop", Name: "nightly", UID: "an-earlier-one"}, Verdict: events.Started, Nominal: at(0)})
			h.Announced(finish(0, events.JobFailed, func(e *events.JobFinished) { e.Owner = nil }))
			h.Announced(finish(1, events.JobFailed, func(e *events.JobFinished) { e.Owner = &events.RunOwner{} }))
			h.Announced(events.JobStarted{Job: job(0)})
			h.SawJob(object(2, func(j *batchv1.Job) { j.OwnerReferences = nil }))
		}, ""},
		{"a result of another version", func(h *history.History) { h.Announced(finish(0, "Paused")) }, "10:00 Started Paused 2m0s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := history.New()
			tt.saw(h)
			if got := brief(h.Ticks(me.UID)); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// The ends that are still to be looked for: those of Jobs that neither exist nor were announced.
func TestUnended(t *testing.T) {
	h := history.New()
	h.SawStatus(scheduled(started(0, ended("Complete")), started(1), not(2, "Missed", "", ""), started(3)))
	h.SawJob(object(3, is(batchv1.JobComplete, "", "")))
	if got := h.Unended(me.UID); len(got) != 2 || got[0] != min(job(0).Name, job(1).Name) {
		t.Errorf("%q", got)
	}
}

// A name may have been that of several ScheduledJobs: the one with the newest verdict is the one that the user means.
func TestNewest(t *testing.T) {
	h := history.New()
	if _, ok := h.Newest(); ok {
		t.Error("there is none")
	}
	h.Announced(said(1, events.Missed))
	old := said(0, events.Missed)
	old.ScheduledJob.UID = "before"
	h.Announced(old)
	if got, ok := h.Newest(); !ok || got != me {
		t.Errorf("%v", got)
	}
}

// A tick is of a time span if its nominal time or its end is, or if it goes on.
func TestAfter(t *testing.T) {
	h := history.New()
	until := not(0, "Missed", "", "")
	until.Until, until.Count = stamp(at(6)), 7
	h.SawStatus(scheduled(until, not(1, "Missed", "", ""), started(2), started(3)))
	h.SawJob(object(2))
	h.Announced(finish(3, events.JobFailed, func(e *events.JobFinished) { e.End = at(6) }))
	var recent []history.Tick
	for _, tick := range h.Ticks(me.UID) {
		if tick.After(at(5)) {
			recent = append(recent, tick)
		}
	}
	if got := brief(recent); got != "10:00 Missed; 12:00 Started Running 9h59m30s; 13:00 Started Failed 3h0m0s" {
		t.Error(got)
	}
}

// A script gets every field that is known, in UTC, and no others.
func TestObjects(t *testing.T) {
	h := history.New()
	h.SawStatus(scheduled(not(0, "Missed", "Deadline", "too late"), started(1), started(2)))
	h.SawJob(object(1))
	h.Announced(finish(2, events.JobFailed, func(e *events.JobFinished) { e.Reason, e.Message = "BackoffLimitExceeded", "too often" }))
	text, err := json.Marshal(history.Objects(h.Ticks(me.UID)))
	if err != nil {
		t.Fatal(err)
	}
	const of = `"apiVersion":"jobstream.dev/v1alpha1","count":1,`
	const who = `"scheduledJob":{"name":"nightly","namespace":"shop","uid":"uid-1"},`
	want := `{"apiVersion":"v1","items":[` +
		`{` + of + `"kind":"Tick","message":"too late","reason":"Deadline",` + who + `"time":"2026-11-22T10:00:00Z","verdict":"Missed"},` +
		`{` + of + `"job":{"name":"` + job(1).Name + `","namespace":"shop","startTime":"2026-11-22T11:00:30Z","state":"Running","uid":"job-1"},"kind":"Tick",` + who + `"time":"2026-11-22T11:00:00Z","verdict":"Started"},` +
		`{` + of + `"job":{"completionTime":"2026-11-22T12:02:00Z","durationSeconds":120,"message":"too often","name":"` + job(2).Name + `","namespace":"shop","reason":"BackoffLimitExceeded","result":"Failed","startTime":"2026-11-22T12:00:00Z","uid":"job-2"},"kind":"Tick",` + who + `"time":"2026-11-22T12:00:00Z","verdict":"Started"}` +
		`],"kind":"List"}`
	if string(text) != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	if text, err := json.Marshal(history.Objects(nil)); err != nil || string(text) != `{"apiVersion":"v1","items":[],"kind":"List"}` {
		t.Errorf("%s, %v", text, err)
	}
}
