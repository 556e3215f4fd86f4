package show

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/schedule"
)

// Schedule is what is known of a ScheduledJob, from watches and from the bus.
type Schedule struct {
	Name string

	created  time.Time
	settled  bool // suspended, and no Job is active
	times    schedule.Schedule
	verdicts []events.TickDecided
	made     map[types.UID]bool               // Jobs seen on the API server
	finished map[types.UID]events.JobFinished // Jobs with a JobFinish on the bus
}

// Scheduled adds a ScheduledJob that has been applied. It returns an error if its schedule is invalid.
func (s *Story) Scheduled(o *v1alpha1.ScheduledJob, at time.Time) ([]Moment, error) {
	times, err := schedule.Parse(o.Spec.Schedule, schedule.Options{Seed: string(o.UID), Anchor: o.CreationTimestamp.Time})
	if err != nil {
		return nil, fmt.Errorf("ScheduledJob %s: %w", o.Name, err)
	}
	s.Schedule = &Schedule{Name: o.Name, created: o.CreationTimestamp.Time, times: times, made: map[types.UID]bool{}, finished: map[types.UID]events.JobFinished{}}
	return []Moment{{At: at, Who: o.Name, Text: fmt.Sprintf("applied: %s, %s", o.Spec.Schedule, cmp.Or(o.Spec.ConcurrencyPolicy, v1alpha1.AllowConcurrent))}}, nil
}

// sawRun records a Job that belongs to the schedule.
func (c *Schedule) sawRun(j *batchv1.Job) {
	if owner := metav1.GetControllerOfNoCopy(j); c != nil && owner != nil && owner.Kind == v1alpha1.ScheduledJobKind && owner.Name == c.Name {
		c.made[j.UID] = true
	}
}

// SawSchedule records the current state of the ScheduledJob.
func (s *Story) SawSchedule(o *v1alpha1.ScheduledJob) {
	c := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.SuspendedCondition)
	s.Schedule.settled = c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == o.Generation && len(o.Status.Active) == 0
}

// Over reports whether the schedule is suspended, and all its Jobs have ended and their events have arrived: nothing follows.
func (c *Schedule) Over() bool {
	return c.settled && len(c.finished) == len(c.made) && len(c.made) == c.count(events.Started)
}

// count returns how many nominal times had the verdict.
func (c *Schedule) count(verdict events.Verdict) (n int) {
	for _, v := range c.verdicts {
		if v.Verdict == verdict {
			n += int(v.Count)
		}
	}
	return n
}

// faults lists deviations: each nominal time since the creation must have one verdict, and each Started one must have one Job
// whose JobFinish was received.
func (c *Schedule) faults() (out []string) {
	ordered := slices.SortedFunc(slices.Values(c.verdicts), func(a, b events.TickDecided) int { return a.Nominal.Compare(b.Nominal) })
	next, _ := c.times.Next(c.created)
	for _, v := range ordered {
		until := v.Until
		if until.IsZero() {
			until = v.Nominal
		}
		if !v.Nominal.Equal(next) || v.Count != 1+c.times.Count(v.Nominal, until) {
			out = append(out, fmt.Sprintf("%s came where %s was expected", v, next.UTC().Format(time.RFC3339)))
		}
		next, _ = c.times.Next(until)
	}
	if started := c.count(events.Started); len(c.made) != started || len(c.finished) != started {
		out = append(out, fmt.Sprintf("%d nominal times started, but %d Jobs were made, and %d JobFinish received", started, len(c.made), len(c.finished)))
	}
	return out
}

// Summary describes what became of the nominal times, and the deviations.
func (c *Schedule) Summary() []string {
	times, kinds := 0, map[string]int{}
	for _, v := range c.verdicts {
		times += int(v.Count)
		kinds[verdict(v)] += int(v.Count)
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		parts = append(parts, fmt.Sprintf("%d %s", kinds[kind], kind))
	}
	lines := []string{
		fmt.Sprintf("ScheduledJob %s, %s:", c.Name, c.times),
		fmt.Sprintf("  verdicts     %d: %s", times, strings.Join(parts, ", ")),
		fmt.Sprintf("  runs         %s made, %d JobFinish received", count(int32(len(c.made)), "Job"), len(c.finished)),
	}
	if faults := c.faults(); len(faults) > 0 {
		return append(lines, told(faults)...)
	}
	return append(lines, "  exact        yes: each nominal time since it was applied has one verdict, and each that started one Job")
}

// verdict is a verdict and its reason.
func verdict(v events.TickDecided) string {
	if v.Reason == "" {
		return string(v.Verdict)
	}
	return fmt.Sprintf("%s (%s)", v.Verdict, v.Reason)
}

// told returns a line for each deviation.
func told(faults []string) (lines []string) {
	for _, f := range faults {
		lines = append(lines, "  NOT EXACT    "+f)
	}
	return lines
}
