package app

import (
	"context"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/jobstream/jobstream/bus"
)

// AllInOneConfig configures a trigger and a reconciler in one process.
type AllInOneConfig struct {
	// ReconcilerConfig is the reconciler's; its Options apply to both.
	ReconcilerConfig
	TriggerSettings
}

// AllInOneDefaults returns the defaults of both. Bus has no server yet: set Bus.Server or Bus.URL.
func AllInOneDefaults() AllInOneConfig {
	c := AllInOneConfig{ReconcilerConfig: ReconcilerDefaults(), TriggerSettings: TriggerDefaults().TriggerSettings}
	c.Bus.URL = ""
	c.MetricsAddress, c.HealthAddress = triggerMetrics, triggerHealth
	return c
}

// AddFlags defines all flags of both except those for a NATS server, which the caller provides.
func (c *AllInOneConfig) AddFlags(f *pflag.FlagSet) {
	c.AddConnections(f)
	c.addServers(f)
	c.addTrigger(f)
	c.addOwn(f)
}

// AddConnections defines those of AddFlags for the API server, the Jobs to manage, and the streams.
func (o *Options) AddConnections(f *pflag.FlagSet) {
	o.addCluster(f)
	o.addStreams(f)
	o.addClock(f)
}

// RunAllInOne does what RunTrigger and RunReconciler do, with one connection to the bus, one client of the API server, and one
// address for the metrics and one for the health of both.
func RunAllInOne(ctx context.Context, c AllInOneConfig) error {
	c.Bus.Role = bus.Everything
	m := newMetrics()
	m.forTrigger()
	spans, err := c.prepare(m)
	if err != nil {
		return err
	}
	defer spans.Close()
	t := TriggerConfig{Options: c.Options, TriggerSettings: c.TriggerSettings}
	if err := t.check(); err != nil {
		return err
	}
	t.showSchedules(m)
	return serve(ctx, "jobstream", c.Options, m, func(ctx context.Context, s *service) error {
		g, running := errgroup.WithContext(ctx)
		g.Go(func() error { return s.watch(running, t) })
		g.Go(func() error { return s.reconcileAll(running, c.ReconcilerConfig, spans) })
		return g.Wait()
	}, probeLists, probeCluster)
}
