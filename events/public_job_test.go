package events_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

// TestJobAttributes: each attribute is as in the contract.
func TestJobAttributes(t *testing.T) {
	for name, want := range map[string]map[string]any{
		"JobStarted": {"id": "8d0c3a52-77a4-4a38-9c51-3f6b1f0a2c11/start/2026-01-02T03:04:01Z", "type": "dev.jobstream.job.start.v1",
			"time": at(1), "sequence": "0/2026-01-02T03:04:01Z"},
		"JobFinished": {"id": "8d0c3a52-77a4-4a38-9c51-3f6b1f0a2c11/finish/2026-01-02T03:04:58Z", "type": "dev.jobstream.job.finish.v1",
			"time": at(58), "sequence": "1/2026-01-02T03:04:58Z"},
	} {
		e := decodePublic(t, "prod.eu", publicSamples()[name])
		run := "nightly.report-" + events.NominalHash(at(0))
		for attribute, tt := range map[string]struct{ got, want any }{
			"id":           {e.ID(), want["id"]},
			"source":       {e.Source(), "/clusters/prod=2Eeu/namespaces/shop/jobs/" + run},
			"type":         {e.Type(), want["type"]},
			"subject":      {e.Subject(), run},
			"time":         {e.Time(), want["time"]},
			"partitionkey": {e.Extensions()["partitionkey"], "8d0c3a52-77a4-4a38-9c51-3f6b1f0a2c11"},
			"sequence":     {e.Extensions()["sequence"], want["sequence"]},
			"traceparent":  {e.Extensions()["traceparent"], "00-0a152a7b2d9c6f42aa74f4d33ee844e4-0292942d1c90dc0e-01"},
			"extensions":   {len(e.Extensions()), 3},
		} {
			if tt.got != tt.want {
				t.Errorf("%s: %s is %v, want %v", name, attribute, tt.got, tt.want)
			}
		}
	}
}

// TestJobSubjects: the result is a part of its own, whatever the names contain.
func TestJobSubjects(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		job := events.Reference{Namespace: "shop", Name: legalName().Draw(t, "name"), UID: uid}
		cluster := rapid.StringN(1, 20, -1).Draw(t, "cluster")
		prefix := "jobstream.events." + events.Token(cluster) + ".shop.job."
		for _, tt := range []struct {
			event events.Public
			want  string
		}{
			{events.JobStarted{Job: job}, prefix + "start." + events.Token(job.Name)},
			{events.JobFinished{Job: job, Result: events.JobSucceeded}, prefix + "finish.succeeded." + events.Token(job.Name)},
			{events.JobFinished{Job: job, Result: events.JobFailed}, prefix + "finish.failed." + events.Token(job.Name)},
		} {
			if got := events.PublicSubject(cluster, tt.event); got != tt.want {
				t.Errorf("%v goes to %s, want %s", tt.event, got, tt.want)
			}
		}
	})
}

// TestJobIDs: a start and an end in one second are two events, each moment has its own id, and no other field changes the id. As
// text, the sequence puts the end last, even if its clock was behind.
func TestJobIDs(t *testing.T) {
	job := events.Reference{Namespace: "shop", Name: "pi", UID: uid}
	start, later := events.JobStarted{Job: job, Start: at(5)}, events.JobStarted{Job: job, Start: at(6), Parallelism: 3}
	end := events.JobFinished{Job: job, End: at(5), Result: events.JobFailed}
	ids := []string{events.PublicID(start), events.PublicID(later), events.PublicID(end)}
	if slices.Sort(ids); len(slices.Compact(ids)) != 3 {
		t.Errorf("not three: %v", ids)
	}
	same := events.JobStarted{Job: job, Start: at(5).In(time.FixedZone("east", 3600)), Parallelism: 9, ManagedBy: "m", Labels: map[string]string{"a": "b"}}
	if events.PublicID(same) != events.PublicID(start) {
		t.Errorf("%s, then %s", events.PublicID(start), events.PublicID(same))
	}
	end.End = at(0)
	var order []string
	for _, e := range []events.Public{start, later, end} {
		order = append(order, decodePublic(t, "c", e).Extensions()["sequence"].(string))
	}
	if !slices.IsSorted(order) {
		t.Errorf("the sequence is %q", order)
	}
}

// TestWhatAnObservationShows: the start and the end of a Job are read off its status and nothing else.
func TestWhatAnObservationShows(t *testing.T) {
	condition := func(c batchv1.JobConditionType, second int) batchv1.JobCondition {
		return batchv1.JobCondition{Type: c, Status: "True", Reason: "R", Message: "m", LastTransitionTime: metav1.NewTime(at(second))}
	}
	job := func(change func(*events.Job)) events.Job {
		j := events.Job{Namespace: "shop", Name: "pi", UID: uid, Parallelism: 2, ManagedBy: "m", Labels: map[string]string{"a": "b"}}
		change(&j)
		return j
	}
	fresh := job(func(*events.Job) {})
	running := job(func(j *events.Job) { j.Status.StartTime = &metav1.Time{Time: at(1)} })
	failing := job(func(j *events.Job) {
		j.Status.Conditions = []batchv1.JobCondition{condition(batchv1.JobFailureTarget, 2), {Type: batchv1.JobFailed, Status: "False"}}
	})
	complete := job(func(j *events.Job) {
		j.Indexed, j.Completions = true, new(int32(3))
		j.Status = batchv1.JobStatus{StartTime: &metav1.Time{Time: at(1)}, Succeeded: 3, Failed: 1, CompletedIndexes: "0-2", FailedIndexes: new(""),
			Conditions: []batchv1.JobCondition{condition(batchv1.JobComplete, 9)}}
	})
	failed := job(func(j *events.Job) {
		j.Status = batchv1.JobStatus{StartTime: &metav1.Time{Time: at(9)}, FailedIndexes: new("1"), Conditions: []batchv1.JobCondition{condition(batchv1.JobFailed, 3)}}
	})
	never := job(func(j *events.Job) { j.Status.Conditions = []batchv1.JobCondition{condition(batchv1.JobComplete, 3)} })
	ref := events.Reference{Namespace: "shop", Name: "pi", UID: uid}
	for name, tt := range map[string]struct {
		job   events.Job
		start *events.JobStarted
		end   *events.JobFinished
	}{
		"fresh":   {job: fresh},
		"failing": {job: failing},
		"running": {job: running, start: &events.JobStarted{Job: ref, Start: at(1), Parallelism: 2, CompletionMode: "NonIndexed", ManagedBy: "m", Labels: map[string]string{"a": "b"}}},
		"complete": {job: complete,
			start: &events.JobStarted{Job: ref, Start: at(1), Parallelism: 2, Completions: new(int32(3)), CompletionMode: "Indexed", ManagedBy: "m", Labels: map[string]string{"a": "b"}},
			end: &events.JobFinished{Job: ref, Result: events.JobSucceeded, Reason: "R", Message: "m", Succeeded: 3, Failed: 1, Completions: new(int32(3)), CompletedIndexes: "0-2",
				Start: at(1), End: at(9), DurationSeconds: 8, ManagedBy: "m", Labels: map[string]string{"a": "b"}}},
		"failed, by a clock that is behind": {job: failed,
			start: &events.JobStarted{Job: ref, Start: at(9), Parallelism: 2, CompletionMode: "NonIndexed", ManagedBy: "m", Labels: map[string]string{"a": "b"}},
			end:   &events.JobFinished{Job: ref, Result: events.JobFailed, Reason: "R", Message: "m", FailedIndexes: "1", Start: at(9), End: at(3), ManagedBy: "m", Labels: map[string]string{"a": "b"}}},
		"never started": {job: never,
			end: &events.JobFinished{Job: ref, Result: events.JobSucceeded, Reason: "R", Message: "m", End: at(3), ManagedBy: "m", Labels: map[string]string{"a": "b"}}},
	} {
		start, started := tt.job.Started()
		end, ended := tt.job.Ended()
		if started != (tt.start != nil) || started && !reflect.DeepEqual(start, *tt.start) {
			t.Errorf("%s: start %+v, %v", name, start, started)
		}
		if ended != (tt.end != nil) || ended && !reflect.DeepEqual(end, *tt.end) {
			t.Errorf("%s: end %+v, %v", name, end, ended)
		}
	}
}

// TestWhatMayBeAnnouncedOfAJob: the ScheduledJob that it belongs to, and the labels that the operator has chosen.
func TestWhatMayBeAnnouncedOfAJob(t *testing.T) {
	name := "nightly-" + events.NominalHash(at(0))
	run := func(name string, owner metav1.OwnerReference) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, OwnerReferences: []metav1.OwnerReference{owner},
			Labels:      map[string]string{"team": "finance", "secret": "plan"},
			Annotations: map[string]string{batchv1.CronJobScheduledTimestampAnnotation: at(0).Format(time.RFC3339)}}}
	}
	ours := metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ScheduledJobKind, Name: "nightly", UID: uid, Controller: new(true)}
	cron := metav1.OwnerReference{APIVersion: "batch/v1", Kind: "CronJob", Name: "nightly", UID: uid, Controller: new(true)}
	nightly := events.Reference{Namespace: "shop", Name: "nightly", UID: uid}
	for what, tt := range map[string]struct {
		job  *batchv1.Job
		want *events.RunOwner
	}{
		"a run":            {run(name, ours), &events.RunOwner{ScheduledJob: nightly, Nominal: at(0)}},
		"a copy of a run":  {run("by-hand", ours), &events.RunOwner{ScheduledJob: nightly, Manual: true}},
		"a Job of another": {run(name, cron), nil},
	} {
		if got := events.ProjectJob(tt.job, events.Claim{}).Owner; !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v", what, got)
		}
	}
	j := run(name, ours)
	if got := events.ProjectJob(j, events.Claim{}).Labels; got != nil {
		t.Errorf("unasked: %v", got)
	}
	if got := events.ProjectJob(j, events.Claim{Labels: []string{"team", "absent"}}).Labels; !reflect.DeepEqual(got, map[string]string{"team": "finance"}) {
		t.Errorf("team: %v", got)
	}
}

// TestPublicEventsThatCannotBeRead: the error names what is wrong.
func TestPublicEventsThatCannotBeRead(t *testing.T) {
	good, err := events.EncodePublic("c", publicSamples()["JobFinishedPlain"])
	if err != nil {
		t.Fatal(err)
	}
	for message, want := range map[string]string{
		"{":  "not a structured CloudEvent",
		"{}": "decode public event",
		strings.Replace(string(good), "job.finish.v1", "job.vanish.v1", 1):     "does not belong to jobstream",
		strings.Replace(string(good), `"succeeded":1`, `"succeeded":"all"`, 1): "data",
	} {
		if p, err := events.DecodePublic([]byte(message)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want an error with %q", message, p, err, want)
		}
	}
}
