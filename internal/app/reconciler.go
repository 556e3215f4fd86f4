package app

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/bus"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/catalog"
	"github.com/jobstream/jobstream/functions/job"
	"github.com/jobstream/jobstream/internal/cluster/act"
	"github.com/jobstream/jobstream/internal/engine"
	"github.com/jobstream/jobstream/internal/zone"
)

// drainTimeout is how long a stopping reconciler waits for its running turns: a request to a hanging API server takes 15 seconds
// to fail. Unfinished facts are redelivered to another reconciler.
const drainTimeout = 15 * time.Second

// ReconcilerConfig configures a reconciler.
type ReconcilerConfig struct {
	Options
	// Keys is the number of turns that run at once, Requests the largest number of concurrent requests to the API server; 0 means
	// the default.
	Keys, Requests int
	// Limits are the limits within which Jobs run.
	Limits job.Limits
	// KeepManagedFields leaves the field ownership of Jobs and Pods alone.
	KeepManagedFields bool
	// CoreEvents writes a Kubernetes Event about each Job whose start or end is announced.
	CoreEvents bool
	// PodTraceparent passes the trace to Pods, unless the Job's annotation decides.
	PodTraceparent bool
	// Tracing exports announced events as spans; the zero value exports none.
	Tracing Tracing
}

// ReconcilerDefaults returns the defaults of a reconciler.
func ReconcilerDefaults() ReconcilerConfig {
	return ReconcilerConfig{Options: defaults(reconcilerMetrics, reconcilerHealth), Keys: 64, Requests: 64, Limits: job.DefaultLimits()}
}

// AddFlags defines the reconciler's flags, with what the configuration holds as defaults.
func (c *ReconcilerConfig) AddFlags(f *pflag.FlagSet) {
	c.add(f)
	c.addOwn(f)
}

// addOwn defines the flags that only a reconciler has.
func (c *ReconcilerConfig) addOwn(f *pflag.FlagSet) {
	f.IntVar(&c.Keys, "concurrent-turns", c.Keys, "number of turns that run at once")
	f.IntVar(&c.Requests, "concurrent-requests", c.Requests, "largest number of concurrent requests to the API server; there is no other rate limit")
	f.DurationVar(&c.Limits.PodBackoff.Base, "pod-failure-backoff-base", c.Limits.PodBackoff.Base, "`time` to wait after a Job's first failed Pod before the next is created; it doubles with each failure")
	f.DurationVar(&c.Limits.PodBackoff.Max, "pod-failure-backoff-max", c.Limits.PodBackoff.Max, "largest `time` of this wait")
	f.IntVar(&c.Limits.MaxUncounted, "max-uncounted-pods", c.Limits.MaxUncounted, "largest number of ended Pods that one write of a Job's status adds: 1 to "+strconv.Itoa(mostUncounted))
	f.IntVar(&c.Limits.MaxPodChanges, "max-pod-changes-per-plan", c.Limits.MaxPodChanges, "largest number of a Job's Pods that are created or deleted before the next decision")
	f.BoolVar(&c.Limits.DeleteExpired, "ttl-after-finished", c.Limits.DeleteExpired, "delete finished Jobs after their ttlSecondsAfterFinished: for clusters where kube-controller-manager does not, and harmless where it does")
	f.DurationVar(&c.Limits.Reannounce, "reannounce-window", c.Limits.Reannounce, "`time` after a Job's start or end within which it is announced again after a loss of state; at most "+events.ReannounceWindow.String())
	f.BoolVar(&c.Limits.AnnouncePods, "event-pods", c.Limits.AnnouncePods, "announce the end of each Pod, too; the same for all reconcilers of a --cluster-name")
	f.BoolVar(&c.CoreEvents, "core-events", c.CoreEvents, "write a Kubernetes Event, JobStart or JobFinish, about each Job whose start or end is announced")
	f.BoolVar(&c.PodTraceparent, "pod-traceparent", c.PodTraceparent, "pass the trace to every Pod in the environment variable TRACEPARENT, except for Jobs whose annotation "+v1alpha1.PodTraceparentAnnotation+" is false")
	f.BoolVar(&c.KeepManagedFields, "keep-managed-fields", c.KeepManagedFields, "leave the managedFields of Jobs and Pods alone, instead of resetting those without server-side apply, which saves the API server up to four fifths of a write")
}

// mostUncounted is Kubernetes' own limit: 500 UIDs are 20 kB of every status that is written.
const mostUncounted = 500

// check refuses what cannot work, before anything is connected.
func (c *ReconcilerConfig) check() error {
	l := c.Limits
	switch {
	case c.Keys < 0 || c.Requests < 0:
		return Usage{fmt.Errorf("--concurrent-turns %d and --concurrent-requests %d: use 1 or more", c.Keys, c.Requests)}
	case l.PodBackoff.Base <= 0:
		return Usage{fmt.Errorf("--pod-failure-backoff-base %v: use more than nothing, such as 10s", l.PodBackoff.Base)}
	case l.PodBackoff.Max < l.PodBackoff.Base:
		return Usage{fmt.Errorf("--pod-failure-backoff-max %v is less than --pod-failure-backoff-base %v: use as much or more", l.PodBackoff.Max, l.PodBackoff.Base)}
	case l.MaxUncounted < 1 || l.MaxUncounted > mostUncounted:
		return Usage{fmt.Errorf("--max-uncounted-pods %d: use 1 to %d", l.MaxUncounted, mostUncounted)}
	case l.Reannounce < 0 || l.Reannounce > events.ReannounceWindow:
		return Usage{fmt.Errorf("--reannounce-window %v: use 0 to %v, for which the bus knows an event again", l.Reannounce, events.ReannounceWindow)}
	case l.MaxPodChanges < 1:
		return Usage{fmt.Errorf("--max-pod-changes-per-plan %d: use 1 or more", l.MaxPodChanges)}
	}
	return nil
}

// RunReconciler turns facts into effects on the cluster until ctx ends, and then finishes the running turns. Its error is a Fatal
// or a Usage and comes from the start: later on, it waits for an unreachable API server or bus.
func RunReconciler(ctx context.Context, c ReconcilerConfig) error {
	m := newMetrics()
	c.Bus.Role = bus.Reconciler
	spans, err := c.prepare(m)
	if err != nil {
		return err
	}
	defer spans.Close()
	return serve(ctx, "jobstream-reconciler", c.Options, m, func(ctx context.Context, s *service) error { return s.reconcileAll(ctx, c, spans) }, probeCluster)
}

// prepare checks and completes the configuration, and creates metrics and the exporter of spans.
func (c *ReconcilerConfig) prepare(m *metrics) (Spans, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if age := c.Bus.MaxEventsAge; age > 0 { // the bus does not recognize repetitions of deleted events
		c.Limits.Reannounce = min(c.Limits.Reannounce, age)
	}
	m.forReconciler()
	m.jobs.results.limits = c.Limits
	c.Bus.SetAside, c.Bus.Unread = m.setAside, m.unread
	spans, err := c.Tracing.start(*c, m)
	if err != nil {
		return nil, Usage{err}
	}
	return spans, nil
}

// reconcileAll runs the turns of every function until ctx ends.
func (s *service) reconcileAll(ctx context.Context, c ReconcilerConfig, spans Spans) error {
	s.probes.await(probePartitions)
	recorder := act.NewRecorder(s.client, "jobstream")
	defer recorder.Close()
	actor, err := act.New(act.Config{Client: s.client, ScheduledJobs: s.schedules, Namespaces: c.Namespaces, Zones: zone.Load, Claim: c.claim(),
		Log: s.log, Recorder: recorder, Now: c.now, Meter: meter{s.metrics.jobs, s.metrics.schedules}, Concurrency: c.Requests, KeepManagedFields: c.KeepManagedFields,
		TracePods: c.PodTraceparent})
	if err != nil {
		return Usage{err}
	}
	s.probes.Set(probeCluster, reachable(s))
	announcer := s.metrics.announcing(traced{s.bus, spans})
	if c.CoreEvents {
		announcer = recorder.Announcing(announcer)
	}
	announcer = actor.Announcing(announcer)
	var configs []engine.Config
	for _, f := range catalog.All(c.Limits, zone.Load) {
		store, err := s.bus.Store(f.Name) //nolint:contextcheck // it has a time limit of its own
		if err != nil {
			return &Fatal{Cannot: "open the memory of function " + f.Name, Err: err, Remedy: "look at the NATS server's log: has it room for one more stream?"}
		}
		s.metrics.expect(f.Name)
		configs = append(configs, engine.Config{Function: f, Store: store, Actor: s.metrics.counted(actor), Timers: c.timers(s.bus.Timers()),
			Announcer: announcer, Log: s.log, Keys: c.Keys, Now: c.now, Turned: s.metrics.turned, Dropped: s.metrics.drops})
	}
	return s.servePartitions(ctx, configs, c.Namespaces)
}

// servePartitions runs the turns of this process's partitions until ctx ends.
func (s *service) servePartitions(ctx context.Context, configs []engine.Config, namespaces []string) error {
	fitness := newFitness(reachable(s))
	m := NewMember(MemberConfig{Bus: s.bus, Functions: configs, Namespaces: namespaces, Fit: fitness.fit, Changed: s.metrics.serves, Log: s.log})
	s.probes.Set(probePartitions, func(context.Context) error { return m.Ready() })
	g, running := errgroup.WithContext(ctx)
	g.Go(func() error { return m.Run(running) }) //nolint:contextcheck // turns in hand outlive it
	g.Go(func() error { fitness.watch(running); return nil })
	if err := g.Wait(); err != nil {
		return &Fatal{Cannot: "listen to the bus", Err: err}
	}
	return nil
}

// reachable reports whether the API server responds, by the cheapest request.
func reachable(s *service) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := s.client.Discovery().RESTClient().Get().AbsPath("/version").MaxRetries(0).Do(ctx).Raw()
		return err
	}
}
