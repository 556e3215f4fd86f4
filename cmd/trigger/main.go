// Command trigger turns changes in a Kubernetes cluster, and the passing of time, into facts on NATS JetStream. It publishes each
// change of Jobs, their Pods and ScheduledJobs, and each time at which a ScheduledJob is due, once, for the reconcilers and all
// other subscribers. It changes nothing in the cluster. Any number of triggers may run side by side: JetStream stores what two of
// them publish once.
package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/jobstream/jobstream/internal/app"
	"github.com/jobstream/jobstream/internal/garbage"
)

func main() {
	// The trigger's largest need is a list of all Pods, for a moment. A lower GOGC halves the garbage that comes with it, for a
	// little more processor time.
	garbage.Policy{Percent: 50, LeastHeap: 32 << 20}.Follow()
	os.Exit(app.Main(command()))
}

func command() *cobra.Command {
	config := app.TriggerDefaults()
	return app.Program(&cobra.Command{
		Use:   "jobstream-trigger",
		Short: "Turn what happens in a Kubernetes cluster into facts on NATS JetStream",
		Long: `jobstream-trigger watches Jobs whose spec.managedBy names jobstream, their Pods, and ScheduledJobs, and publishes each
change, and each time at which a ScheduledJob is due, on NATS JetStream. It changes nothing in the cluster. Run as many as you
like: JetStream stores what two of them publish once.`,
		Example: `  # In a cluster, as a Deployment with a service account
  jobstream-trigger --nats-url nats://nats.jobstream:4222 --health-bind-address :8081

  # Beside a cluster
  jobstream-trigger --kubeconfig ~/.kube/config --nats-url nats://127.0.0.1:4222

  # Two clusters on one NATS, over TLS, with credentials
  jobstream-trigger --cluster-name west --nats-url tls://nats.example.com --nats-credentials west.creds`,
	}, config.AddFlags, func(ctx context.Context, log *slog.Logger) error {
		config.Log = log
		return app.RunTrigger(ctx, config)
	})
}
