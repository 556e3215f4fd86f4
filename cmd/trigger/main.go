// Command trigger turns a Kubernetes cluster and the time into facts on NATS JetStream: what happens to Jobs, their Pods and
// ScheduledJobs, and that the time of a ScheduledJob has come, is published once, for the reconcilers and for whoever else
// wants to know. It changes nothing in the cluster. Any number of triggers may run side by side: what two of them see is
// stored once.
package main

import (
	"context"
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/jobstream/jobstream/internal/app"
)

func main() {
	// What it needs at most is a list of all Pods, for a moment. The garbage that goes with it is kept to half of that, for a
	// little more of the processor's time.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
	os.Exit(app.Main(command()))
}

func command() *cobra.Command {
	config := app.TriggerDefaults()
	return app.Program(&cobra.Command{
		Use:   "jobstream-trigger",
		Short: "Turn what happens in a Kubernetes cluster into facts on NATS JetStream",
		Long: `jobstream-trigger watches Jobs whose spec.managedBy names us, their Pods, and ScheduledJobs, and publishes what it
sees on NATS JetStream; and it publishes a due notice when the nominal time of a ScheduledJob has come. It changes nothing in the cluster. Run as
many as you like: what two see is stored once.`,
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
