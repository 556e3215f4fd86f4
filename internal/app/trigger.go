package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/bus"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/alarm"
	"github.com/jobstream/jobstream/internal/census"
	"github.com/jobstream/jobstream/internal/cluster/watch"
	"github.com/jobstream/jobstream/internal/zone"
)

// flushTimeout is for the last facts of a stopping trigger. The next trigger's list replaces what does not arrive.
const flushTimeout = 5 * time.Second

// TriggerConfig configures a trigger.
type TriggerConfig struct {
	Options
	TriggerSettings
}

// TriggerSettings are those that only a trigger has.
type TriggerSettings struct {
	// RelistInterval is the time between two complete lists; 0 means only necessary ones.
	RelistInterval time.Duration
	// ScheduledJobMetrics is how many ScheduledJobs have metrics under kube-state-metrics' names; 0 means none.
	ScheduledJobMetrics int
}

// TriggerDefaults returns the defaults of a trigger.
func TriggerDefaults() TriggerConfig {
	return TriggerConfig{
		Options:         defaults(triggerMetrics, triggerHealth),
		TriggerSettings: TriggerSettings{RelistInterval: watch.DefaultRelistInterval},
	}
}

// AddFlags defines the trigger's flags, with what the configuration holds as defaults.
func (c *TriggerConfig) AddFlags(f *pflag.FlagSet) {
	c.add(f)
	c.addTrigger(f)
}

// addTrigger defines the flags that only a trigger has.
func (c *TriggerSettings) addTrigger(f *pflag.FlagSet) {
	f.DurationVar(&c.RelistInterval, "relist-interval", c.RelistInterval, "`time` between two complete lists as a safety net; 0 for never")
	f.IntVar(&c.ScheduledJobMetrics, "scheduledjob-metrics", c.ScheduledJobMetrics, "largest `number` of ScheduledJobs that "+twinsPath+" shows under the names that kube-state-metrics gives to metrics of CronJobs; 0 serves no such page")
}

// RunTrigger publishes changes of the cluster, and due notices, as facts on the bus until ctx ends. Its error is a Fatal or a
// Usage and comes from the start: later on, it waits for an unreachable API server or bus.
func RunTrigger(ctx context.Context, c TriggerConfig) error {
	if err := c.check(); err != nil {
		return err
	}
	c.Bus.Role = bus.Trigger
	m := newMetrics()
	m.forTrigger()
	c.showSchedules(m)
	return serve(ctx, "jobstream-trigger", c.Options, m, func(ctx context.Context, s *service) error { return s.watch(ctx, c) }, probeLists)
}

// check refuses what cannot work, before anything is connected.
func (c *TriggerConfig) check() error {
	if c.RelistInterval < 0 {
		return Usage{fmt.Errorf("--relist-interval %v: use 0 for never, or a time such as 1h", c.RelistInterval)}
	}
	if n := c.ScheduledJobMetrics; n < 0 || n > mostScheduledJobs {
		return Usage{fmt.Errorf("--scheduledjob-metrics %d: use 0 for none, or up to %d", n, mostScheduledJobs)}
	}
	return nil
}

// mostScheduledJobs bounds the size of one page of metrics: so many take 70 MB while it is made (BenchmarkTwins).
const mostScheduledJobs = 10_000

// showSchedules makes the page of metrics about ScheduledJobs, if there is to be one.
func (c *TriggerConfig) showSchedules(m *metrics) {
	if c.ScheduledJobMetrics > 0 {
		m.twins = prometheus.NewRegistry()
	}
}

// census returns what watches for metrics, or nil if no client can read them.
func (c *TriggerConfig) census(m *metrics) *census.Census {
	if !listens(c.MetricsAddress) {
		return nil
	}
	return census.New(census.Config{Schedules: c.ScheduledJobMetrics, Started: m.podStarted, Now: c.now})
}

// watch publishes changes in the cluster, and due notices of ScheduledJobs, until ctx ends.
func (s *service) watch(ctx context.Context, c TriggerConfig) error {
	facts := sink{s.bus, s.metrics}
	namespaces := c.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	var watchers watchers
	var all censuses
	g, running := errgroup.WithContext(ctx)
	for _, namespace := range namespaces {
		log := s.log
		if namespace != metav1.NamespaceAll {
			log = log.With("namespace", namespace)
		}
		clock, err := alarm.New(alarm.Config{Cluster: c.Bus.Cluster, Sink: facts, Zones: zone.Load, Now: c.now, Log: log})
		if err != nil {
			return Usage{err}
		}
		config := watch.Config{
			Client: s.client, Namespace: namespace, ScheduledJobs: s.schedules, Alarm: clock, Sink: facts, Cluster: c.Bus.Cluster,
			Claim: c.claim(), Interval: c.RelistInterval, Now: c.now, Log: log,
		}
		if m := c.census(s.metrics); m != nil {
			config.Meter, all = m, append(all, m)
		}
		w, err := watch.New(config)
		if err != nil {
			return Usage{err}
		}
		watchers = append(watchers, w)
		g.Go(func() error { return w.Run(running) })
		g.Go(func() error { clock.Run(running); return nil })
	}
	s.metrics.watches(watchers.failing)
	s.metrics.takeCensus(all)
	s.probes.Set(probeLists, func(context.Context) error { return watchers.ready() })
	g.Go(func() error { return relistAfterLosses(running, s.bus.Losses(), watchers.relist, s.metrics) })
	err := g.Wait()
	s.log.Info("stopping")
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	if err := s.bus.Flush(last); err != nil {
		s.log.Warn("the last facts may be lost; the next trigger lists everything anyway", "error", err)
	}
	return err
}

// watchers has one watcher for each namespace, or one for all.
type watchers []*watch.Watcher

func (all watchers) relist() {
	for _, w := range all {
		w.Relist()
	}
}

func (all watchers) failing() (n int) {
	for _, w := range all {
		n += w.Failing()
	}
	return n
}

// ready returns why the watchers are not ready. It does not wait for a watcher that may not list its namespace, unless that
// applies to all.
func (all watchers) ready() error {
	refused := 0
	for _, w := range all {
		switch {
		case w.Ready():
		case w.Refused():
			refused++
		default:
			return errors.New("the first complete list has not been published yet")
		}
	}
	if refused == len(all) {
		return errors.New("the API server does not allow the trigger to list: see its log")
	}
	return nil
}

// relistAfterLosses lists the cluster again whenever the bus may have lost facts.
func relistAfterLosses(ctx context.Context, losses <-chan struct{}, relist func(), m *metrics) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-losses:
			m.relists.Inc()
			relist()
		}
	}
}

// sink is a watch.Sink that counts.
type sink struct {
	watch.Sink
	metrics *metrics
}

// Publish implements watch.Sink.
func (s sink) Publish(ctx context.Context, f events.Fact) error {
	err := s.Sink.Publish(ctx, f)
	if err == nil {
		s.metrics.published.WithLabelValues(f.Key.Function, string(f.Event.Type())).Inc()
	}
	return err
}
