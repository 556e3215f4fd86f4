package main

import (
	"context"
	"path/filepath"
	"time"

	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/dev/controlplane"
	"github.com/jobstream/jobstream/test/bench/bulk"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

const (
	builtIn   = "built-in"
	jobstream = "jobstream"
	// controller is the sum of a side's own programs.
	controller = "controller"
	apiServer  = "kube-apiserver"
	etcd       = "etcd"
	manager    = "kube-controller-manager"
)

// podsAtOnce is how many Pods the hollow node runs: more than any workload has at once.
const podsAtOnce = 20000

// side is one of the two that are compared.
type side struct {
	name      string
	managedBy *string // of its Jobs
	// schedules creates the workload's schedules, and returns when the controller has observed them, if it shows that.
	schedules func(ctx context.Context, c *bulk.Cluster, w workload, cron string) error
	// config is its system. ServiceAccounts are there as in a cluster, although no Pod mounts a token; no other controller of
	// kube-controller-manager competes with it.
	config func(limit) harness.Config
	// programs are its own, by name.
	programs func(system *harness.System, assets string, l limit) map[string]string
}

// sides are the two, in the order of the first round.
var sides = []side{
	{name: builtIn, schedules: cronJobs,
		config: func(l limit) harness.Config {
			if l.distance > 0 {
				return harness.Config{Bare: true, Controllers: []string{serviceAccounts}, Proxied: true} // see far
			}
			return harness.Config{Bare: true, Controllers: []string{"job-controller", "cronjob-controller", serviceAccounts}, ControllerManagerFlags: l.flags}
		},
		programs: func(s *harness.System, assets string, l limit) map[string]string {
			if l.distance > 0 {
				return map[string]string{manager: apart(s)}
			}
			return map[string]string{manager: filepath.Join(assets, manager)}
		}},
	{name: jobstream, managedBy: ptr.To(v1alpha1.DefaultManagedBy), schedules: scheduledJobs,
		config: func(l limit) harness.Config {
			return harness.Config{Controllers: []string{serviceAccounts}, Flags: []string{"--log-level=info"}, Proxied: l.distance > 0}
		},
		programs: func(s *harness.System, _ string, _ limit) map[string]string {
			return map[string]string{"trigger": s.Triggers[0].Path, "reconciler": s.Reconcilers[0].Path, "nats-server": s.NATS.Path}
		}},
}

const serviceAccounts = "serviceaccount-controller"

// limit is how many requests a second the controllers may send, and how far the API server is from them.
type limit struct {
	name, what string
	flags      []string // of kube-controller-manager
	limits     bool     // work takes much longer under it
	unknownTo  string   // a side that has no such limit
	distance   time.Duration
}

// unlimited are the flags of kube-controller-manager that lift its limits.
var unlimited = []string{"--kube-api-qps=5000", "--kube-api-burst=5000", "--concurrent-job-syncs=20", "--concurrent-cron-job-syncs=20"}

var limits = []limit{
	{name: "unlimited", what: "kube-controller-manager with --kube-api-qps=5000 --kube-api-burst=5000 --concurrent-job-syncs=20 --concurrent-cron-job-syncs=20; jobstream with its defaults",
		flags: unlimited},
	{name: "default", what: "both with their defaults: kube-controller-manager sends 20 requests a second, jobstream has no limit by rate", limits: true},
	{name: "100", what: "kube-controller-manager with --kube-api-qps=100 --kube-api-burst=100; jobstream has no flag for that, hence n/a", limits: true,
		flags: []string{"--kube-api-qps=100", "--kube-api-burst=100"}, unknownTo: jobstream},
	{name: "5ms", what: "as unlimited, but every request of a controller takes 5 ms longer", flags: unlimited, limits: true, distance: 5 * time.Millisecond},
	{name: "20ms", what: "as unlimited, but every request of a controller takes 20 ms longer", flags: unlimited, limits: true, distance: 20 * time.Millisecond},
}

// String returns the name.
func (l limit) String() string { return l.name }

// paths are the programs whose costs are measured, by name: the side's own, and those that both use.
func (s side) paths(system *harness.System, l limit) (own, shared map[string]string, err error) {
	assets, err := controlplane.Assets()
	if err != nil {
		return nil, nil, err
	}
	return s.programs(system, assets, l), map[string]string{apiServer: filepath.Join(assets, apiServer), etcd: filepath.Join(assets, etcd)}, nil
}
