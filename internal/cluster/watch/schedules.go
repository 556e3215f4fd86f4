package watch

import (
	"context"
	"maps"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/scheduledjob"
	"github.com/jobstream/jobstream/internal/cluster"
)

// lookAgainInterval is how often a trigger checks whether ScheduledJobs have been installed: the operator who installs them does
// not have to restart it.
const lookAgainInterval = time.Minute

// schedulesTimeout bounds a page of ScheduledJobs while the list of Jobs waits for it. Otherwise a conversion webhook that does
// not answer would delay all Jobs for half a minute whenever a trigger starts. A list that takes longer is made again separately,
// and may then take as long as any other.
const schedulesTimeout = 10 * time.Second

// Alarm receives every ScheduledJob, one call at a time, and must return at once.
type Alarm interface {
	// Reset drops everything: a complete list follows, as observations.
	Reset()
	// Saw is an observation of a ScheduledJob.
	Saw(j events.ScheduledJob)
	// Gone reports that it no longer exists.
	Gone(uid types.UID)
}

// noAlarm is an Alarm that never fires.
type noAlarm struct{}

func (noAlarm) Reset()                  {}
func (noAlarm) Saw(events.ScheduledJob) {}
func (noAlarm) Gone(types.UID)          {}

// resetAlarm passes a complete list to the alarm and the Meter. From there on the watch passes everything. If there is no list for now, the
// alarm fires for those that it knows.
func (w *Watcher) resetAlarm(lists cluster.Lists) {
	if lists.Unlisted != nil && !cluster.Unserved(lists.Unlisted) {
		return
	}
	w.config.Meter.ListedSchedules(maps.Values(lists.Schedules))
	w.config.Alarm.Reset()
	for _, j := range lists.Schedules {
		w.config.Alarm.Saw(*j)
	}
}

func everySchedule(cluster.Identity) bool { return true }

// followScheduledJobs watches ScheduledJobs from a version on. If that cannot continue, or there are none to list, it lists them
// again separately, for as long as it takes: their failures do not concern Jobs. It returns only if the sink fails or ctx ends.
func (w *Watcher) followScheduledJobs(ctx context.Context, version uint64, unlisted error) error {
	pace := newRetryLog(w.log, "")
	for {
		if unlisted == nil {
			err := w.follow(ctx, "ScheduledJobs", version, w.config.ScheduledJobs.In(w.config.Namespace).Watch, w.onScheduledJob)
			if isSink(err) || ctx.Err() != nil {
				return err
			}
			w.log.Info("the watch of ScheduledJobs cannot go on as it was: listing them again", "cause", err)
			if err := pace.wait(ctx, nil); err != nil {
				return err
			}
		} else if err := pause(ctx, w.config.lookAgain); err != nil {
			return err
		} else if err := w.findScheduledJobs(ctx); err != nil {
			w.sayUnlisted(err)
			continue
		}
		r, err := w.lister().List(ctx, cluster.WantSchedules(everySchedule))
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			r = cluster.Lists{Unlisted: err}
		}
		version, unlisted = r.SchedulesVersion, r.Unlisted
		w.resetAlarm(r)
		if _, err := w.tellSchedules(ctx, r); err != nil {
			return err
		}
	}
}

// findScheduledJobs returns why they cannot be listed, without making a complete list.
func (w *Watcher) findScheduledJobs(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cluster.PageTimeout)
	defer cancel()
	_, err := w.config.ScheduledJobs.In(w.config.Namespace).List(ctx, metav1.ListOptions{Limit: 1})
	return err
}

// sayUnlisted logs once that only Jobs are managed, and once that this is over.
func (w *Watcher) sayUnlisted(why error) {
	w.mu.Lock()
	was := w.unlisted
	w.unlisted = why
	w.mu.Unlock()
	switch again := w.config.lookAgain; {
	case why == nil && was == nil, was != nil && why != nil && cluster.Unserved(was) == cluster.Unserved(why):
	case why == nil:
		w.log.Info("ScheduledJobs are there now")
	case cluster.Unserved(why):
		w.log.Info("this cluster has no ScheduledJobs: only Jobs are managed until their definition is installed", "looking again every", again)
	case apierrors.IsForbidden(why):
		w.log.Warn("the trigger may not list ScheduledJobs: until it may, only Jobs are managed; give its role the verbs list and watch",
			"cause", why, "looking again every", again)
	default:
		w.log.Warn("cannot list ScheduledJobs: Jobs are worked for, and those ScheduledJobs that are known stay on time; look after the API server",
			"cause", why, "trying again every", again)
	}
}

// onScheduledJob publishes the events of the watch of ScheduledJobs.
func (w *Watcher) onScheduledJob(ctx context.Context, t watch.EventType, o runtime.Object) error {
	j, ok := o.(*cluster.ScheduledJob)
	if !ok {
		return nil
	}
	key := events.Key{Function: scheduledjob.Name, Namespace: j.Namespace, UID: j.UID}
	if t == watch.Deleted {
		w.config.Alarm.Gone(j.UID)
		w.config.Meter.MissedSchedule(j.UID)
		return w.tell(ctx, key, events.ScheduledJobGone{Name: j.Name, Version: events.Version(j.ResourceVersion)})
	}
	p := j.Project()
	w.config.Alarm.Saw(p)
	w.config.Meter.SawSchedule(p)
	return w.tell(ctx, key, events.ScheduledJobObserved{ScheduledJob: p})
}

// onRun reports to the ScheduledJob that owns the Job, whichever controller runs that, what matters to it: that the Job exists,
// is being deleted, has finished, or is gone. Its progress in between concerns the Job alone.
func (w *Watcher) onRun(ctx context.Context, t watch.EventType, j *batchv1.Job) error {
	owner, run, ok := events.ProjectRun(j)
	if !ok || w.config.ScheduledJobs == nil {
		return nil
	}
	key := events.Key{Function: scheduledjob.Name, Namespace: j.Namespace, UID: owner}
	switch {
	case t == watch.Deleted:
		return w.tell(ctx, key, events.RunGone{Run: run})
	case j.Status.StartTime == nil, run.Deleting, run.Result != "":
		return w.tell(ctx, key, events.RunObserved{Run: run})
	}
	return nil
}

// tellSchedules publishes the snapshots of ScheduledJobs, and returns how many. Those without work get none: there may be very
// many, and the alarm wakes them when their time comes.
func (w *Watcher) tellSchedules(ctx context.Context, r cluster.Lists) (n int, err error) {
	if w.config.ScheduledJobs == nil {
		return 0, nil
	}
	w.sayUnlisted(r.Unlisted)
	now := w.config.Now()
	id := w.snapshotID(&w.lastScheduleID, r.SchedulesVersion, r.JobsVersion)
	for of, j := range r.Schedules {
		if scheduledjob.Idle(j, r.Runs[of], now, announceWithin) {
			continue
		}
		n++
		if err := w.tell(ctx, of.Key(scheduledjob.Name), r.ScheduleListed(id, of)); err != nil {
			return n, err
		}
	}
	return n, nil
}

// announceWithin is how long after a verdict its announcement may be missing because the bus was wiped at that moment. A schedule
// that the next complete list wakes announces everything in its status once more; one that is due soon is woken anyway.
const announceWithin = DefaultRelistInterval + 2*time.Minute
