package kubectl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
)

// Exit codes of the plugin.
const (
	// ExitFailed means that the Job or a request has failed.
	ExitFailed = 1
	// ExitUsage means that the command line is wrong. Nothing was done.
	ExitUsage = 2
	// ExitTimeout means that --timeout has passed, as for timeout(1). The Job goes on.
	ExitTimeout = 124
	// ExitInterrupted means that the user interrupted the wait (128 + SIGINT). The Job goes on.
	ExitInterrupted = 130
)

// usage is an error in the command line.
type usage struct{ error }

func (u usage) Unwrap() error { return u.error }

// exit is an error with an exit code of its own.
type exit struct {
	error
	code int
}

func (e exit) Unwrap() error { return e.error }

// Main runs the plugin and returns its exit code. args begin with the program's name.
func Main(args []string, in io.Reader, out, errOut io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)                      // a second signal ends the program
	klog.SetSlogLogger(slog.New(slog.DiscardHandler)) // the plugin reports connection errors itself
	args = completes(args)
	return execute(ctx, newTool(genericiooptions.IOStreams{In: in, Out: out, ErrOut: errOut}), called(args[0]), args[1:])
}

// called returns the command as the user typed it: kubectl finds its plugins by file name.
func called(program string) string {
	if name, plugin := strings.CutPrefix(filepath.Base(program), "kubectl-"); plugin {
		return "kubectl " + strings.ReplaceAll(name, "_", "-")
	}
	return filepath.Base(program)
}

// execute runs the command line, prints its error, and returns the exit code.
func execute(ctx context.Context, t *tool, name string, args []string) int {
	root := newRoot(t, name)
	root.SetArgs(args)
	c, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(t.ErrOut, "error:", err)
	special := exit{}
	switch {
	case errors.As(err, &usage{}):
		fmt.Fprintf(t.ErrOut, "See '%s --help'.\n", c.CommandPath())
		return ExitUsage
	case errors.As(err, &special):
		return special.code
	}
	return ExitFailed
}
