package app

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/jobstream/jobstream/bus"
	"github.com/jobstream/jobstream/deploy"
	"github.com/jobstream/jobstream/functions/catalog"
	"github.com/jobstream/jobstream/internal/cluster"
	"github.com/jobstream/jobstream/internal/finding"
	"github.com/jobstream/jobstream/internal/flags"
	"github.com/jobstream/jobstream/internal/zone"
)

// doctorTimeout bounds all checks together; a request that has not returned by then becomes a finding.
const doctorTimeout = time.Minute

// Surroundings describe how a command finds the systems that a program works with.
type Surroundings struct {
	// AddFlags defines the flags; Complete, if not nil, sets what they leave open.
	AddFlags func(*Options, *pflag.FlagSet)
	Complete func(*Options) error
	// Role is the program's on the bus.
	Role bus.Role
	// NATS is the remedy if no NATS server responds.
	NATS string
	// Roles and Grant are those of cluster.Inspection.
	Roles [][]byte
	Grant string
}

// OfReconciler returns the Surroundings of a reconciler: all are set by flags.
func OfReconciler() Surroundings {
	return Surroundings{
		AddFlags: (*Options).addConnections,
		Role:     bus.Reconciler,
		NATS:     "start it, or correct --nats-url (" + flags.EnvName("nats-url") + "), the flags for credentials such as --nats-user-file, and --nats-ca",
		Roles:    [][]byte{deploy.ReconcilerRBAC},
		Grant:    "apply deploy/base/reconciler-rbac.yaml, and run this as its service account",
	}
}

// DoctorCommand checks everything that a program with these surroundings needs, and changes nothing.
func DoctorCommand(around Surroundings) *cobra.Command {
	return ask(around, &cobra.Command{
		Use:   "doctor",
		Short: "Check NATS, the API server and the permissions, and report what is wrong",
		Long: `doctor connects as the program itself would, with the same flags, and prints one line for each check, with
advice if there is something to do. It creates and changes nothing. The exit code is 1 if a line is FAIL, else 0.`,
		Example: `  # As the reconciler's own service account, with its own settings
  kubectl -n jobstream exec deploy/jobstream-reconciler -- /jobstream-reconciler doctor`,
		Args: cobra.NoArgs,
	}, func(ctx context.Context, a *command, out io.Writer, _ []string) error {
		ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
		defer cancel()
		all := a.examine(ctx, around)
		if err := report(out, a.output, all); err != nil {
			return err
		}
		if n := finding.Count(all, finding.Fail); n > 0 {
			return fmt.Errorf("%d of %d checks failed", n, len(all))
		}
		return nil
	})
}

// examine runs every check, in the order in which a reconciler needs their subjects. A new check is one more line here.
func (a *command) examine(ctx context.Context, around Surroundings) (all []finding.Finding) {
	for _, look := range []func(context.Context, Surroundings) []finding.Finding{
		a.examineBus,
		a.examineCluster,
		examineZones,
	} {
		all = append(all, look(ctx, around)...)
	}
	return all
}

// examineBus checks the server and the streams.
func (a *command) examineBus(ctx context.Context, around Surroundings) []finding.Finding {
	v, err := bus.Inspect(ctx, a.Bus)
	if err != nil {
		return []finding.Finding{finding.Worry("nats", finding.Fail, around.NATS, "%v", err)}
	}
	defer v.Close()
	var functions []string
	for _, f := range catalog.Names() {
		functions = append(functions, string(f))
	}
	return v.Findings(ctx, functions, a.now)
}

// examineCluster checks the API server and the permissions.
func (a *command) examineCluster(ctx context.Context, around Surroundings) []finding.Finding {
	client, config, err := cluster.NewClient(cluster.ClientConfig{Kubeconfig: a.Kubeconfig, Context: a.Context, UserAgent: "jobstream-doctor/" + Version()})
	if err != nil {
		return []finding.Finding{finding.Worry("api server", finding.Fail, "name a kubeconfig with --kubeconfig ("+flags.EnvName("kubeconfig")+", KUBECONFIG), or run in a Pod that has a service account", "%v", err)}
	}
	return cluster.Inspection{Client: client, Config: config, Claim: a.claim(), Namespaces: a.Namespaces, Roles: around.Roles, Grant: around.Grant, Now: a.now}.Findings(ctx)
}

// examineZones checks zones on both sides of Greenwich, one of them with half an hour. The server's own zones do not matter,
// because timers are points in time.
func examineZones(context.Context, Surroundings) []finding.Finding {
	const check = "time zones"
	for name, want := range map[string]int{"America/New_York": -5 * 3600, "Asia/Kolkata": 5*3600 + 1800} {
		l, err := zone.Load(name)
		if err != nil {
			return []finding.Finding{finding.Worry(check, finding.Fail, "build the program with its own zones (time/tzdata)", "%v", err)}
		}
		if _, got := time.Date(2026, time.January, 1, 0, 0, 0, 0, l).Zone(); got != want {
			return []finding.Finding{finding.Worry(check, finding.Fail, "repair /usr/share/zoneinfo, or what ZONEINFO names", "%s is %d seconds from UTC in winter, and should be %d", name, got, want)}
		}
	}
	return []finding.Finding{finding.Good(check, "known by name, such as America/New_York")}
}

// report prints the findings, one on a line.
func report(out io.Writer, format string, all []finding.Finding) error {
	if format == "json" {
		return writeJSON(out, all)
	}
	return finding.Print(out, all)
}
