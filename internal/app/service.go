package app

import (
	"context"
	"errors"
	"log/slog"

	"k8s.io/client-go/kubernetes"

	"github.com/jobstream/jobstream/bus"
	"github.com/jobstream/jobstream/internal/cluster"
)

// The names of the checks behind /readyz.
const (
	probeBus     = "bus"
	probeCluster = "cluster"
)

// service is what a trigger and a reconciler have in common.
type service struct {
	log     *slog.Logger
	probes  *Probes
	metrics *metrics
	client  kubernetes.Interface
	bus     *bus.Bus

	servers []*listener
}

// errStopped says that a program was asked to stop while it started, which is no failure.
var errStopped = errors.New("stopped")

// start makes a service: servers first, so that whoever asks hears that we are not ready yet, then the API server, then
// the bus. Its errors are Fatal, Usage or errStopped.
func start(ctx context.Context, name string, o Options, m *metrics) (*service, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	s := &service{log: o.Log, probes: o.Probes, metrics: m}
	if s.log == nil {
		s.log = slog.Default()
	}
	if s.probes == nil {
		s.probes = &Probes{}
	}
	s.probes.await(probeCluster)
	s.probes.await(probeBus)
	if err := s.begin(ctx, name, o); err != nil {
		s.close(ctx)
		if ctx.Err() != nil {
			err = errStopped // whatever failed then, failed because of that
		}
		return nil, err
	}
	return s, nil
}

func (s *service) begin(ctx context.Context, name string, o Options) error {
	s.log.Info("starting", "program", name, "version", Version(), "cluster", o.Bus.Cluster)
	if err := s.serve(ctx, o); err != nil {
		return err
	}
	if err := s.reachCluster(ctx, name, o); err != nil {
		return err
	}
	return s.reachBus(ctx, name, o)
}

// serve opens the ports.
func (s *service) serve(ctx context.Context, o Options) error {
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
	return nil
}

// reachCluster makes the client and asks the API server who it is.
func (s *service) reachCluster(ctx context.Context, name string, o Options) error {
	client, config, err := cluster.NewClient(cluster.ClientConfig{Kubeconfig: o.Kubeconfig, Context: o.Context, UserAgent: name + "/" + Version()})
	if err != nil {
		return &Fatal{Cannot: "start", Err: err,
			Remedy: "name a kubeconfig with --kubeconfig (" + EnvName("kubeconfig") + ", KUBECONFIG), or run in a Pod that has a service account"}
	}
	if err := cluster.Check(ctx, client, s.log); err != nil {
		return &Fatal{Cannot: "start", Err: err,
			Remedy: "try \"kubectl version\" with the same kubeconfig; --kubeconfig (" + EnvName("kubeconfig") + ") and --context choose another"}
	}
	s.log.Info("API server reached", "address", config.Host)
	s.client = client
	return nil
}

// reachBus connects to the bus and makes what is missing there.
func (s *service) reachBus(ctx context.Context, name string, o Options) error {
	c := o.Bus
	c.Name, c.Log = name, s.log
	b, err := bus.Connect(ctx, c)
	if err != nil {
		return &Fatal{Cannot: "start", Err: err,
			Remedy: "--nats-url (" + EnvName("nats-url") + ") names the NATS server, --nats-credentials and --nats-ca how to be let in"}
	}
	s.bus = b
	s.metrics.bus(b.Ready)
	s.probes.Set(probeBus, func(context.Context) error { return b.Ready() })
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
