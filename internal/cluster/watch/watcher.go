package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/job"
	"github.com/jobstream/jobstream/internal/cluster"
)

// DefaultRelistInterval is how often a trigger publishes again what it has published: often enough to heal a loss with an
// unforeseen reason while a user may still be waiting, and rarely enough to cost next to nothing.
const DefaultRelistInterval = 10 * time.Minute

// Sink takes facts to where they wake functions. Several goroutines may use it at the same time.
type Sink interface {
	// Publish hands over a fact. It may return before the fact is safe; then a later Publish or Flush reports the failure. After
	// an error the Watcher lists everything again, since facts may be lost. An error that wraps one whose method Permanent() bool
	// returns true is about this fact alone, such as one that is too large: the Watcher logs and skips that fact.
	Publish(ctx context.Context, f events.Fact) error
	// Flush returns when every fact that was published before is safe. An error means that some may be lost.
	Flush(ctx context.Context) error
}

// Config describes what to watch.
type Config struct {
	Client kubernetes.Interface
	// Namespace is the namespace to watch; "" means everywhere. A trigger of several namespaces has a Watcher for each, so that a
	// denied namespace does not delay the others.
	Namespace string
	// ScheduledJobs is the client for watching these; nil watches Jobs only.
	ScheduledJobs *cluster.ScheduledJobs
	// Alarm receives every ScheduledJob; it may be nil.
	Alarm Alarm
	// Meter receives what the watches show; nil counts nothing.
	Meter Meter
	Sink  Sink
	// Cluster is the name of the cluster in the facts.
	Cluster string
	// Claim decides which Jobs are jobstream's; its ManagedBy "" means v1alpha1.DefaultManagedBy.
	Claim events.Claim
	// Interval between two complete lists; 0 makes them only when necessary.
	Interval time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Log receives failures; nil discards them.
	Log *slog.Logger

	lookAgain, schedulesTimeout time.Duration // for tests; 0 means lookAgainInterval, schedulesTimeout
}

// Watcher turns the cluster into facts. Any number of Watchers may run: two that observe the same publish the same fact.
type Watcher struct {
	config Config
	log    *slog.Logger
	again  chan struct{}
	ready  atomic.Bool
	// refused reports whether the API server denies the lists.
	refused atomic.Bool
	// unlabelled has the watches of the current session.
	unlabelled unlabelled
	// failing counts the lists and watches that fail at present.
	failing atomic.Int64
	// listed is the time up to which the last relist has reported finished Jobs, and lost reports that the next must include
	// more. Only one relist runs at a time.
	listed time.Time
	lost   bool

	mu sync.Mutex // for the fields below: ScheduledJobs are also listed separately
	// lists numbers the snapshots of this process, and lastID and lastScheduleID are the last IDs; unlisted is why ScheduledJobs
	// could not be listed.
	lists                  int
	lastID, lastScheduleID string
	unlisted               error
}

// New makes a Watcher. It fails if the configuration cannot work.
func New(c Config) (*Watcher, error) {
	switch {
	case c.Client == nil || c.Sink == nil:
		return nil, errors.New("watcher: no client or no sink: set Config.Client and Config.Sink")
	case c.Cluster == "":
		return nil, errors.New("watcher: the cluster has no name: set Config.Cluster")
	case c.Interval < 0:
		return nil, fmt.Errorf("watcher: interval %v is negative: use 0 for never", c.Interval)
	}
	if c.Claim.ManagedBy == "" {
		c.Claim.ManagedBy = v1alpha1.DefaultManagedBy
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Alarm == nil {
		c.Alarm = noAlarm{}
	}
	if c.Meter == nil {
		c.Meter = noMeter{}
	}
	c.lookAgain, c.schedulesTimeout = cmp.Or(c.lookAgain, lookAgainInterval), cmp.Or(c.schedulesTimeout, schedulesTimeout)
	w := &Watcher{config: c, log: c.Log, again: make(chan struct{}, 1)}
	if w.log == nil {
		w.log = slog.New(slog.DiscardHandler)
	}
	return w, nil
}

// publish passes a fact about the Job with that UID to the sink.
func (w *Watcher) publish(ctx context.Context, namespace string, owner types.UID, e events.Event) error {
	return w.tell(ctx, events.Key{Function: job.Name, Namespace: namespace, UID: owner}, e)
}

// tell passes a fact for the key to the sink.
func (w *Watcher) tell(ctx context.Context, key events.Key, e events.Event) error {
	err := w.config.Sink.Publish(ctx, events.Fact{Cluster: w.config.Cluster, Key: key, Event: e})
	if err == nil {
		return nil
	}
	if events.Permanent(err) {
		w.log.Error("a fact can never be published: left out", "fact", e.Type(), "key", key.String(), "cause", err)
		return nil
	}
	return sinkError{fmt.Errorf("publish %s of %s: %w", e.Type(), key, err)}
}

// Ready reports whether everything that the cluster held at some time since the start has been published.
func (w *Watcher) Ready() bool { return w.ready.Load() }

// Refused reports whether the API server denied the last list. The Watcher tries again.
func (w *Watcher) Refused() bool { return w.refused.Load() }

// Failing returns how many lists and watches fail at present; each is retried separately. A cluster without the definition of
// ScheduledJobs has none that fails.
func (w *Watcher) Failing() int {
	n := int(w.failing.Load())
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unlisted != nil && !cluster.Unserved(w.unlisted) {
		n++
	}
	return n
}

// retry returns a retryLog that counts for Failing.
func (w *Watcher) retry(what string) *retryLog {
	t := newRetryLog(w.log, what)
	t.count = &w.failing
	return t
}

func (w *Watcher) lister() cluster.Lister {
	return cluster.Lister{Client: w.config.Client, ScheduledJobs: w.config.ScheduledJobs, Claim: w.config.Claim, Namespace: w.config.Namespace}
}

// Relist makes the Watcher list everything again as soon as it can, because facts may have been lost. It returns at once.
func (w *Watcher) Relist() {
	select {
	case w.again <- struct{}{}:
	default: // requested already
	}
}

// claimed reports whether the Job is claimed.
func (w *Watcher) claimed(j *batchv1.Job) bool {
	return w.config.Claim.Matches(j)
}

// sinkError marks a failure of the sink, as opposed to one of the API server.
type sinkError struct{ error }

func (e sinkError) Unwrap() error { return e.error }

func isSink(err error) bool { sink := (sinkError{}); return errors.As(err, &sink) }

// onJob publishes the events of the watch of Jobs.
func (w *Watcher) onJob(ctx context.Context, t watch.EventType, o runtime.Object) error {
	j, ok := o.(*batchv1.Job)
	if !ok {
		return nil
	}
	if err := w.onRun(ctx, t, j); err != nil || !w.claimed(j) {
		return err
	}
	if t == watch.Deleted {
		w.unlabelled.missed(j.Namespace, j.UID)
		w.config.Meter.MissedJob(j.UID)
		return w.publish(ctx, j.Namespace, j.UID, events.JobGone{Name: j.Name, Version: events.Version(j.ResourceVersion)})
	}
	p := events.ProjectJob(j, w.config.Claim)
	w.unlabelled.saw(p)
	w.config.Meter.SawJob(p, t == watch.Added)
	return w.publish(ctx, j.Namespace, j.UID, events.JobObserved{Job: p})
}

// follow watches one resource from a version on and passes its events on. It resumes a broken watch where it was, for as long as
// it takes, and returns only if that is impossible: the server no longer has the version (expired) or serves the kind (unserved),
// the sink failed, or ctx ended.
func (w *Watcher) follow(ctx context.Context, what string, version uint64,
	open func(context.Context, metav1.ListOptions) (watch.Interface, error),
	handle func(context.Context, watch.EventType, runtime.Object) error,
) error {
	at := strconv.FormatUint(version, 10)
	retry := w.retry("watch " + what)
	defer retry.forget()
	for {
		before := at
		err := followOnce(ctx, &at, open, handle)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if isSink(err) || cluster.Expired(err) || cluster.Unserved(err) {
			return fmt.Errorf("watch %s: %w", what, err)
		}
		if at != before {
			retry.over()
		}
		if err == nil && at != before {
			continue // servers end watches now and then
		}
		if err == nil {
			err = errors.New("the API server ended the watch at once")
		}
		retry.begins(err)
		if err := retry.wait(ctx, nil); err != nil {
			return err
		}
	}
}

// followOnce makes one watch. It advances at, and returns nil if the server ended the watch in good order.
func followOnce(ctx context.Context, at *string,
	open func(context.Context, metav1.ListOptions) (watch.Interface, error),
	handle func(context.Context, watch.EventType, runtime.Object) error,
) error {
	stream, err := open(ctx, metav1.ListOptions{
		ResourceVersion: *at, AllowWatchBookmarks: true,
	})
	if err != nil {
		return err
	}
	defer stream.Stop()
	for e := range stream.ResultChan() {
		if e.Type == watch.Error {
			return apierrors.FromObject(e.Object)
		}
		o, ok := e.Object.(metav1.Object)
		if !ok {
			return fmt.Errorf("the watch delivered a %T", e.Object)
		}
		if e.Type != watch.Bookmark {
			if err := handle(ctx, e.Type, e.Object); err != nil {
				return err
			}
		}
		*at = o.GetResourceVersion()
	}
	return nil
}
