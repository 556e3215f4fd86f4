package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/jobstream/jobstream/internal/app"
)

// Ports that are tried first, so that commands in a shell's history work again next time.
const (
	usualAPIPort  = 6443
	usualNATSPort = 4222
)

func upCommand() *cobra.Command {
	p := plan{Cluster: "default", APIPort: usualAPIPort, NATSPort: usualNATSPort, Node: true}
	logging := app.LogOptions{Level: "warn", Format: "text"}
	c := &cobra.Command{
		Use:   "up",
		Short: "Run a cluster with jobstream until Ctrl-C",
		Example: `  jobstream-dev up                    # a fresh cluster, gone after Ctrl-C
  jobstream-dev up --dir ~/cluster    # one that is kept
  jobstream-dev up --log-level debug  # with every turn in the log`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			log, err := logging.Logger(c.ErrOrStderr())
			if err != nil {
				return err
			}
			p.Log = log
			t, r := app.TriggerDefaults(), app.ReconcilerDefaults()
			p.Trigger = addresses{freeAddress(c.Context(), t.MetricsAddress), freeAddress(c.Context(), t.HealthAddress)}
			p.Reconciler = addresses{freeAddress(c.Context(), r.MetricsAddress), freeAddress(c.Context(), r.HealthAddress)}
			return up(c.Context(), p, c.OutOrStdout())
		},
	}
	f := c.Flags()
	f.StringVar(&p.Dir, "dir", "", "`folder` that keeps the cluster and the bus for the next time; default a temporary one")
	f.BoolVar(&p.Node, "node", p.Node, "run Pods as processes of this machine")
	f.StringVar(&p.Cluster, "cluster-name", p.Cluster, "`name` of the cluster in subjects and streams")
	f.IntVar(&p.APIPort, "api-port", p.APIPort, "`port` of the API server on 127.0.0.1; another one if it is taken")
	f.IntVar(&p.NATSPort, "nats-port", p.NATSPort, "`port` of NATS on 127.0.0.1; another one if it is taken")
	logging.Add(f)
	return c
}

// up runs the system until the context ends.
func up(ctx context.Context, p plan, out io.Writer) error {
	p.Say = func(format string, args ...any) { fmt.Fprintf(out, format+"\n", args...) }
	s, err := startSystem(ctx, p)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil //nolint:nilerr // Ctrl-C during the start is no failure, and causes all later errors
	case err != nil:
		return err
	}
	g, err := guideTo(s)
	if err == nil {
		fmt.Fprint(out, g)
		select {
		case <-ctx.Done():
		case err = <-s.failed:
		}
	}
	fmt.Fprintln(out, "\nstopping")
	return errors.Join(err, s.stop())
}
