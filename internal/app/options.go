package app

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/bus"
	"github.com/jobstream/jobstream/bus/cloudevent"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/flags"
)

// The default addresses: on loopback, each with its own ports, so that a trigger and a reconciler run on one machine without
// flags.
const (
	triggerMetrics    = "127.0.0.1:8180"
	triggerHealth     = "127.0.0.1:8181"
	reconcilerMetrics = "127.0.0.1:8190"
	reconcilerHealth  = "127.0.0.1:8191"
)

// Off as the address of a server disables it.
const Off = "0"

// leastStateBytes holds a few of the largest possible states: with less, they would evict each other.
const leastStateBytes = 64 << 20

// Options are the settings of every long-running program. The zero value listens nowhere.
type Options struct {
	// Kubeconfig is the path of a file; "" means the service account of the Pod. Context is one of its contexts, "" its current one.
	Kubeconfig, Context string
	// Namespaces are those in which the program works; none means all.
	Namespaces []string
	// ManagedBy is the spec.managedBy of jobstream's Jobs.
	ManagedBy string
	// ClaimUnmanaged also claims Jobs without spec.managedBy and those of Kubernetes' own controller, which must then be off.
	ClaimUnmanaged bool
	// EventLabels are the keys of the labels of Jobs that public events carry.
	EventLabels []string
	// Bus configures the bus. Name, Log and SetAside are filled in.
	Bus bus.Config
	// NATSRemedy is the remedy if the bus is not available at the start; by default it names the flags about NATS.
	NATSRemedy string
	// MetricsAddress and HealthAddress are the addresses to listen on, "0" or "" for none.
	MetricsAddress, HealthAddress string
	// PprofAddress is where Go profiles are served, "0" or "" for nowhere. It requires no credentials: only loopback makes sense.
	PprofAddress string
	// MetricsNamespaces is how many namespaces have series of their own in metrics; 0 means none.
	MetricsNamespaces int
	// ClockOffset is how far the program's clock is ahead of the machine's, for tests.
	ClockOffset time.Duration
	// Log is the logger; nil means slog.Default().
	Log *slog.Logger
	// Probes, if not nil, are the health server's checks, for callers in this process that also need them.
	Probes *Probes
}

// add defines the flags for the options, with what the options hold as defaults.
func (o *Options) add(f *pflag.FlagSet) {
	o.addConnections(f)
	o.addServers(f)
}

// addServers defines the flags for the program's own servers.
func (o *Options) addServers(f *pflag.FlagSet) {
	f.StringVar(&o.MetricsAddress, "metrics-bind-address", o.MetricsAddress, "`address` that serves Prometheus metrics at /metrics; 0 for none")
	f.IntVar(&o.MetricsNamespaces, "metrics-namespaces", o.MetricsNamespaces, "largest `number` of namespaces that have series of their own in metrics; the others share the label \"other\"; 0 puts all there")
	f.StringVar(&o.HealthAddress, "health-bind-address", o.HealthAddress, "`address` that serves /healthz and /readyz; 0 for none")
	f.StringVar(&o.PprofAddress, "pprof-bind-address", o.PprofAddress, "`address` that serves Go profiles at /debug/pprof/ without credentials: only one on loopback makes sense; default none")
}

// addConnections defines the flags for the API server, the bus, and the Jobs to manage.
func (o *Options) addConnections(f *pflag.FlagSet) {
	o.addCluster(f)
	o.addNATS(f)
	o.addStreams(f)
	o.addClock(f)
}

// addCluster defines the flags for the API server and the Jobs to manage.
func (o *Options) addCluster(f *pflag.FlagSet) {
	f.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "`file` with the address and credentials of the API server; default $KUBECONFIG, or inside a cluster the service account of the Pod")
	f.StringVar(&o.Context, "context", o.Context, "`name` of the context of the kubeconfig to use; default its current one")
	f.StringSliceVar(&o.Namespaces, "namespaces", o.Namespaces, "`names` of the namespaces to work in, separated by commas or by repeating the flag; default all; the same for all programs of a --cluster-name")
	f.StringVar(&o.ManagedBy, "managed-by", o.ManagedBy, "`value` of spec.managedBy of the Jobs to run; the same for all programs of a --cluster-name")
	f.BoolVar(&o.ClaimUnmanaged, "claim-unmanaged", o.ClaimUnmanaged, "also run Jobs without spec.managedBy, or with "+batchv1.JobControllerName+": only where kube-controller-manager runs with --controllers=-job-controller,*; the same for all programs of a --cluster-name")
	f.StringSliceVar(&o.EventLabels, "event-labels", o.EventLabels, "`keys` of the labels of Jobs that JobStart and JobFinish carry, separated by commas; the same for all programs of a --cluster-name")
}

// addNATS defines the flags for the NATS server, the credentials, and the number of replicas.
func (o *Options) addNATS(f *pflag.FlagSet) {
	flags.AddNATS(f, &o.Bus)
	f.IntVar(&o.Bus.Replicas, "nats-replicas", o.Bus.Replicas, "replicas of every stream: 1, or 3 on a NATS cluster of three servers or more; the same for all programs of a cluster")
}

// addStreams defines the flags for the names and limits of the streams.
func (o *Options) addStreams(f *pflag.FlagSet) {
	f.Int64Var(&o.Bus.MaxFactsBytes, "nats-facts-bytes", o.Bus.MaxFactsBytes, "limit of the stream of facts on disk, in bytes, beyond which the oldest are deleted; the same for all programs of a cluster")
	f.Int64Var(&o.Bus.MaxStateBytes, "nats-state-bytes", o.Bus.MaxStateBytes, "limit of each function's states on disk, in bytes, beyond which the oldest are deleted, which costs inventories; the same for all programs of a cluster")
	f.DurationVar(&o.Bus.MaxEventsAge, "nats-events-age", o.Bus.MaxEventsAge, "`time` for which public events are kept; the same for all programs of a cluster")
	f.Int64Var(&o.Bus.MaxEventsBytes, "nats-events-bytes", o.Bus.MaxEventsBytes, "limit of public events on disk, in bytes, beyond which the oldest are deleted; the same for all programs of a cluster")
	f.StringVar((*string)(&o.Bus.EventMode), "event-mode", string(o.Bus.EventMode), "`mode` of the CloudEvents for subscribers: structured, all JSON, or binary, with attributes as headers; the same for all programs of a cluster")
	flags.AddClusterName(f, &o.Bus)
}

// defaults are the options that a program starts from.
func defaults(metrics, health string) Options {
	return Options{
		ManagedBy: v1alpha1.DefaultManagedBy,
		Bus: bus.Config{URL: flags.DefaultNATS, Cluster: "default", Replicas: 1, ConnectTimeout: 10 * time.Second,
			MaxFactsBytes: 1 << 30, MaxStateBytes: bus.DefaultStateBytes, MaxEventsAge: 7 * 24 * time.Hour, MaxEventsBytes: 1 << 30, EventMode: cloudevent.Structured},
		MetricsAddress:    metrics,
		MetricsNamespaces: defaultNamespaces,
		HealthAddress:     health,
	}
}

// complete fills in defaults that are not flags, and refuses invalid settings.
func (o *Options) complete() error {
	if o.Kubeconfig == "" && os.Getenv("KUBERNETES_SERVICE_HOST") == "" {
		o.Kubeconfig = os.Getenv("KUBECONFIG")
	}
	for flag, address := range map[string]string{"metrics-bind-address": o.MetricsAddress, "health-bind-address": o.HealthAddress, "pprof-bind-address": o.PprofAddress} {
		if listens(address) {
			if _, _, err := net.SplitHostPort(address); err != nil {
				return Usage{fmt.Errorf("--%s %s: %w: write host:port, such as 127.0.0.1:8080, or 0 for none", flag, address, err)}
			}
		}
	}
	switch {
	case o.Bus.URL == "" && o.Bus.Server == nil:
		return Usage{fmt.Errorf("--nats-url is empty: name the NATS server, such as %s", flags.DefaultNATS)}
	case o.Bus.Cluster == "":
		return Usage{errors.New("--cluster-name is empty: name the cluster, such as default")}
	case o.MetricsNamespaces < 0:
		return Usage{fmt.Errorf("--metrics-namespaces %d: use 0 for none, or a number such as %d", o.MetricsNamespaces, defaultNamespaces)}
	}
	if err := o.Bus.CheckCredentials(); err != nil {
		return Usage{err}
	}
	if mode := o.Bus.EventMode; mode != "" {
		if err := mode.Valid(); err != nil {
			return Usage{fmt.Errorf("--event-mode: %w", err)}
		}
	}
	if n := o.Bus.MaxStateBytes; n != 0 && n < leastStateBytes {
		return Usage{fmt.Errorf("--nats-state-bytes %d: use at least %d: the state of one Job may take 8 MB", n, leastStateBytes)}
	}
	for _, name := range o.Namespaces {
		if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 {
			return Usage{fmt.Errorf("--namespaces: %q is not the name of a namespace: %s", name, strings.Join(wrong, "; "))}
		}
	}
	slices.Sort(o.Namespaces)
	o.Namespaces = slices.Compact(o.Namespaces)
	for _, key := range o.EventLabels {
		if wrong := validation.IsQualifiedName(key); len(wrong) > 0 {
			return Usage{fmt.Errorf("--event-labels: %q is not the key of a label: %s", key, strings.Join(wrong, "; "))}
		}
	}
	return nil
}

func (o *Options) claim() events.Claim {
	return events.Claim{ManagedBy: o.ManagedBy, Unmanaged: o.ClaimUnmanaged, Labels: o.EventLabels}
}

func listens(address string) bool { return address != "" && address != Off }
