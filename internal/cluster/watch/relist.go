package watch

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/catalog"
	"github.com/jobstream/jobstream/functions/job"
	"github.com/jobstream/jobstream/internal/cluster"
)

// flushInterval is how long a lost fact may stay unnoticed.
const flushInterval = time.Second

// Run lists, publishes and watches until ctx ends, and then returns nil. No failure ends it: it waits for an API server or a sink
// that is away.
func (w *Watcher) Run(ctx context.Context) error {
	retry := w.retry("turn the cluster into facts")
	defer retry.forget()
	for {
		err := w.session(ctx, retry.over)
		if ctx.Err() != nil {
			return nil
		}
		if cluster.Expired(err) || cluster.Unserved(err) {
			w.log.Info("a watch cannot go on as it was: listing everything again", "cause", err)
		} else {
			retry.begins(err)
		}
		if retry.wait(ctx, w.again) != nil {
			return nil //nolint:nilerr // only the end of ctx ends the wait, and Run returns nil then
		}
	}
}

// session is one set of lists and the watches from there on. It ends with the first event that breaks the continuity of what was
// published. Routine relists run beside the watches.
//
//	LIST ScheduledJobs, Jobs, Pods --> snapshots --> watch each from its list on
//	                                     watch unmarked Pods where a Job may adopt them (unlabelled.go)
//	                                     list again now and then, or when asked to
func (w *Watcher) session(ctx context.Context, works func()) error {
	select {
	case <-w.again: // this session is the requested one
		w.lost = true
	default:
	}
	listed, err := w.relist(ctx)
	if w.refused.Store(apierrors.IsForbidden(err)); apierrors.IsForbidden(err) && w.config.Namespace != metav1.NamespaceAll {
		return fmt.Errorf("%w: is there such a namespace, and are jobstream's roles bound in it (deploy/namespaced)?", err)
	}
	if err != nil {
		return err
	}
	works()
	w.ready.Store(true)
	w.meterLists(listed)
	w.resetAlarm(listed)
	lists := withoutObjects(listed)
	g, ctx := errgroup.WithContext(ctx)
	w.watchUnlabelled(ctx, g, lists.AdoptingJobs)
	g.Go(func() error {
		return w.follow(ctx, "Jobs", lists.JobsVersion, w.config.Client.BatchV1().Jobs(w.config.Namespace).Watch, w.onJob)
	})
	g.Go(func() error { return w.follow(ctx, "Pods", lists.Marked, w.watchPods(cluster.MarkedPods), w.onPod) })
	if w.config.Claim.Unmanaged {
		g.Go(func() error {
			return w.follow(ctx, "Pods that others have made", lists.BuiltIn, w.watchPods(cluster.BuiltInPods), w.onUnmarked)
		})
	}
	if version, unlisted := lists.SchedulesVersion, lists.Unlisted; w.config.ScheduledJobs != nil {
		g.Go(func() error { return w.followScheduledJobs(ctx, version, unlisted) })
	}
	g.Go(func() error { return w.relists(ctx) })
	g.Go(func() error { return w.flushes(ctx) })
	return g.Wait()
}

// withoutObjects returns what the watches continue from. The objects may be many, and from here on the watches report everything.
func withoutObjects(r cluster.Lists) cluster.Lists {
	return cluster.Lists{SchedulesVersion: r.SchedulesVersion, Unlisted: r.Unlisted, JobsVersion: r.JobsVersion,
		Marked: r.Marked, BuiltIn: r.BuiltIn, AdoptingJobs: r.AdoptingJobs}
}

// watchPods watches a selection of Pods.
func (w *Watcher) watchPods(selector string) func(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		o.LabelSelector = selector
		return w.config.Client.CoreV1().Pods(w.config.Namespace).Watch(ctx, o)
	}
}

// relists lists again on request and when the interval has passed. If the API server fails, the watches go on meanwhile.
func (w *Watcher) relists(ctx context.Context) error {
	var tick <-chan time.Time
	if w.config.Interval > 0 {
		t := time.NewTicker(w.config.Interval)
		defer t.Stop()
		tick = t.C
	}
	retry := w.retry("list everything again")
	defer retry.forget()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick:
		case <-w.again:
			w.lost = true
		}
		for {
			_, err := w.relist(ctx)
			if err == nil {
				break
			}
			if isSink(err) || ctx.Err() != nil {
				return err
			}
			retry.begins(err)
			if err := retry.wait(ctx, nil); err != nil {
				return err
			}
		}
		retry.over()
	}
}

// flushes detects facts that were lost after Publish had returned.
func (w *Watcher) flushes(ctx context.Context) error {
	t := time.NewTicker(flushInterval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
		}
		if err := w.flush(ctx); err != nil {
			return err
		}
	}
}

func (w *Watcher) flush(ctx context.Context) error {
	if err := w.config.Sink.Flush(ctx); err != nil {
		return sinkError{fmt.Errorf("publish: %w", err)}
	}
	return nil
}

// relist publishes one snapshot for every claimed Job, and every ScheduledJob, that still needs one, and returns the lists when
// all of them are safe. The first time, and if the bus may have lost states, it includes all finished Jobs that may have to be
// announced again; otherwise those that have finished since the list before.
func (w *Watcher) relist(ctx context.Context) (cluster.Lists, error) {
	began, now := time.Now(), w.config.Now()
	since := now.Add(-events.ReannounceWindow)
	if w.listed.After(since) && !w.lost {
		since = w.listed
	}
	others := map[cluster.Identity]struct{}{} // Jobs that exist and are not claimed: they are not gone
	wanted := cluster.Wants{
		Job: func(j *batchv1.Job) bool {
			if w.claimed(j) {
				return true
			}
			others[cluster.IdentityOf(j)] = struct{}{}
			return false
		},
		PodsOf: func(of cluster.Identity) bool { _, other := others[of]; return !other },
	}
	if w.config.ScheduledJobs != nil {
		wanted.Schedule = everySchedule
	}
	l := w.lister()
	l.SchedulesTimeout = w.config.schedulesTimeout
	r, err := l.List(ctx, wanted)
	if err != nil {
		return r, err
	}
	w.unlabelled.leftOut(r.Unseen)
	id := w.snapshotID(&w.lastID, r.JobsVersion, r.PodsVersion)
	var snapshots, schedules int
	for _, f := range catalog.Names() {
		switch f {
		case catalog.Job:
			snapshots, err = w.tellJobs(ctx, r, id, now, since)
		case catalog.ScheduledJob:
			schedules, err = w.tellSchedules(ctx, r)
		}
		if err != nil {
			return r, err
		}
	}
	if err := w.flush(ctx); err != nil {
		return r, err
	}
	w.listed, w.lost = now.Add(-finishedLate), false
	w.log.Info("listed everything", "jobs", len(r.Jobs), "snapshots", snapshots, "scheduledJobs", len(r.Schedules), "scheduleSnapshots", schedules,
		"version", id, "took", time.Since(began).Round(time.Millisecond))
	return r, nil
}

// finishedLate is how much earlier than now the end of a Job may be that a list does not show yet: the clocks of the trigger that
// lists and of the program that finishes the Job differ.
const finishedLate = time.Minute

// tellJobs publishes the snapshots of Jobs, and returns how many. A finished Job that needs no work gets none, unless it has
// finished since the given time: the reconciler that finished it may have died before the announcement. A Job that may adopt Pods
// which could not be listed gets none now.
func (w *Watcher) tellJobs(ctx context.Context, r cluster.Lists, id string, now, since time.Time) (n int, err error) {
	tell := func(of cluster.Identity) error {
		n++
		for _, part := range r.JobListed(id, of).Split(events.SnapshotPart) {
			if err := w.tell(ctx, of.Key(job.Name), part); err != nil {
				return err
			}
		}
		return nil
	}
	for of, j := range r.Jobs {
		if job.Idle(j, r.Pods[of], since, now) || r.Hidden(of) != nil {
			continue
		}
		if err := tell(of); err != nil {
			return n, err
		}
	}
	for of, left := range r.Pods {
		if r.Jobs[of] != nil || !slices.ContainsFunc(left, func(p events.Pod) bool { return p.Held }) {
			continue
		}
		if err := tell(of); err != nil {
			return n, err
		}
	}
	return n, nil
}

// snapshotID is the same for two triggers that list the same versions, so that their snapshots become one message. It is new for
// every list of one trigger: a list without changes must still wake functions that have lost their states.
func (w *Watcher) snapshotID(last *string, versions ...uint64) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lists++
	id := "relist"
	for _, v := range versions {
		id += "/" + strconv.FormatUint(v, 10)
	}
	if before, _, _ := strings.Cut(*last, "#"); before == id {
		id += fmt.Sprintf("#%d", w.lists)
	}
	*last = id
	return id
}
