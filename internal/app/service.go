package app

import (
	"cmp"
	"context"
	"log/slog"

	"k8s.io/client-go/kubernetes"

	"github.com/jobstream/jobstream/bus"
	"github.com/jobstream/jobstream/internal/cluster"
	"github.com/jobstream/jobstream/internal/flags"
)

// The names of the checks behind /readyz.
const (
	probeBus        = "bus"
	probeCluster    = "cluster" // of a reconciler: the API server answers
	probeLists      = "lists"   // of a trigger: the cluster has been listed once
	probePartitions = "partitions"
)

// service holds what a trigger and a reconciler have in common.
type service struct {
	log     *slog.Logger
	probes  *Probes
	metrics *metrics
	client  kubernetes.Interface
	// schedules is a client for ScheduledJobs, a kind that the API server may not have.
	schedules *cluster.ScheduledJobs
	bus       *bus.Bus

	servers []*listener
}

// serve opens a service, runs its work, and closes it; /readyz waits for the bus and for the checks with those names, which the
// work sets. Its own errors are Fatal or Usage; a stop during the start is no error. The context of the work also ends when the
// bus has closed its connection permanently: this process cannot continue, and a new one can connect again.
func serve(ctx context.Context, name string, o Options, m *metrics, work func(context.Context, *service) error, awaited ...string) error {
	if err := o.complete(); err != nil {
		return err
	}
	m.tenants.allow(o.MetricsNamespaces)
	s := &service{log: o.Log, probes: o.Probes, metrics: m}
	if s.log == nil {
		s.log = slog.Default()
	}
	if s.probes == nil {
		s.probes = &Probes{}
	}
	for _, name := range append(awaited, probeBus) {
		s.probes.await(name)
	}
	defer s.close(ctx)
	err := s.begin(ctx, name, o)
	switch {
	case err == nil:
		return s.whileConnected(ctx, work)
	case ctx.Err() != nil:
		return nil //nolint:nilerr // later errors are consequences of the stop
	}
	return err
}

// whileConnected runs the work until it ends, ctx ends, or the bus has closed its connection permanently.
func (s *service) whileConnected(ctx context.Context, work func(context.Context, *service) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-ctx.Done():
		case <-s.bus.Ended():
			stop()
		}
	}()
	err := work(ctx, s)
	if cause := s.bus.Err(); cause != nil {
		return &Fatal{Cannot: "go on", Err: cause, Remedy: "start it again, as a kubelet does; if it comes back, the NATS server's log has the reason"}
	}
	return err
}

// begin opens the servers first, so that probes get "not ready", then the API server, then the bus.
func (s *service) begin(ctx context.Context, name string, o Options) error {
	s.log.Info("starting", "program", name, "version", Version(), "cluster", o.Bus.Cluster)
	if o.ClockOffset != 0 {
		s.log.Warn("the program's clock differs from the machine's: that is for tests only", "ahead by", o.ClockOffset)
	}
	if err := s.openPorts(ctx, o); err != nil {
		return err
	}
	if err := s.reachCluster(ctx, name, o); err != nil {
		return err
	}
	return s.reachBus(ctx, name, o)
}

// openPorts serves health, metrics and profiles.
func (s *service) openPorts(ctx context.Context, o Options) error {
	health, err := listen(ctx, o.HealthAddress, "health-bind-address", s.probes.handler(), s.log)
	if err != nil {
		return err
	}
	s.servers = append(s.servers, health)
	metrics, err := listen(ctx, o.MetricsAddress, "metrics-bind-address", s.metrics.handler(), s.log)
	if err != nil {
		return err
	}
	s.servers = append(s.servers, metrics)
	profiles, err := listen(ctx, o.PprofAddress, "pprof-bind-address", pprofHandler(), s.log)
	if err != nil {
		return err
	}
	s.servers = append(s.servers, profiles)
	return nil
}

// reachCluster creates the client and requests the API server's version.
func (s *service) reachCluster(ctx context.Context, name string, o Options) error {
	client, config, err := cluster.NewClient(cluster.ClientConfig{Kubeconfig: o.Kubeconfig, Context: o.Context, UserAgent: name + "/" + Version()})
	if err != nil {
		return &Fatal{Cannot: "start", Err: err,
			Remedy: "name a kubeconfig with --kubeconfig (" + flags.EnvName("kubeconfig") + ", KUBECONFIG), or run in a Pod that has a service account"}
	}
	if _, err := cluster.Check(ctx, client, s.log); err != nil {
		return &Fatal{Cannot: "start", Err: err,
			Remedy: "try \"kubectl version\" with the same kubeconfig; --kubeconfig (" + flags.EnvName("kubeconfig") + ") and --context choose another"}
	}
	s.log.Info("API server reached", "address", config.Host)
	s.client = client
	if s.schedules, err = cluster.NewScheduledJobs(config); err != nil {
		return &Fatal{Cannot: "start", Err: err}
	}
	return nil
}

// reachBus connects to the bus and creates missing streams.
func (s *service) reachBus(ctx context.Context, name string, o Options) error {
	c := o.Bus
	c.Name, c.Log = name, s.log
	b, err := bus.Connect(ctx, c)
	if err != nil {
		return &Fatal{Cannot: "start", Err: err, Remedy: cmp.Or(o.NATSRemedy,
			"--nats-url ("+flags.EnvName("nats-url")+") names the NATS server; --nats-user-file and --nats-password-file, or another of the flags for credentials, and --nats-ca set the credentials")}
	}
	s.bus = b
	s.metrics.bus(b.Ready)
	s.metrics.backlog(b.Backlog)
	s.metrics.uses(b.Uses)
	s.probes.Set(probeBus, func(context.Context) error { return b.Ready() })
	s.probes.SetAlive(b.Err)
	return nil
}

// close closes what is open, the bus first and the servers last.
func (s *service) close(ctx context.Context) {
	if s.bus != nil {
		s.bus.Close()
	}
	for _, l := range s.servers {
		l.close(ctx)
	}
}
