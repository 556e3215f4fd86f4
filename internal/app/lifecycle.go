package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/jobstream/jobstream/internal/flags"
)

// stopTimeout is how long a program may take to end after a signal: less than the 30 seconds after which a kubelet kills it, so
// that the log has the reason.
const stopTimeout = 25 * time.Second

// echo is the time within which a second identical signal is ignored: make, timeout and similar programs forward a signal that
// the terminal has sent to all processes already.
const echo = 500 * time.Millisecond

// Main runs the command and returns its exit code. The context of the command ends with the first SIGINT or SIGTERM; the
// second one, or stopTimeout, ends the program at once.
func Main(c *cobra.Command) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		if why := obey(signals, cancel, ended); why != "" {
			fmt.Fprintf(os.Stderr, "%s: %s: ending at once\n", c.Name(), why)
			os.Exit(ExitFatal) // unfinished work is redelivered to another process
		}
	}()
	return execute(ctx, c, os.Args[1:], os.Stdout, os.Stderr)
}

// obey cancels the context at the first signal. It returns why the program must end at once: a second signal, or too much time.
// It returns "" if the program ended before.
func obey(signals <-chan os.Signal, cancel func(), ended <-chan struct{}) (why string) {
	select {
	case <-ended:
		return ""
	case <-signals:
	}
	asked := time.Now()
	cancel()
	late := time.NewTimer(stopTimeout)
	defer late.Stop()
	for {
		select {
		case <-ended:
			return ""
		case <-late.C:
			return fmt.Sprintf("still at work %v after it was asked to stop", stopTimeout)
		case <-signals:
			if time.Since(asked) > echo {
				return "asked twice to stop"
			}
		}
	}
}

// execute is Main without the process around it.
func execute(ctx context.Context, c *cobra.Command, args []string, stdout, stderr io.Writer) int {
	prepare(c)
	c.SetArgs(args)
	c.SetOut(stdout)
	c.SetErr(stderr)
	err := c.ExecuteContext(ctx)
	if err != nil {
		explain(stderr, c.Name(), err)
	}
	return exitCode(err)
}

// prepare adds the common parts to the command and its subcommands: environment variables, errors in one form, --version.
func prepare(c *cobra.Command) {
	c.Version = longVersion()
	c.SilenceErrors, c.SilenceUsage = true, true
	c.CompletionOptions.HiddenDefaultCmd = true
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return Usage{err} })
	c.PersistentPreRunE = func(c *cobra.Command, _ []string) error { return takeEnv(c.Flags(), os.LookupEnv) }
	each(c, func(c *cobra.Command) {
		c.Flags().SortFlags = false // keep the order of importance
		flags.ShowEnv(c.LocalFlags())
		if args := c.Args; args != nil {
			c.Args = func(c *cobra.Command, given []string) error {
				if err := args(c, given); err != nil {
					return Usage{err}
				}
				return nil
			}
		}
	})
}

// takeEnv sets the flags that were not given from their environment variables.
func takeEnv(f *pflag.FlagSet, lookup func(string) (string, bool)) error {
	if err := flags.TakeEnv(f, lookup); err != nil {
		return Usage{err}
	}
	return nil
}

// Program completes the command of a program that runs until it is stopped: with the flags that add defines, the log flags, and
// no arguments. run gets the configured logger.
func Program(c *cobra.Command, add func(*pflag.FlagSet), run func(context.Context, *slog.Logger) error) *cobra.Command {
	logging := LogDefaults()
	c.Long += "\n\nEvery flag can also be set by the environment variable in brackets; the flag takes precedence."
	c.Args = cobra.NoArgs
	c.RunE = func(c *cobra.Command, _ []string) error {
		log, err := logging.Logger(c.ErrOrStderr())
		if err != nil {
			return err
		}
		return run(c.Context(), log)
	}
	add(c.Flags())
	logging.Add(c.Flags())
	return c
}

func each(c *cobra.Command, do func(*cobra.Command)) {
	do(c)
	for _, sub := range c.Commands() {
		each(sub, do)
	}
}
