package convert

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/functions/schedule"
	"github.com/jobstream/jobstream/internal/zone"
)

// back converts a ScheduledJob to a CronJob.
func back(o *yaml.Node, opts Options) (Report, bool) {
	if text(o, "kind") != v1alpha1.ScheduledJobKind || !strings.HasPrefix(text(o, "apiVersion"), v1alpha1.Group+"/") {
		return Report{}, false
	}
	r := Report{From: v1alpha1.ScheduledJobKind, To: cronJobKind, Namespace: text(o, "metadata", "namespace"), Name: text(o, "metadata", "name")}
	var j v1alpha1.ScheduledJob
	if err := decode(o, &j); err != nil {
		r.add(Refusal, "spec", "%v", err)
		return r, true
	}
	if j.Spec.RunAt != nil {
		r.add(Refusal, "spec.runAt", "a CronJob cannot run once: create a Job at that time instead")
		return r, true
	}
	if a := j.Spec.StartAfter; a != nil && a.After(opts.Now) {
		r.add(Refusal, "spec.startAfter", "a CronJob has no later beginning: convert it after %s", a.UTC().Format(time.RFC3339))
		return r, true
	}
	cronSchedule(o, &j, &r, opts)
	lose(o, &j, &r)
	runs(o, &j, &r)
	set(o, cronJobKind, "kind")
	set(o, "batch/v1", "apiVersion")
	bare(o)
	return r, true
}

// cronSchedule writes a schedule that a CronJob accepts: without seconds, and with numbers in place of H, which depends on the
// object's UID.
func cronSchedule(o *yaml.Node, j *v1alpha1.ScheduledJob, r *Report, opts Options) {
	name := ""
	if j.Spec.TimeZone != nil {
		name = *j.Spec.TimeZone
	}
	in, err := zone.Load(name)
	if err != nil {
		r.add(Refusal, "spec.timeZone", "%v", err)
		return
	}
	if n := len(j.Spec.Schedules); n > 0 {
		r.add(Refusal, "spec.schedules", "a CronJob has one schedule: write the one into schedule, or make %d CronJobs", n)
		return
	}
	parsed, err := schedule.Parse(j.Spec.Schedule, schedule.Options{Location: in, Seed: string(j.UID), Anchor: j.CreationTimestamp.Time})
	if err != nil {
		r.add(Refusal, "spec.schedule", "%s", says(err))
		return
	}
	spec := strings.Join(strings.Fields(j.Spec.Schedule), " ")
	if hashed(spec) {
		if j.UID == "" {
			r.add(Refusal, "spec.schedule", "H is a number that depends on the object's UID: convert the object of the cluster, by its name")
			return
		}
		spec = parsed.String()
		r.add(Note, "spec.schedule", "%s is %s for this object", j.Spec.Schedule, spec)
	}
	if fields := strings.Fields(spec); len(fields) == 6 {
		if fields[0] != "0" {
			r.add(Refusal, "spec.schedule", "a CronJob has no field of seconds: write five fields")
			return
		}
		spec = strings.Join(fields[1:], " ")
	}
	if spec != j.Spec.Schedule {
		set(o, spec, "spec", "schedule")
	}
	if name == "" {
		set(o, "Etc/UTC", "spec", "timeZone")
		r.add(Note, "spec.timeZone", "Etc/UTC is written: without it a CronJob runs by the clock of its kube-controller-manager")
	}
	if strings.HasPrefix(spec, "@every") {
		set(o, parsed.String(), "spec", "schedule")
		r.add(Change, "spec.schedule", "a CronJob counts the intervals from its latest run: the times move once")
		return
	}
	if d := daylight(spec, parsed, in, opts.Now); d != "" {
		r.add(Change, "spec.schedule", "%s", d)
	}
}

// lose removes the fields that a CronJob does not have.
func lose(o *yaml.Node, j *v1alpha1.ScheduledJob, r *Report) {
	s := j.Spec
	switch s.CatchUp {
	case v1alpha1.CatchUpAll:
		r.add(Change, "spec.catchUp", "after a downtime a CronJob starts the latest of what it has missed, and no other")
	case v1alpha1.CatchUpNone:
		const limit = 60 // seconds after which catchUp None counts a run as late
		if s.StartingDeadlineSeconds == nil || *s.StartingDeadlineSeconds > limit {
			number(o, limit, "spec", "startingDeadlineSeconds")
		}
		r.add(Note, "spec.catchUp", "None becomes startingDeadlineSeconds")
	}
	if s.OnScheduleChange == v1alpha1.ChangeWaits {
		r.add(Change, "spec.onScheduleChange", "a CronJob applies a new schedule to the time since its latest run, too")
	}
	if s.JitterSeconds != nil && *s.JitterSeconds > 0 {
		r.add(Change, "spec.jitterSeconds", "no start is delayed any more")
	}
	if s.ConcurrencyPolicy == v1alpha1.ForbidConcurrent {
		r.add(Change, "spec.concurrencyPolicy", "what is due while an earlier Job runs may start when that Job has ended")
	}
	loseTimes(s, r)
	if s.ConcurrencyPolicy == v1alpha1.QueueConcurrent {
		set(o, string(v1alpha1.ForbidConcurrent), "spec", "concurrencyPolicy")
		r.add(Change, "spec.concurrencyPolicy", "Queue becomes Forbid: of the times that come while an earlier Job runs, at most the latest still starts")
	}
	if s.PauseAfterFailures != nil {
		r.add(Change, "spec.pauseAfterFailures", "a CronJob goes on however many Jobs have failed")
	}
	for _, field := range []string{"catchUp", "onScheduleChange", "jitterSeconds", "startAfter", "ttlSecondsAfterFinished", "exclude", "notBefore", "notAfter",
		"queueLimit", "pauseAfterFailures"} {
		remove(o, "spec", field)
	}
}

// loseTimes reports the times that a CronJob does not leave out.
func loseTimes(s v1alpha1.ScheduledJobSpec, r *Report) {
	if len(s.Exclude) > 0 {
		r.add(Change, "spec.exclude", "a CronJob leaves no times out: it also runs at these")
	}
	if s.NotBefore != nil {
		r.add(Change, "spec.notBefore", "a CronJob begins when it is created: create it suspended, and resume it then")
	}
	if s.NotAfter != nil {
		r.add(Change, "spec.notAfter", "a CronJob has no end: delete or suspend it then")
	}
}

// runs keeps or sets spec.managedBy of the Jobs, so that the fields and annotations only jobstream honours keep their effect.
func runs(o *yaml.Node, j *v1alpha1.ScheduledJob, r *Report) {
	m := j.Spec.JobTemplate.Spec.ManagedBy
	if m != nil && *m != v1alpha1.DefaultManagedBy {
		return
	}
	var own []string
	for key := range j.Spec.JobTemplate.Annotations {
		if strings.HasPrefix(key, v1alpha1.Group+"/") {
			own = append(own, key)
		}
	}
	slices.Sort(own)
	switch {
	case len(own) > 0:
		set(o, v1alpha1.DefaultManagedBy, "spec", "jobTemplate", "spec", "managedBy")
		r.add(Note, "spec.jobTemplate.spec.managedBy", "jobstream continues to run the Jobs, because of %s", strings.Join(own, ", "))
	case m != nil:
		r.add(Note, "spec.jobTemplate.spec.managedBy", "jobstream continues to run the Jobs: remove the field to let the built-in controller run them")
	default:
		r.add(Change, "spec.jobTemplate.spec.managedBy", "the built-in controller runs the Jobs: set the field to %s to let jobstream run them", v1alpha1.DefaultManagedBy)
	}
}

// number writes a number at a path whose parents exist.
func number(o *yaml.Node, value int, path ...string) {
	set(o, fmt.Sprint(value), path...)
	get(o, path...).Tag = "!!int"
}
