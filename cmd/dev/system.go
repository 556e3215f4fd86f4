package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/jobstream/jobstream/bus/embedded"
	"github.com/jobstream/jobstream/internal/app"
	"github.com/jobstream/jobstream/internal/cluster"
	"github.com/jobstream/jobstream/internal/dev/controlplane"
	"github.com/jobstream/jobstream/internal/dev/processnode"
	"github.com/jobstream/jobstream/internal/folder"
)

// plan describes the parts of a system.
type plan struct {
	// Dir keeps all data for the next start; "" uses a temporary folder that is deleted at the end.
	Dir string
	// Node runs Pods as processes of this machine.
	Node bool
	// Cluster is its name on the bus.
	Cluster string
	// APIPort and NATSPort are the ports to listen on; if one is taken, another is used; 0 means any.
	APIPort, NATSPort int
	// Trigger and Reconciler are the addresses of their metrics and health.
	Trigger, Reconciler addresses
	// Killable, if not nil, runs the reconciler as a process of its own, which can be killed.
	Killable *killable
	Log      *slog.Logger
	// Say prints progress for the user.
	Say func(format string, args ...any)
}

type addresses struct{ metrics, health string }

// system is the running system. Its parts are listed in the order in which they start; they stop in reverse.
type system struct {
	plan   plan
	dir    string
	client kubernetes.Interface

	kubeconfig string
	rest       *rest.Config
	nats       *embedded.Server

	stops  []func() error
	failed chan error
}

// startSystem starts all parts and returns when Jobs can be applied. If one fails to start, it stops the others.
func startSystem(ctx context.Context, p plan) (*system, error) {
	s := &system{plan: p, failed: make(chan error, 1)}
	for _, step := range []func(context.Context) error{s.makeFolder, s.startNATS, s.startCluster, s.startNode, s.startPrograms} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, s.stop())
		}
	}
	return s, nil
}

// stop stops all parts. It may be called more than once.
func (s *system) stop() error {
	var errs []error
	for i := len(s.stops) - 1; i >= 0; i-- {
		errs = append(errs, s.stops[i]())
	}
	s.stops = nil
	return errors.Join(errs...)
}

// onStop registers the stopping of a part.
func (s *system) onStop(f func() error) { s.stops = append(s.stops, f) }

// fail reports the first part that ended by itself.
func (s *system) fail(part string, err error) {
	select {
	case s.failed <- fmt.Errorf("%s ended: %w", part, err):
	default:
	}
}

func (s *system) makeFolder(context.Context) error {
	f, err := folder.Open(s.plan.Dir, "jobstream-dev")
	if err != nil {
		return &app.Fatal{Cannot: "make a folder", Err: err, Remedy: "--dir names another one"}
	}
	s.dir = f.Dir()
	s.onStop(f.Close)
	return nil
}

func (s *system) startNATS(ctx context.Context) (err error) {
	s.nats, err = embedded.Start(embedded.Config{StoreDir: filepath.Join(s.dir, "nats"), Port: freePort(ctx, s.plan.NATSPort), Log: app.Quiet(s.plan.Log)})
	if err != nil {
		return &app.Fatal{Cannot: "start NATS", Err: err}
	}
	s.onStop(func() error { s.nats.Shutdown(); return nil })
	return nil
}

// startCluster starts a control plane that knows ScheduledJobs.
func (s *system) startCluster(ctx context.Context) error {
	if err := s.startControlPlane(ctx); err != nil {
		return err
	}
	client, config, err := cluster.NewClient(cluster.ClientConfig{Kubeconfig: s.kubeconfig, UserAgent: "jobstream-dev"})
	if err != nil {
		return &app.Fatal{Cannot: "make a client for the API server", Err: err}
	}
	s.client, s.rest = client, config
	if err := cluster.InstallScheduledJobs(ctx, config); err != nil {
		return &app.Fatal{Cannot: "install the kind ScheduledJob", Err: err}
	}
	return nil
}

func (s *system) startControlPlane(ctx context.Context) error {
	if err := ensurePrograms(ctx, s.plan.Say); err != nil {
		return err
	}
	s.plan.Say("starting a control plane: etcd, kube-apiserver and kube-controller-manager")
	cp, err := controlplane.Start(ctx, controlplane.Config{
		Dir: filepath.Join(s.dir, "cluster"), Port: freePort(ctx, s.plan.APIPort), ControllerManager: true,
		UnsafeNoFsync: s.plan.Dir == "", // a temporary folder needs no durability
	})
	if err != nil {
		return &app.Fatal{Cannot: "start a control plane", Err: err}
	}
	ended := make(chan struct{})
	go func() {
		select {
		case err := <-cp.Died():
			s.fail("the control plane", err)
		case <-ended:
		}
	}()
	s.onStop(func() error { close(ended); return cp.Stop() })
	s.kubeconfig = cp.Kubeconfig()
	return nil
}

func (s *system) startNode(ctx context.Context) error {
	if !s.plan.Node {
		return nil
	}
	s.plan.Say("starting a node that runs Pods as processes of this machine")
	n, err := processnode.New(processnode.Config{Client: s.client, DataDir: s.dir, Log: s.plan.Log})
	if err != nil {
		return &app.Fatal{Cannot: "start a node", Err: err}
	}
	s.run(ctx, "the node", n.Run)
	return nil
}

// startPrograms starts a trigger and a reconciler as their own programs would, but in this process, and waits until both are
// ready. It leaves out a reconciler that is to be killed.
func (s *system) startPrograms(ctx context.Context) error {
	s.plan.Say("starting a trigger and a reconciler")
	trigger, reconciler := app.TriggerDefaults(), app.ReconcilerDefaults()
	s.configure(&trigger.Options, s.plan.Trigger)
	s.configure(&reconciler.Options, s.plan.Reconciler)
	s.run(ctx, "the trigger", func(ctx context.Context) error { return app.RunTrigger(ctx, trigger) })
	if s.plan.Killable != nil {
		if err := s.startKillable(ctx, reconciler.Probes); err != nil {
			return err
		}
	} else {
		s.run(ctx, "the reconciler", func(ctx context.Context) error { return app.RunReconciler(ctx, reconciler) })
	}
	return app.AwaitReady(ctx, s.failed, trigger.Probes, reconciler.Probes)
}

func (s *system) configure(o *app.Options, listen addresses) {
	o.Kubeconfig = s.kubeconfig
	o.Bus.URL, o.Bus.Cluster = s.nats.URL(), s.plan.Cluster
	o.MetricsAddress, o.HealthAddress = listen.metrics, listen.health
	o.Log, o.Probes = s.plan.Log, &app.Probes{}
}

// run runs a part until the system stops it. The end of ctx does not stop it, because parts stop one after the other.
func (s *system) run(ctx context.Context, part string, f func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var done sync.WaitGroup
	var ended error
	done.Go(func() {
		if ended = f(ctx); ctx.Err() == nil {
			s.fail(part, or(ended, errors.New("for no reason")))
			ended = nil // it has been reported
		}
	})
	s.onStop(func() error { cancel(); done.Wait(); return ended })
}

func or(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}
