package kubectl

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/jobstream/jobstream/bus"
	"github.com/jobstream/jobstream/internal/flags"
)

// natsServer is where commands find the bus that read what is stored there: events, decisions, replay and history. All others need only a kubeconfig.
type natsServer struct {
	config bus.Config
	flags  *pflag.FlagSet
}

// newNATSServer adds the flags about NATS to the command: those of the trigger and the reconciler, by the same names.
func newNATSServer(c *cobra.Command) *natsServer {
	n := &natsServer{config: bus.Config{Cluster: "default", Role: bus.Reader, Name: fieldManager, ConnectTimeout: 10 * time.Second, Log: slog.New(slog.DiscardHandler)},
		flags: pflag.NewFlagSet("", pflag.ContinueOnError)}
	n.flags.SortFlags = false
	flags.AddNATS(n.flags, &n.config)
	flags.AddClusterName(n.flags, &n.config)
	flags.ShowEnv(n.flags)
	c.Flags().AddFlagSet(n.flags)
	return n
}

// given reports whether a server is named, by a flag or its environment variable. It refuses contradictory flags.
func (n *natsServer) given() (bool, error) {
	if err := flags.TakeEnv(n.flags, os.LookupEnv); err != nil {
		return false, usage{err}
	}
	if err := n.config.CheckCredentials(); err != nil {
		return false, usage{err}
	}
	return n.config.URL != "", nil
}

// connect connects to the bus. It changes nothing there.
func (n *natsServer) connect(ctx context.Context) (*bus.Inspector, error) {
	v, err := bus.Inspect(ctx, n.config)
	if err != nil {
		return nil, fmt.Errorf("cannot ask the bus: %w", err)
	}
	return v, nil
}
