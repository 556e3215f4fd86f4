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
)

// Where the programs listen unless told otherwise: on loopback, and each on ports of its own, so that a trigger and a
// reconciler run on one machine without any flag.
const (
	triggerMetrics    = "127.0.0.1:8180"
	triggerHealth     = "127.0.0.1:8181"
	reconcilerMetrics = "127.0.0.1:8190"
	reconcilerHealth  = "127.0.0.1:8191"
)

// Off as an address of a server says that it is not wanted.
const Off = "0"

// DefaultNATS is where NATS listens on this machine unless it was told otherwise.
const DefaultNATS = "nats://127.0.0.1:4222"

// leastStateBytes holds a few of the largest states that there may be: with less, they would drive each other out.
const leastStateBytes = 64 << 20

// Options are what every long-running program of ours must be told. The zero value listens nowhere.
type Options struct {
	// Kubeconfig is the path of a file; "" means the service account of the Pod that we run in. Context is one of its
	// contexts, "" its current one.
	Kubeconfig, Context string
	// Namespaces are those where we do anything; none means everywhere.
	Namespaces []string
	// ManagedBy is the spec.managedBy of the Jobs that are ours.
	ManagedBy string
	// ClaimUnmanaged claims Jobs that name nobody or Kubernetes' own controller, too, which must then be off.
	ClaimUnmanaged bool
	// EventLabels are the keys of the labels of Jobs that public events carry.
	EventLabels []string
	// Bus says where the bus is and whose facts it carries. Name, Log and SetAside are filled in.
	Bus bus.Config
	// NATSRemedy says what to do where the bus cannot be had at the start; by default it names the flags about NATS.
	NATSRemedy string
	// MetricsAddress and HealthAddress are what to listen on, "0" or "" for nothing.
	MetricsAddress, HealthAddress string
	// ClockOffset is how far the program's clock is ahead of the machine's, for tests.
	ClockOffset time.Duration
	// Log is where to write; nil means slog.Default().
	Log *slog.Logger
	// Probes, if not nil, are what the health server asks: for somebody in this process who wants to ask too.
	Probes *Probes
}

// add defines the flags for the options, with what the options hold as defaults.
func (o *Options) add(f *pflag.FlagSet) {
	o.addConnections(f)
	o.addServers(f)
}

// addServers defines those that say where we serve.
func (o *Options) addServers(f *pflag.FlagSet) {
	f.StringVar(&o.MetricsAddress, "metrics-bind-address", o.MetricsAddress, "`address` that serves Prometheus metrics at /metrics; 0 for none")
	f.StringVar(&o.HealthAddress, "health-bind-address", o.HealthAddress, "`address` that serves /healthz and /readyz; 0 for none")
}

// addConnections defines those that say where the API server and the bus are, and whose Jobs are ours.
func (o *Options) addConnections(f *pflag.FlagSet) {
	o.addCluster(f)
	o.addNATS(f)
	o.addStreams(f)
	o.addClock(f)
}

// addCluster defines those that say where the API server is, and whose Jobs are ours.
func (o *Options) addCluster(f *pflag.FlagSet) {
	f.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "`file` that says how to reach the API server; default $KUBECONFIG, or inside of a cluster the service account of the Pod")
	f.StringVar(&o.Context, "context", o.Context, "`name` of the context of the kubeconfig to use; default its current one")
	f.StringSliceVar(&o.Namespaces, "namespaces", o.Namespaces, "`names` of the namespaces where we do anything, separated by commas or by repeating the flag; default everywhere; the same for all programs of a --cluster-name")
	f.StringVar(&o.ManagedBy, "managed-by", o.ManagedBy, "`value` of spec.managedBy of the Jobs that are ours; the same for all programs of a --cluster-name")
	f.BoolVar(&o.ClaimUnmanaged, "claim-unmanaged", o.ClaimUnmanaged, "also run Jobs without spec.managedBy, or with "+batchv1.JobControllerName+": only where kube-controller-manager runs with --controllers=-job-controller,*; the same for all programs of a --cluster-name")
	f.StringSliceVar(&o.EventLabels, "event-labels", o.EventLabels, "`keys` of the labels of Jobs that JobStart and JobFinish carry, separated by commas; the same for all programs of a --cluster-name")
}

// addNATS defines those that say where a NATS server is, who we are to it, and how many servers hold each stream.
func (o *Options) addNATS(f *pflag.FlagSet) {
	f.StringVar(&o.Bus.URL, "nats-url", o.Bus.URL, "`URL` of the NATS server, or several separated by commas; tls:// asks for TLS")
	f.StringVar(&o.Bus.UserFile, "nats-user-file", o.Bus.UserFile, "`file` that holds our name as a user of NATS. This file and those below are read anew whenever we connect: a Secret that is rotated needs no restart")
	f.StringVar(&o.Bus.PasswordFile, "nats-password-file", o.Bus.PasswordFile, "`file` that holds the password of --nats-user-file")
	f.StringVar(&o.Bus.NkeySeedFile, "nats-nkey-seed-file", o.Bus.NkeySeedFile, "`file` that holds the seed of our nkey, instead of a user and a password")
	f.StringVar(&o.Bus.TokenFile, "nats-token-file", o.Bus.TokenFile, "`file` that holds a token, instead of a user and a password")
	f.StringVar(&o.Bus.CredentialsFile, "nats-credentials", o.Bus.CredentialsFile, "NATS credentials `file` (.creds), instead of a user and a password")
	f.StringVar(&o.Bus.CAFile, "nats-ca", o.Bus.CAFile, "PEM `file` of the authority that signed the NATS server's certificate")
	f.StringVar(&o.Bus.CertFile, "nats-cert", o.Bus.CertFile, "PEM `file` of a client certificate for NATS")
	f.StringVar(&o.Bus.KeyFile, "nats-key", o.Bus.KeyFile, "PEM `file` of the key of --nats-cert")
	f.DurationVar(&o.Bus.ConnectTimeout, "nats-connect-timeout", o.Bus.ConnectTimeout, "`time` to wait for the NATS server at the start; one that is lost later is waited for without end")
	f.IntVar(&o.Bus.Replicas, "nats-replicas", o.Bus.Replicas, "replicas of every stream: 1, or 3 on a NATS cluster of three servers or more; the same for all programs of a cluster")
}

// addStreams defines those that say what the streams are called and how they are kept.
func (o *Options) addStreams(f *pflag.FlagSet) {
	f.Int64Var(&o.Bus.MaxFactsBytes, "nats-facts-bytes", o.Bus.MaxFactsBytes, "bytes that the stream of facts may take on disk before its oldest go; the same for all programs of a cluster")
	f.Int64Var(&o.Bus.MaxStateBytes, "nats-state-bytes", o.Bus.MaxStateBytes, "bytes that the memory of each function may take on disk before its oldest states go, which costs inventories; the same for all programs of a cluster")
	f.DurationVar(&o.Bus.MaxEventsAge, "nats-events-age", o.Bus.MaxEventsAge, "`time` for which public events are kept; the same for all programs of a cluster")
	f.Int64Var(&o.Bus.MaxEventsBytes, "nats-events-bytes", o.Bus.MaxEventsBytes, "bytes that public events may take on disk before the oldest go; the same for all programs of a cluster")
	f.StringVar((*string)(&o.Bus.EventMode), "event-mode", string(o.Bus.EventMode), "`mode` of the CloudEvents that subscribers get: structured, all of it JSON, or binary, attributes as headers; the same for all programs of a cluster")
	f.StringVar(&o.Bus.Cluster, "cluster-name", o.Bus.Cluster, "`name` of the Kubernetes cluster in subjects and streams: it keeps clusters apart that share one NATS")
}

// defaults are the options that a program starts from.
func defaults(metrics, health string) Options {
	return Options{
		ManagedBy: v1alpha1.DefaultManagedBy,
		Bus: bus.Config{URL: DefaultNATS, Cluster: "default", Replicas: 1, ConnectTimeout: 10 * time.Second,
			MaxFactsBytes: 1 << 30, MaxStateBytes: bus.DefaultStateBytes, MaxEventsAge: 7 * 24 * time.Hour, MaxEventsBytes: 1 << 30, EventMode: cloudevent.Structured},
		MetricsAddress: metrics,
		HealthAddress:  health,
	}
}

// complete takes what flags cannot say and refuses what cannot work.
func (o *Options) complete() error {
	if o.Kubeconfig == "" && os.Getenv("KUBERNETES_SERVICE_HOST") == "" {
		o.Kubeconfig = os.Getenv("KUBECONFIG")
	}
	for flag, address := range map[string]string{"metrics-bind-address": o.MetricsAddress, "health-bind-address": o.HealthAddress} {
		if listens(address) {
			if _, _, err := net.SplitHostPort(address); err != nil {
				return Usage{fmt.Errorf("--%s %s: %w: write host:port, such as 127.0.0.1:8080, or 0 for none", flag, address, err)}
			}
		}
	}
	switch {
	case o.Bus.URL == "" && o.Bus.Server == nil:
		return Usage{fmt.Errorf("--nats-url is empty: name the NATS server, such as %s", DefaultNATS)}
	case o.Bus.Cluster == "":
		return Usage{errors.New("--cluster-name is empty: name the cluster, such as default")}
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
		return Usage{fmt.Errorf("--nats-state-bytes %d: use at least %d: the memory of one Job may take 8 MB", n, leastStateBytes)}
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
