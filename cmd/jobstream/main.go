// Command jobstream runs a trigger, a reconciler and a NATS server in one process beside a cluster that exists. It is for the first
// hour, for a small cluster, and for work on one's own machine: what it does is what cmd/trigger and cmd/reconciler do, which take
// over from it without losing a Job.
//
//	check.go    is this a cluster that we can work for, and may we?
//	folder.go   where the bus keeps its data, and who may use it
//	run.go      NATS, trigger and reconciler, from the start to the end
//	hello.go    what the user has to know
package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // what a kubeconfig may ask for

	"github.com/jobstream/jobstream/bus"
	"github.com/jobstream/jobstream/deploy"
	"github.com/jobstream/jobstream/internal/app"
	"github.com/jobstream/jobstream/internal/trace"
)

func main() { os.Exit(app.Main(command())) }

// usualPort is that of NATS.
const usualPort = 4222

// settings are what the user asks for.
type settings struct {
	app.AllInOneConfig
	place
	installCRDs bool
	natsURL     string // a mistake
	given       string // the kubeconfig that the user has named
}

func command() *cobra.Command {
	s := &settings{AllInOneConfig: app.AllInOneDefaults()}
	s.Tracing = app.Tracing{Results: trace.Results, New: newSpans}
	logging := app.LogOptions{Level: "warn", Format: "text"} // what is worth knowing is said once
	c := &cobra.Command{
		Use:   "jobstream",
		Short: "Run Jobs of a cluster that exists: trigger, reconciler and NATS in one program",
		Long: `jobstream runs the Jobs of a cluster whose spec.managedBy names us, and its ScheduledJobs: a trigger, a reconciler and a NATS
server in one process, which needs a kubeconfig and nothing else. Stop it or kill it whenever you like: Jobs stay as they
are, and go on with exact counts when it is started again.

Every flag has a twin in the environment, named in brackets; the flag beats it.`,
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
				return app.Usage{Err: errors.New("--nats-url (" + app.EnvName("nats-url") + ") is none of ours, for jobstream has a NATS server of its own: " +
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
	_ = f.MarkHidden("nats-url") // it has just been defined
	f.Lookup("kubeconfig").Usage = kubeconfigUsage
	logging.Add(f)
	c.AddCommand(doctor())
	return c
}

const kubeconfigUsage = "`file` that says how to reach the API server; default as for kubectl: $KUBECONFIG, else ~/.kube/config"

// doctor looks at the NATS server of a jobstream that runs.
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
