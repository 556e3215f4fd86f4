package convert_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

// The ScheduledJob begins where the CronJob has stopped: after the last nominal time that has a Job, even if the status has
// another time.
func TestAScheduledJobBeginsWhereTheCronJobStopped(t *testing.T) {
	s := newStage(t)
	for _, c := range []struct {
		name   string
		status batchv1.CronJobStatus
		change func(*batchv1.CronJob)
		job    time.Time // of a Job that is missing from the status
		want   func(*batchv1.CronJob) time.Time
	}{
		{"its-status-says-it", atTen, nil, time.Time{}, func(*batchv1.CronJob) time.Time { return ten }},
		{"its-status-lags-behind", atTen, nil, ten01, func(*batchv1.CronJob) time.Time { return ten01 }},
		{"it-has-never-run", noTime, nil, time.Time{}, func(c *batchv1.CronJob) time.Time { return c.CreationTimestamp.UTC() }},
		{"an-attempt-ended-after-the-suspension", atTen, suspendedByConvert, ten01, func(*batchv1.CronJob) time.Time { return ten01 }},
		{"its-user-had-suspended-it", atTen, suspended, time.Time{}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := s.namespace(t, c.name)
			from := s.cronJob("minutely", c.status, c.change)
			if !c.job.IsZero() {
				s.job(from, c.job)
			}
			if _, err := s.TakeOver(t.Context(), []batchv1.CronJob{*from}); err != nil {
				t.Fatal(err)
			}
			j, live := s.scheduledJob("minutely"), s.live("minutely")
			if !ptr.Deref(live.Spec.Suspend, false) {
				t.Error("the CronJob goes on")
			}
			if c.want == nil {
				if j.Spec.StartAfter != nil || !ptr.Deref(j.Spec.Suspend, false) || live.Labels[v1alpha1.SuspendedByLabel] != "" {
					t.Errorf("%+v, labels of the CronJob %v: both are to stay suspended, by their user", j.Spec, live.Labels)
				}
				return
			}
			if want := c.want(from); j.Spec.StartAfter == nil || !j.Spec.StartAfter.Time.Equal(want) || ptr.Deref(j.Spec.Suspend, false) {
				t.Errorf("it begins after %v, suspend %v; want %v", j.Spec.StartAfter, j.Spec.Suspend, want)
			}
			if _, err := s.TakeOver(t.Context(), []batchv1.CronJob{*live}); err != nil || !s.printed("has taken over already") {
				t.Errorf("once more: %v, it says %q", err, s.said)
			}
		})
	}
}

// If one object cannot be converted, nothing is suspended, and the error names it with a remedy.
func TestNothingIsSuspendedUnlessAllCanBeConverted(t *testing.T) {
	s := newStage(t)
	for _, c := range []struct {
		name, says string
		bad        func(*batchv1.CronJob)
		before     func(*stage)
	}{
		{"a-selector", "nothing has been changed: cronjob a-selector/bad: it cannot be converted", func(c *batchv1.CronJob) {
			c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Backup", Name: "b", UID: "u"}}
		}, nil},
		{"a-namesake", "was not made from this CronJob: delete it, or rename it", nil, func(s *stage) {
			o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.ScheduledJobKind,
				"metadata": map[string]any{"name": "bad"}, "spec": map[string]any{"schedule": "0 0 1 1 *", "jobTemplate": map[string]any{"spec": map[string]any{"template": map[string]any{
					"spec": map[string]any{"restartPolicy": "Never", "containers": []any{map[string]any{"name": "main", "image": "true"}}}}}}}}}
			if _, err := s.scheduledJobs().Create(s.Context(), o, metav1.CreateOptions{}); err != nil {
				s.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := s.namespace(t, c.name)
			good, bad := s.cronJob("good", atTen, nil), s.cronJob("bad", atTen, c.bad)
			if c.before != nil {
				c.before(s)
			}
			if _, err := s.TakeOver(t.Context(), []batchv1.CronJob{*good, *bad}); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
			for _, name := range []string{"good", "bad"} {
				if ptr.Deref(s.live(name).Spec.Suspend, false) {
					t.Errorf("%s is suspended", name)
				}
			}
		})
	}
}

// If Jobs must not overlap, the first Job of the ScheduledJob waits for the last one of the CronJob.
func TestATakeoverWaitsForAJobThatMustNotOverlap(t *testing.T) {
	s := newStage(t).namespace(t, "forbid")
	from := s.cronJob("minutely", atTen, forbidding)
	j := s.job(from, ten01)
	ended := make(chan error, 1)
	go func() {
		_, err := s.TakeOver(t.Context(), []batchv1.CronJob{*from})
		ended <- err
	}()
	s.await("word that it waits", func() bool { return s.printed("waiting for Job " + j.Name) })
	if _, err := s.scheduledJobs().Get(t.Context(), "minutely", metav1.GetOptions{}); err == nil {
		t.Error("the ScheduledJob is there, and the Job still runs")
	}
	now := metav1.Now()
	j.Status.StartTime = &now
	j.Status.Conditions = []batchv1.JobCondition{{Type: "FailureTarget", Status: "True", LastTransitionTime: now}, {Type: batchv1.JobFailed, Status: "True", LastTransitionTime: now}}
	if _, err := s.BatchV1().Jobs(s.ns).UpdateStatus(t.Context(), j, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(soon):
		t.Fatal("it still waits")
	}
	if at := s.scheduledJob("minutely").Spec.StartAfter; at == nil || !at.Time.Equal(ten01) {
		t.Errorf("it begins after %v", at)
	}
}

// A Job that runs for hours delays only its own schedule.
func TestATakeoverThatWaitsKeepsNoOther(t *testing.T) {
	s := newStage(t).namespace(t, "busy")
	busy, free := s.cronJob("busy", atTen, forbidding), s.cronJob("free", atTen, nil)
	s.job(busy, ten)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := s.TakeOver(ctx, []batchv1.CronJob{*busy, *free})
		ended <- err
	}()
	s.await("free has taken over", func() bool { return s.printed("busy/free has taken over") })
	cancel()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "goes on where it stopped when you repeat the command") {
		t.Errorf("interrupted, it says %v", err)
	}
}

// Changes that a user makes while the takeover waits are included.
func TestATakeoverTakesWhatTheCronJobIsByThen(t *testing.T) {
	s := newStage(t).namespace(t, "changed")
	from := s.cronJob("minutely", atTen, nil)
	live := from.DeepCopy()
	live.Spec.JobTemplate.Spec.Template.Spec.Containers[0].Image = "newer"
	if _, err := s.BatchV1().CronJobs(s.ns).Update(t.Context(), live, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.TakeOver(t.Context(), []batchv1.CronJob{*from}); err != nil {
		t.Fatal(err)
	}
	if image := s.scheduledJob("minutely").Spec.JobTemplate.Spec.Template.Spec.Containers[0].Image; image != "newer" {
		t.Errorf("it runs the image %s", image)
	}
}

// The way back: the suspended CronJob resumes where the ScheduledJob has stopped, with the ScheduledJob's current spec.
func TestACronJobGoesOnWhereTheScheduledJobStopped(t *testing.T) {
	s := newStage(t).namespace(t, "back")
	from := s.cronJob("minutely", atTen, nil)
	if _, err := s.TakeOver(t.Context(), []batchv1.CronJob{*from}); err != nil {
		t.Fatal(err)
	}
	five := ten.Add(5 * time.Minute)
	patch := fmt.Sprintf(`{"spec":{"schedule":"*/2 * * * *"},"status":{"observedGeneration":99,"decidedUntil":%[2]q,"lastScheduleTime":%[1]q,"recent":[
		{"time":%[1]q,"count":1,"verdict":"Started","jobName":"a"},{"time":%[2]q,"count":1,"verdict":"Skipped","reason":"Suspended"}]}}`,
		five.Format(time.RFC3339), five.Add(time.Minute).Format(time.RFC3339))
	for _, sub := range [][]string{nil, {"status"}} {
		if _, err := s.scheduledJobs().Patch(t.Context(), "minutely", "application/merge-patch+json", []byte(patch), metav1.PatchOptions{}, sub...); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.HandBack(t.Context(), []v1alpha1.ScheduledJob{*s.scheduledJob("minutely")}); err != nil {
		t.Fatal(err)
	}
	live := s.live("minutely")
	if at := live.Status.LastScheduleTime; live.UID != from.UID || at == nil || !at.Time.Equal(five) || ptr.Deref(live.Spec.Suspend, true) ||
		live.Labels[v1alpha1.SuspendedByLabel] != "" || live.Spec.Schedule != "*/2 * * * *" {
		t.Errorf("%v, goes on after %v, suspend %v, labels %v", live.Spec.Schedule, live.Status.LastScheduleTime, ptr.Deref(live.Spec.Suspend, true), live.Labels)
	}
	if j := s.scheduledJob("minutely"); !ptr.Deref(j.Spec.Suspend, false) || j.Labels[v1alpha1.SuspendedByLabel] != v1alpha1.SuspendedByConvert {
		t.Errorf("the ScheduledJob goes on: %v, %v", j.Spec.Suspend, j.Labels)
	}
	if _, err := s.HandBack(t.Context(), []v1alpha1.ScheduledJob{*s.scheduledJob("minutely")}); err != nil || !s.printed("cronjob back/minutely has taken over already") {
		t.Errorf("once more: %v", err)
	}
	if _, err := s.TakeOver(t.Context(), []batchv1.CronJob{*live}); err == nil || !strings.Contains(err.Error(), "kubectl delete scheduledjob minutely -n back") {
		t.Errorf("forth again: %v", err)
	}
}

// Times that were skipped because the user had suspended the object stay skipped.
func TestAHandBackStartsNothingThatWasSkipped(t *testing.T) {
	s := newStage(t).namespace(t, "skipped")
	const suspendedCondition = `{"type":"Suspended","status":"True","reason":"Suspended","message":"","lastTransitionTime":%q}`
	hour := func(n int) string { return ten.Add(time.Duration(n) * time.Hour).Format(time.RFC3339) }
	for _, c := range []struct {
		name, status string
		suspend      bool
		want         time.Time
	}{
		{"resumed-before", `"recent":[{"time":"` + hour(0) + `","count":1,"verdict":"Started"},{"time":"` + hour(1) + `","until":"` + hour(5) +
			`","count":5,"verdict":"Skipped","reason":"Suspended"}],"conditions":[` + fmt.Sprintf(suspendedCondition, hour(6)) + `]`, false, ten.Add(5 * time.Hour)},
		{"suspended-still", `"decidedUntil":"` + hour(7) + `"`, true, ten.Add(7 * time.Hour)},
	} {
		t.Run(c.name, func(t *testing.T) {
			from := s.cronJob(c.name, atTen, nil)
			if _, err := s.TakeOver(t.Context(), []batchv1.CronJob{*from}); err != nil {
				t.Fatal(err)
			}
			spec := fmt.Sprintf(`{"spec":{"suspend":%t}}`, c.suspend)
			if _, err := s.scheduledJobs().Patch(t.Context(), c.name, "application/merge-patch+json", []byte(spec), metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			status := `{"status":{"observedGeneration":99,"lastScheduleTime":"` + hour(0) + `",` + c.status + `}}`
			if _, err := s.scheduledJobs().Patch(t.Context(), c.name, "application/merge-patch+json", []byte(status), metav1.PatchOptions{}, "status"); err != nil {
				t.Fatal(err)
			}
			if _, err := s.HandBack(t.Context(), []v1alpha1.ScheduledJob{*s.scheduledJob(c.name)}); err != nil {
				t.Fatal(err)
			}
			live := s.live(c.name)
			if at := live.Status.LastScheduleTime; at == nil || !at.Time.Equal(c.want) || ptr.Deref(live.Spec.Suspend, false) != c.suspend {
				t.Errorf("the CronJob goes on after %v, want %v; suspend %v", at, c.want, ptr.Deref(live.Spec.Suspend, false))
			}
		})
	}
}
