// Command dev runs all of jobstream on one machine, for people who want to try it or to work on it: a NATS server inside this
// process, a real Kubernetes control plane as child processes, a node that runs Pods as local processes, a trigger and a
// reconciler. It needs no container engine and no root, listens on loopback only, and leaves nothing behind.
//
//	dev up      a cluster that stays until Ctrl-C, to use with kubectl          up.go     (make dev)
//	dev demo    real Jobs with their progress live, ends by itself              demo.go   (make demo)
//
// Under the name kubectl-jobstream the program is the plugin of kubectl (plugin.go), as the guide of "dev up" explains.
//
// system.go starts and stops the parts. The demo kills its reconciler, which therefore runs as a process of its own
// (reconciler.go). It observes the bus (subscriber.go) and the API server (observations.go). Package show tells what happened; package
// manifests holds what the demo applies.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/jobstream/jobstream/internal/app"
	"github.com/jobstream/jobstream/internal/kubectl"
)

func main() {
	if isPlugin(os.Args[0]) {
		os.Exit(kubectl.Main(os.Args, os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(app.Main(command()))
}

func command() *cobra.Command {
	c := &cobra.Command{
		Use:   "jobstream-dev",
		Short: "Run all of jobstream on this machine",
		Long: `jobstream-dev runs all of jobstream on this machine: NATS, a real Kubernetes control plane, a node that runs
Pods as local processes, a trigger and a reconciler. It needs no container engine and no root.`,
		Example: `  jobstream-dev demo                 # watch real Jobs run, then end
  jobstream-dev up                   # a cluster to use with kubectl, until Ctrl-C
  jobstream-dev up --dir ~/cluster   # the same cluster again next time`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(upCommand(), demoCommand(), piCommand(), reconcilerCommand())
	return c
}
