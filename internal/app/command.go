package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/jobstream/jobstream/bus"
	"github.com/jobstream/jobstream/internal/flags"
)

// command is a command for people: it connects as the reconciler would, prints its result on standard output, and ends.
type command struct {
	Options
	output string // text or json
}

// ask completes a cobra command whose output run writes.
func ask(around Surroundings, c *cobra.Command, run func(ctx context.Context, a *command, out io.Writer, args []string) error) *cobra.Command {
	a := &command{Options: defaults(Off, Off), output: "text"}
	a.Log = slog.New(slog.DiscardHandler) // errors are part of the output, and client-go logs nothing either
	c.RunE = func(c *cobra.Command, args []string) error {
		if a.output != "text" && a.output != "json" {
			return Usage{fmt.Errorf("--output %q is none: use text or json", a.output)}
		}
		if around.Complete != nil {
			if err := around.Complete(&a.Options); err != nil {
				return err
			}
		}
		if err := a.complete(); err != nil {
			return err
		}
		a.Bus.Log, a.Bus.Name, a.Bus.Role = a.Log, "jobstream-"+c.Name(), around.Role
		return run(c.Context(), a, c.OutOrStdout(), args)
	}
	around.AddFlags(&a.Options, c.Flags())
	c.Flags().StringVarP(&a.output, "output", "o", a.output, "`format` of the answer: text or json")
	return c
}

// inspect connects to the bus without changing it.
func (a *command) inspect(ctx context.Context) (*bus.Inspector, error) {
	v, err := bus.Inspect(ctx, a.Bus)
	if err != nil {
		return nil, &Fatal{Cannot: "ask the bus", Err: err,
			Remedy: "--nats-url (" + flags.EnvName("nats-url") + ") names the NATS server; --nats-user-file and --nats-password-file, or another of the flags for credentials, and --nats-ca set the credentials"}
	}
	return v, nil
}

// writeJSON writes an answer for programs.
func writeJSON(out io.Writer, answer any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(answer)
}

// printable prevents text from other users from steering a terminal or breaking a line.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}
