package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/scheduledjob"
	"github.com/jobstream/jobstream/internal/sim/schedules"
)

// scheduler is a ScheduledJob whose Jobs are Jobs of this world: each is a tenant that the job function runs. Its changes are
// forwarded to the ScheduledJob's own API, which keeps its truth.
type scheduler struct {
	*World
	api    *schedules.API
	truth  *schedules.Truth
	runs   map[types.UID]*tenant
	fired  time.Time // the latest time for which the alarm has fired
	looked time.Time // when the trigger last looked
}

// shop is the namespace of the ScheduledJob.
const shop = "shop"

func newScheduler(w *World) *scheduler {
	s := &scheduler{World: w, api: schedules.NewAPI(w.now), runs: map[types.UID]*tenant{}, fired: w.now, looked: w.now}
	s.api.Prefix = shop + "-"
	s.truth = schedules.NewTruth(s.api)
	pick := func(of ...string) string { return of[w.rand.IntN(len(of))] }
	j := events.ScheduledJob{
		Namespace: shop, Name: "nightly", Schedule: s.schedule(),
		ConcurrencyPolicy: v1alpha1.ConcurrencyPolicy(pick("Allow", "Forbid", "Replace")),
		CatchUp:           v1alpha1.CatchUpPolicy(pick("Latest", "All", "None")),
		OnScheduleChange:  v1alpha1.ScheduleChangePolicy(pick("CatchUp", "Wait")),
		SuccessfulJobs:    int32(w.rand.IntN(3)), FailedJobs: int32(w.rand.IntN(2)), JitterSeconds: int32(w.rand.IntN(2) * w.rand.IntN(5)),
	}
	if w.rand.IntN(3) == 0 {
		j.StartingDeadlineSeconds = new(int64(w.rand.IntN(60)))
	}
	s.trace("user     creates the ScheduledJob: %q, %s, %s, deadline %d, jitter %d", j.Schedule, j.ConcurrencyPolicy, j.CatchUp,
		or(j.StartingDeadlineSeconds), j.JitterSeconds)
	s.api.Create(j)
	s.flush()
	return s
}

// schedule draws a schedule with which Jobs are due during the rough weather.
func (s *scheduler) schedule() string {
	return []string{"* * * * *", "@every 20s", "@every 7s", "*/10 * * * * *"}[s.rand.IntN(4)]
}

func (s *scheduler) trace(format string, args ...any) { s.World.trace("["+shop+"] "+format, args...) }

func (s *scheduler) fail(format string, args ...any) { s.fleet.fail("["+shop+"] "+format, args...) }

// forgot records that memory was lost. Verdicts stay exact without it.
func (s *scheduler) forgot() { s.truth.Lost = s.now }

// late records that an effect was carried out long after it was decided.
func (s *scheduler) late(e effect.Effect) {
	if _, ok := e.(effect.CreateJob); ok {
		s.truth.Late = true
	}
}

func (s *scheduler) key() events.Key {
	return events.Key{Function: scheduledjob.Name, Namespace: shop, UID: s.api.Object.UID}
}

// flush publishes what the trigger sees.
func (s *scheduler) flush() {
	for _, e := range s.api.Facts {
		if s.gap {
			continue
		}
		s.bus.publish(s.key(), e)
		if s.odds(s.rates.Repeat) {
			s.bus.publish(s.key(), e)
		}
	}
	s.api.Facts = nil
}

// notify is the trigger's alarm, which looks once a second.
func (s *scheduler) notify() {
	s.api.Now = s.now
	if s.gap || s.now.Sub(s.looked) < time.Second {
		return
	}
	s.looked = s.now
	if last, ok := s.api.Times().Prev(s.now); ok && last.After(s.fired) {
		s.fired = last
		s.bus.publish(s.key(), events.ScheduleDue{Nominal: last})
	}
}

func (s *scheduler) relist() {
	s.bus.publish(s.key(), s.api.List(fmt.Sprintf("relist-%d", s.lists)))
}

// call carries an effect out, checked by the oracle.
func (s *scheduler) call(_ context.Context, k *worker, e effect.Effect, _ bool) ([]events.Event, error) {
	s.api.Now, s.truth.Ahead, s.truth.DecidedAt = s.now, s.fleet.fastest, k.decided.Add(-k.of.skew)
	if s.api.Refuse = ""; s.quota {
		s.api.Refuse = "Forbidden"
	}
	s.truth.Before(e)
	facts := s.api.Act(e)
	s.truth.After(e)
	if c, ok := e.(effect.CreateJob); ok && s.truth.Vain(c.Name) {
		s.happens("run in vain", "[%s] %s is created after another worker did not find it", shop, c.Name)
	}
	s.follow()
	s.flush()
	return facts, nil
}

// follow makes the cluster follow the ScheduledJob's API: Jobs appear, are being deleted, and are gone.
func (s *scheduler) follow() {
	for _, name := range s.api.Names() {
		run := s.api.Jobs[name]
		t := s.runs[run.UID]
		if t == nil {
			t = s.run(run)
		}
		if run.Deleting {
			t.api.LeaveJob(run.UID, metav1.DeletePropagationForeground)
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(s.runs)) {
		if t := s.runs[uid]; t.api.jobs[uid] != nil && !s.exists(t) {
			t.trace("api      the Job is deleted in the background")
			t.api.DeleteJob(uid)
		}
	}
}

// run creates the tenant of a Job.
func (s *scheduler) run(run *schedules.Job) *tenant {
	t := newTenant(s.World, fmt.Sprintf("%s-%d", shop, len(s.runs)+1), chooseRun(s.rand))
	t.plan.job.Name, t.plan.job.UID, t.parent = run.Name, run.UID, s
	s.runs[run.UID] = t
	s.tenants = append(s.tenants, t)
	t.begin()
	return t
}

func (s *scheduler) exists(t *tenant) bool {
	run := s.api.Jobs[t.plan.job.Name]
	return run != nil && run.UID == t.uid
}

// forward passes a change of a Job to the ScheduledJob's API.
func (s *scheduler) forward(t *tenant, e events.Event) {
	if !s.exists(t) {
		return
	}
	s.api.Now = s.now
	name := t.plan.job.Name
	run := s.api.Jobs[name]
	switch e := e.(type) {
	case events.JobObserved:
		if run.Result != "" || !e.Job.Finished() {
			return
		}
		result := events.RunComplete
		if has(e.Job, batchv1.JobFailed) {
			result = events.RunFailed
		}
		s.truth.Ended(name, result)
		s.api.Finish(name, result)
	case events.JobGone:
		if run.Result == "" {
			s.truth.Ended(name, "")
		}
		s.truth.Gone(name)
		s.truth.Forgot() // here memories and facts are lost in many ways
		s.api.Remove(name)
	default:
		return
	}
	s.flush()
}

// meddle draws what users do to a ScheduledJob.
func (s *scheduler) meddle() {
	switch s.rand.IntN(4) {
	case 0:
		s.truth.Edited = true
		s.edit(func(j *events.ScheduledJob) { j.Schedule = s.schedule() })
	case 1:
		s.edit(func(*events.ScheduledJob) {}) // another template
	default:
		s.edit(func(j *events.ScheduledJob) { j.Suspended = !j.Suspended })
	}
}

func (s *scheduler) edit(change func(*events.ScheduledJob)) {
	s.api.Now = s.now
	s.api.Edit(change)
	s.trace("user     edits the ScheduledJob: %q, suspended %v", s.api.Object.Schedule, s.api.Object.Suspended)
	s.flush()
}

// heal suspends the ScheduledJob, so that no more Jobs start and the world ends.
func (s *scheduler) heal() { s.edit(func(j *events.ScheduledJob) { j.Suspended = true }) }

// resumed compares the status and the ledger with what happened. Nominal times of the suspension are decided when the
// ScheduledJob resumes, by a reconciler whose clock may be behind; Jobs that start meanwhile run to their end.
func (s *scheduler) resumed() error {
	if s.truth.Late {
		return nil // a sleeping worker created a Job whose nominal time may have another verdict
	}
	s.frozen = false
	s.truth.Until = s.now
	s.edit(func(j *events.ScheduledJob) { j.Suspended = false })
	for i := 0; !s.truth.Decided() && i < calmSteps; i++ {
		s.Step()
		if err := s.Check(); err != nil {
			return err
		}
	}
	s.heal()
	if err := s.rest(); err != nil {
		return err
	}
	s.api.Now = s.now
	if err := s.truth.Check(); err != nil {
		return fmt.Errorf("[%s] %w", shop, err)
	}
	return s.Settled()
}

// settled checks that none of its Jobs is unfinished.
func (s *scheduler) settled() error {
	if active := s.api.Object.Status.Active; len(active) > 0 && !s.truth.Late {
		return fmt.Errorf("[%s] active %v", shop, active)
	}
	return s.truth.Err()
}
