// Command jobstream runs a trigger, a reconciler and a NATS server in one process beside an existing cluster. It is for first
// steps, for a small cluster, and for development: it does what cmd/trigger and cmd/reconciler do, which can take over from it
// without losing a Job.
//
//	check.go    is this a cluster that jobstream can work for, with enough permissions?
//	folder.go   where the bus keeps its data, and who may use it
//	run.go      NATS, trigger and reconciler, from start to end
//	hello.go    the text for the user
package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // authentication plugins that a kubeconfig may need

	"github.com/jobstream/jobstream/bus"
	"github.com/jobstream/jobstream/deploy"
	"github.com/jobstream/jobstream/internal/app"
	"github.com/jobstream/jobstream/internal/flags"
	"github.com/jobstream/jobstream/internal/trace"
)

func main() { os.Exit(app.Main(command())) }

// usualPort is the default port of NATS.
const usualPort = 4222

// settings are the user's flags.
type settings struct {
	app.AllInOneConfig
	place
	installCRDs bool
	natsURL     string // refused if set
	given       string // the kubeconfig named by the user
}

func command() *cobra.Command {
	s := &settings{AllInOneConfig: app.AllInOneDefaults()}
	s.Tracing = app.Tracing{Results: trace.Results, New: newSpans}
	logging := app.LogOptions{Level: "warn", Format: "text"} // the greeting has all that a user needs
	c := &cobra.Command{
		Use:   "jobstream",
		Short: "Run Jobs of a cluster that exists: trigger, reconciler and NATS in one program",
		Long: `jobstream runs the Jobs of a cluster whose spec.managedBy names it, and its ScheduledJobs: a trigger, a reconciler and a NATS
server in one process, which needs a kubeconfig and nothing else. Stop it or kill it whenever you like: Jobs stay as they
are, and go on with exact counts when it is started again.

Every flag can also be set by the environment variable in brackets; the flag takes precedence.`,
		Example: `  # Beside the cluster that kubectl talks to; the first time with the kind ScheduledJob
  jobstream --install-crds
  jobstream

  # Beside another one, at the same time
  jobstream --context west --nats-port 4223 --metrics-bind-address 0 --health-bind-address 0

  # With every turn in the log
  jobstream --log-level debug`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			log, err := logging.Logger(c.ErrOrStderr())
			if err != nil {
				return err
			}
			s.Log = log
			if c.Flags().Changed("nats-url") {
				return app.Usage{Err: errors.New("--nats-url (" + flags.EnvName("nats-url") + ") does not apply, because jobstream has a NATS server of its own: " +
					"leave it out, or run jobstream-trigger and jobstream-reconciler, which use yours")}
			}
			return run(c.Context(), s, c.OutOrStdout())
		},
	}
	f := c.Flags()
	f.BoolVar(&s.installCRDs, "install-crds", false, "install the kind ScheduledJob in the cluster, or bring it up to date, before anything else")
	s.addPlace(f)
	s.AddFlags(f)
	f.StringVar(&s.natsURL, "nats-url", "", "")
	_ = f.MarkHidden("nats-url") // cannot fail: the flag has just been defined
	f.Lookup("kubeconfig").Usage = kubeconfigUsage
	logging.Add(f)
	c.AddCommand(doctor())
	return c
}

const kubeconfigUsage = "`file` with the address and credentials of the API server; default as for kubectl: $KUBECONFIG, else ~/.kube/config"

// doctor checks the NATS server of a running jobstream.
func doctor() *cobra.Command {
	p := &place{}
	return app.DoctorCommand(app.Surroundings{
		AddFlags: func(o *app.Options, f *pflag.FlagSet) {
			p.addPlace(f)
			o.AddConnections(f)
			f.Lookup("kubeconfig").Usage = kubeconfigUsage
		},
		Complete: func(o *app.Options) error { return p.visit(o) },
		NATS:     "start jobstream; if it runs, give doctor the same --dir and --nats-port",
		Role:     bus.Everything,
		Roles:    [][]byte{deploy.TriggerRBAC, deploy.ReconcilerRBAC},
		Grant:    grant,
	})
}
