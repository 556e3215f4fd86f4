package convert

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/functions/schedule"
	"github.com/jobstream/jobstream/internal/zone"
)

const cronJobKind = "CronJob"

// shortDeadline is the startingDeadlineSeconds, in seconds, below which even a short absence of the controller misses a run.
const shortDeadline = 10

// forward converts a CronJob to a ScheduledJob.
func forward(o *yaml.Node, opts Options) (Report, bool) {
	if text(o, "kind") != cronJobKind || !strings.HasPrefix(text(o, "apiVersion"), "batch/") {
		return Report{}, false
	}
	r := Report{From: cronJobKind, To: v1alpha1.ScheduledJobKind, Namespace: text(o, "metadata", "namespace"), Name: text(o, "metadata", "name")}
	var c batchv1.CronJob
	if err := decode(o, &c); err != nil {
		r.add(Refusal, "spec", "%v", err)
		return r, true
	}
	if v := text(o, "apiVersion"); v != "batch/v1" {
		r.add(Note, "apiVersion", "%s is no longer served; its fields are those of batch/v1", v)
	}
	when(o, &c, &r, opts)
	differ(&c, &r)
	set(o, v1alpha1.ScheduledJobKind, "kind")
	set(o, v1alpha1.GroupVersion.String(), "apiVersion")
	bare(o)
	return r, true
}

// decode reads an object as the API server does: by its JSON names.
func decode(o *yaml.Node, into any) error {
	var plain any
	if err := o.Decode(&plain); err != nil {
		return err
	}
	b, err := json.Marshal(plain)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("it cannot be read: %w", err)
	}
	return nil
}

// when converts schedule and timeZone.
func when(o *yaml.Node, c *batchv1.CronJob, r *Report, opts Options) {
	spec, name := strings.TrimSpace(c.Spec.Schedule), ""
	if c.Spec.TimeZone != nil {
		name = *c.Spec.TimeZone
	}
	if prefix, rest, ok := strings.Cut(spec, " "); ok && strings.Contains(prefix, "TZ=") {
		_, in, _ := strings.Cut(prefix, "=")
		if name != "" && name != in {
			r.add(Refusal, "spec.schedule", "%s and timeZone %s contradict each other: remove one", prefix, name)
			return
		}
		spec, name = strings.TrimSpace(rest), in
		set(o, spec, "spec", "schedule")
		set(o, name, "spec", "timeZone")
		r.add(Note, "spec.schedule", "%s moves to timeZone", prefix)
	}
	if name == "" && opts.TimeZone != "" {
		name = opts.TimeZone
		set(o, name, "spec", "timeZone")
	} else if name == "" {
		r.add(Change, "spec.timeZone", "without it a CronJob runs by the clock of its kube-controller-manager, a ScheduledJob in UTC: if that is another zone, convert with --time-zone")
	}
	location, err := zone.Load(name)
	if err != nil {
		r.add(Refusal, "spec.timeZone", "%v", err)
		return
	}
	if d, ok := strings.CutPrefix(spec, "@every "); ok {
		every(o, strings.TrimSpace(d), r)
		return
	}
	parsed, err := schedule.Parse(spec, schedule.Options{Location: location})
	if err != nil {
		r.add(Refusal, "spec.schedule", "%s", says(err))
		return
	}
	if len(strings.Fields(spec)) > 5 || hashed(spec) {
		r.add(Refusal, "spec.schedule", "%q is no schedule of a CronJob: write five fields without H", spec)
		return
	}
	if d := daylight(spec, parsed, location, opts.Now); d != "" {
		r.add(Change, "spec.schedule", "%s", d)
	}
}

// says returns the description of a schedule error, without the name of its field.
func says(err error) string {
	if e := (*schedule.Error)(nil); errors.As(err, &e) {
		return e.Message
	}
	return err.Error()
}

// hashed reports whether a field uses H, which no CronJob supports. Names of months and weekdays have more than one letter.
func hashed(spec string) bool {
	for _, field := range strings.Fields(spec) {
		for _, term := range strings.Split(field, ",") {
			if term == "H" || strings.HasPrefix(term, "H(") || strings.HasPrefix(term, "H/") {
				return true
			}
		}
	}
	return false
}

// every converts an interval. A CronJob silently drops its fractions of a second.
func every(o *yaml.Node, text string, r *Report) {
	d, err := time.ParseDuration(text)
	if err != nil {
		r.add(Refusal, "spec.schedule", "@every %s: %v", text, err)
		return
	}
	if whole := max(d.Truncate(time.Second), time.Second); whole != d {
		set(o, "@every "+whole.String(), "spec", "schedule")
		r.add(Note, "spec.schedule", "a CronJob reads @every %s as @every %s, which the result has", text, whole)
	}
	r.add(Change, "spec.schedule", "a CronJob counts the intervals from its latest run, a ScheduledJob from its own creation: the times move once")
}

// differ reports the remaining differences in behaviour.
func differ(c *batchv1.CronJob, r *Report) {
	s := c.Spec
	for _, owner := range c.OwnerReferences {
		r.add(Refusal, "metadata.ownerReferences", "it belongs to %s %s, which would create it again: convert what that is made from", owner.Kind, owner.Name)
	}
	if t := s.JobTemplate.Spec; t.Selector != nil || t.ManualSelector != nil && *t.ManualSelector {
		r.add(Refusal, "spec.jobTemplate.spec.selector", "the Jobs of one ScheduledJob would count each other's Pods: remove selector and manualSelector")
	}
	if s.ConcurrencyPolicy == batchv1.ForbidConcurrent {
		r.add(Change, "spec.concurrencyPolicy", "what is due while an earlier Job runs is skipped for good; a CronJob may still start it when that Job has ended")
	}
	if s.Suspend != nil && *s.Suspend {
		r.add(Change, "spec.suspend", "when it is resumed, what has passed meanwhile is skipped; a CronJob starts the latest of it")
	}
	if d := s.StartingDeadlineSeconds; d != nil && *d == 0 {
		r.add(Refusal, "spec.startingDeadlineSeconds", "with 0 it creates no Job, and a ScheduledJob needs at least 1: set it, or remove it for no limit")
	} else if d != nil && *d < shortDeadline {
		r.add(Note, "spec.startingDeadlineSeconds", "%d seconds miss a run whenever the reconciler is away for as long", *d)
	}
	switch m := s.JobTemplate.Spec.ManagedBy; {
	case m == nil || *m == v1alpha1.DefaultManagedBy:
	case *m == "kubernetes.io/job-controller":
		r.add(Note, "spec.jobTemplate.spec.managedBy", "the built-in controller keeps its Jobs, because of this field: remove it to let jobstream run them")
	default:
		r.add(Note, "spec.jobTemplate.spec.managedBy", "%s keeps its Jobs: remove the field to let jobstream run them", *m)
	}
}
