package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/jobstream/jobstream/internal/dev/controlplane"
)

// readyTimeout allows for a start on two cores that also compile; it usually takes three seconds.
const readyTimeout = 10 * time.Minute

// Config describes a System.
type Config struct {
	Programs Programs
	// Dir is where its files go; earlier contents are removed.
	Dir string
	// GCPercent is that of the control plane.
	GCPercent int
	// Triggers and Reconcilers are how many of each run; 0 means 1.
	Triggers, Reconcilers int
	// NoBuiltInJobs switches the built-in Job controller off. It removes the finalizer from Pods whose Job is gone, whichever
	// controller managed the Job: without it that is left to the reconciler.
	NoBuiltInJobs bool
	// NoBuiltInTTL switches off the controller that deletes finished Jobs after their time to live.
	NoBuiltInTTL bool
	// Controllers, if there are any, are the only ones of kube-controller-manager that run. The two fields above then have no effect.
	Controllers []string
	// ControllerManagerFlags are appended to the flags of kube-controller-manager.
	ControllerManagerFlags []string
	// Unaudited leaves out the audit log, which benchmarks would pay for.
	Unaudited bool
	// HollowPods, unless it is 0, makes the node in the test's process a hollow one, on which so many Pods run at once.
	HollowPods int
	// Proxied puts a Proxy between the programs and the API server.
	Proxied bool
	// Servers are how many NATS servers run, 0 for one. Three make a cluster: see servers.go.
	Servers int
	// Disk, unless it is "", is where the NATS server stores: a file system of its own, smaller than the server's limits.
	Disk string
	// Nodes are how many nodes run as processes of their own, which a test may kill: see nodes.go. With 0 there is one in the
	// test's process.
	Nodes int
	// Linked puts a Link between any two parts that communicate, except those of the control plane.
	Linked bool
	// Subscribers are the names of subscribers with accounts of their own. If there are any, the NATS server runs with
	// deploy/nats/accounts.conf, and no client has more permissions than that grants. See accounts.go.
	Subscribers []string
	// Bare is a cluster with a node and nothing of jobstream: no ScheduledJobs, NATS or programs. See StartPrograms.
	Bare bool
	// Deployed runs the programs as deploy/ does: see deployed.go.
	Deployed bool
	// Flags are for both programs, TriggerFlags for the trigger, ReconcilerFlags for the reconciler, NATSFlags for a NATS server that is
	// alone and has no accounts.
	Flags, TriggerFlags, ReconcilerFlags, NATSFlags []string
}

// System is a running cluster with jobstream.
type System struct {
	Client kubernetes.Interface
	// REST is an administrator's configuration.
	REST         *rest.Config
	ControlPlane *controlplane.ControlPlane
	// NATS is the server, or the first of Servers.
	NATS    *NATS
	Servers []*NATS
	// Proxy is nil unless Config.Proxied is set.
	Proxy *Proxy
	// Triggers and Reconcilers are the programs under test.
	Triggers, Reconcilers []*Process

	mu         sync.Mutex // guards what follows
	links      []*Link
	nodes      []*Process // those that run as processes of their own
	stops      []func() error
	config     Config
	kubeconfig string // of the programs
	once       sync.Once
	err        error
	watched    sync.Map // the tests that Watch has registered
}

// StartSystem starts all parts and returns when Jobs can be applied. If one does not start, the others are stopped.
func StartSystem(ctx context.Context, c Config) (*System, error) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	c.Triggers, c.Reconcilers = max(1, c.Triggers), max(1, c.Reconcilers)
	s := &System{config: c}
	if err := errors.Join(os.RemoveAll(c.Dir), os.MkdirAll(c.Dir, 0o700)); err != nil {
		return nil, err
	}
	steps := []func(context.Context) error{s.startControlPlane, s.startNode}
	if !c.Bare {
		steps = append(steps, s.StartPrograms)
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, s.Stop())
		}
	}
	return s, nil
}

// StartPrograms starts the bus and the programs under test, and returns when they are ready: for a System that is Bare until
// then.
func (s *System) StartPrograms(ctx context.Context) error {
	for _, step := range []func(context.Context) error{s.startNATS, s.startAccounts, s.startPrograms} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Stop stops everything, the last part first. It may be called more than once.
func (s *System) Stop() error {
	s.once.Do(func() {
		for i := len(s.stops) - 1; i >= 0; i-- {
			s.err = errors.Join(s.err, s.stops[i]())
		}
	})
	return s.err
}

// Broken returns an error for a part that has ended by itself.
func (s *System) Broken() error {
	select {
	case err := <-s.ControlPlane.Died():
		return fmt.Errorf("the control plane broke: %w", err)
	default:
	}
	all := slices.Concat(s.Triggers, s.Reconcilers)
	if s.NATS != nil {
		all = append(all, s.NATS.Process)
	}
	for _, p := range all {
		if !p.Running() {
			return fmt.Errorf("%s ended:\n%s", p.Name, Tail(p.Printed(), 10))
		}
	}
	return nil
}

func (s *System) onStop(f func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stops = append(s.stops, f)
}

func (s *System) path(name string) string { return filepath.Join(s.config.Dir, name) }

func (s *System) startNATS(ctx context.Context) (err error) {
	if s.config.Servers > 1 {
		return s.startServers(ctx)
	}
	switch {
	case len(s.config.Subscribers) > 0 || s.config.Deployed:
		s.NATS, err = s.startGuarded(ctx)
	case s.config.Disk != "":
		s.NATS, err = s.startOnDisk(ctx)
	default:
		s.NATS, err = StartNATS(ctx, s.config.Programs.NATS, s.config.Dir, s.config.NATSFlags...)
	}
	if err == nil {
		s.onStop(s.NATS.Kill)
		s.Servers = []*NATS{s.NATS}
	}
	return err
}

func (s *System) startPrograms(ctx context.Context) error {
	for i := range s.config.Triggers {
		p, err := s.reached("trigger-"+strconv.Itoa(i), s.config.Programs.Trigger, slices.Concat(s.config.Flags, s.config.TriggerFlags)...)
		if err != nil {
			return err
		}
		s.Triggers = append(s.Triggers, p)
	}
	for i := range s.config.Reconcilers {
		flags := slices.Concat(s.config.Flags, s.config.ReconcilerFlags)
		p, err := s.reached("reconciler-"+strconv.Itoa(i), s.config.Programs.Reconciler, flags...)
		if err != nil {
			return err
		}
		s.Reconcilers = append(s.Reconcilers, p)
	}
	all := append(append([]*Process{}, s.Triggers...), s.Reconcilers...)
	for _, p := range all {
		if err := p.Start(); err != nil {
			return err
		}
		s.onStop(p.Stop)
	}
	for _, p := range all {
		if err := Ready(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// Program returns one of jobstream's programs, connected to this System, not started yet. Its log has every turn.
func (s *System) Program(name, path string, args ...string) *Process {
	return s.program(name, path, s.kubeconfig, s.NATSURL(), args...)
}

func (s *System) program(name, path, kubeconfig, natsURL string, args ...string) *Process {
	return s.process(name, path, append([]string{"--kubeconfig=" + kubeconfig, "--nats-url=" + natsURL, "--cluster-name=" + ClusterName}, args...)...)
}

// process returns a program with the flags that lead to the others.
func (s *System) process(name, path string, args ...string) *Process {
	return &Process{Name: name, Path: path, LogFile: s.path(name + ".log"), Args: append([]string{
		"--health-bind-address=127.0.0.1:0", "--metrics-bind-address=127.0.0.1:0", "--log-level=debug",
	}, args...)}
}

// ClusterName is the name of the cluster on the bus.
const ClusterName = "e2e"

// Attend starts a further program, which ends with the System.
func (s *System) Attend(p *Process) error {
	if err := p.Start(); err != nil {
		return err
	}
	s.onStop(p.Stop)
	return nil
}

// Watch shows, if the test fails, what the parts have printed since now.
func (s *System) Watch(t testing.TB) {
	t.Helper()
	if _, known := s.watched.LoadOrStore(t, true); known {
		return
	}
	files, err := filepath.Glob(s.path("*.log"))
	if err != nil {
		t.Fatal(err)
	}
	from := map[string]int64{}
	for _, f := range files {
		from[f] = size(f)
	}
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		files, _ := filepath.Glob(s.path("*.log"))
		for _, f := range files {
			if text := excerpt(since(f, from[f])); text != "" {
				t.Logf("==== %s, from %s:\n%s", base(f), f, text)
			}
		}
	})
}
