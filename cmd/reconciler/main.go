// Command reconciler turns facts into effects on a Kubernetes cluster: it receives what a trigger has published on NATS
// JetStream, lets the functions decide, and creates Pods, removes their finalizers, counts them, and writes the status of Jobs;
// it also creates the Jobs of ScheduledJobs. Any number of reconcilers may run side by side: compare-and-set on their shared
// state lets only one decide at a time.
package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/jobstream/jobstream/internal/app"
	"github.com/jobstream/jobstream/internal/garbage"
	"github.com/jobstream/jobstream/internal/trace"
)

func main() {
	garbage.Policy{Percent: 100, LeastHeap: 64 << 20}.Follow()
	os.Exit(app.Main(command()))
}

func command() *cobra.Command {
	config := app.ReconcilerDefaults()
	config.Tracing = app.Tracing{Results: trace.Results, New: func(cluster string, log *slog.Logger, settled func(string, int)) (app.Spans, error) {
		return trace.New(trace.Config{Cluster: cluster, Version: app.Version(), Log: log, Settled: settled})
	}}
	program := app.Program(&cobra.Command{
		Use:   "jobstream-reconciler",
		Short: "Turn facts on NATS JetStream into effects on a Kubernetes cluster",
		Long: `jobstream-reconciler receives facts about Jobs and Pods from NATS JetStream, decides, and acts: it creates Pods, counts
them, writes the status of Jobs, and creates the Jobs of ScheduledJobs. Kill it whenever you like: JetStream redelivers
unfinished work. Run as many as you like: one of them takes each turn of a Job.`,
		Example: `  # In a cluster, as a Deployment with a service account
  jobstream-reconciler --nats-url nats://nats.jobstream:4222 --health-bind-address :8081

  # Beside a cluster, with every turn in the log
  jobstream-reconciler --kubeconfig ~/.kube/config --nats-url nats://127.0.0.1:4222 --log-level debug

  # Two clusters on one NATS, over TLS, with credentials
  jobstream-reconciler --cluster-name west --nats-url tls://nats.example.com --nats-credentials west.creds`,
	}, config.AddFlags, func(ctx context.Context, log *slog.Logger) error {
		config.Log = log
		return app.RunReconciler(ctx, config)
	})
	program.AddCommand(app.DoctorCommand(app.OfReconciler()), app.DrainCommand(), app.QuarantineCommand(), app.RequeueCommand())
	return program
}
