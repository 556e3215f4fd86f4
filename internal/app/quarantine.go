package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobstream/jobstream/bus"
)

// shownReason is how much of a reason the list shows, in characters; JSON has all of it.
const shownReason = 160

// quarantined is a quarantined message in its JSON form.
type quarantined struct {
	ID        uint64    `json:"id"`
	Key       string    `json:"key"`
	Time      time.Time `json:"time"`
	Reason    string    `json:"reason"`
	Size      int       `json:"size"`
	Truncated int       `json:"truncatedFrom,omitempty"`
	Subject   string    `json:"subject"`
	Stream    string    `json:"stream"`
	Sequence  uint64    `json:"sequence"`
	Requeue   string    `json:"requeue,omitempty"`
}

// QuarantineCommand lists the quarantined messages.
func QuarantineCommand() *cobra.Command {
	return ask(OfReconciler(), &cobra.Command{
		Use:   "quarantine",
		Short: "List the messages that were set aside, and how to put them back",
		Args:  cobra.NoArgs,
	}, func(ctx context.Context, a *command, out io.Writer, _ []string) error {
		v, err := a.inspect(ctx)
		if err != nil {
			return err
		}
		defer v.Close()
		all, err := v.Quarantined(ctx)
		if err != nil {
			return &Fatal{Cannot: "list the quarantine", Err: err, Remedy: `"jobstream-reconciler doctor" reports what is wrong`}
		}
		list := make([]quarantined, 0, len(all))
		for _, q := range all {
			one := quarantined{ID: q.ID, Key: q.Key, Time: q.Time, Reason: q.Reason, Size: q.Size, Truncated: q.Truncated,
				Subject: q.Subject, Stream: q.Stream, Sequence: q.Sequence}
			if q.Truncated == 0 { // a truncated message cannot be put back
				one.Requeue = v.RequeueCommand(q)
			}
			list = append(list, one)
		}
		if a.output == "json" {
			return writeJSON(out, list)
		}
		return printQuarantine(out, list)
	})
}

func printQuarantine(out io.Writer, list []quarantined) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(out, "the quarantine is empty")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tKEY\tTIME\tSIZE\tREASON\tPUT IT BACK")
	for _, q := range list {
		reason, size, back := []rune(printable(q.Reason)), fmt.Sprint(q.Size), q.Requeue
		if len(reason) > shownReason {
			reason = append(reason[:shownReason], '…')
		}
		if q.Truncated > 0 {
			size += fmt.Sprintf(" of %d", q.Truncated)
			back = "cannot be: the rest of it is lost"
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\n", q.ID, printable(q.Key), q.Time.UTC().Format(time.RFC3339), size, string(reason), printable(back))
	}
	return w.Flush()
}

// RequeueCommand puts quarantined messages back.
func RequeueCommand() *cobra.Command {
	everything := false
	c := ask(OfReconciler(), &cobra.Command{
		Use:   "requeue [--all | ID...]",
		Short: "Put messages back that were set aside",
		Long: `requeue publishes messages of the quarantine again where they came from, and removes them from it once the server has
confirmed that. It may be repeated, also by two people at once: each message goes back once. An ID is what "quarantine"
lists, or <stream>/<sequence>, as it stands in the message's headers and in the log.`,
	}, func(ctx context.Context, a *command, out io.Writer, args []string) error {
		v, err := a.inspect(ctx)
		if err != nil {
			return err
		}
		defer v.Close()
		if everything {
			all, err := v.Quarantined(ctx)
			if err != nil {
				return &Fatal{Cannot: "list the quarantine", Err: err, Remedy: `"jobstream-reconciler doctor" reports what is wrong`}
			}
			for _, q := range all {
				args = append(args, fmt.Sprint(q.ID))
			}
		}
		return requeue(ctx, v, a.output, out, args)
	})
	c.Args = func(_ *cobra.Command, args []string) error {
		if everything == (len(args) > 0) {
			return errors.New(`name the messages by their IDs, which "quarantine" lists, or add --all`)
		}
		return nil
	}
	c.Flags().BoolVar(&everything, "all", everything, "put back everything that was set aside")
	return c
}

// requeued is the result for one message in its JSON form.
type requeued struct {
	ID     string `json:"id"`
	Result string `json:"result"` // requeued, absent, failed
	Error  string `json:"error,omitempty"`
}

// requeue puts back one message after the other, and continues after a failure.
func requeue(ctx context.Context, v *bus.Inspector, format string, out io.Writer, ids []string) error {
	results, failed := []requeued{}, 0
	for _, which := range ids {
		id, err := v.Find(ctx, which)
		if err == nil {
			err = v.Requeue(ctx, id)
		}
		r := requeued{ID: which, Result: "requeued"}
		switch {
		case errors.Is(err, bus.ErrNotQuarantined):
			r.Result = "absent"
		case err != nil:
			r.Result, r.Error = "failed", err.Error()
			failed++
		}
		results = append(results, r)
		if format == "text" {
			fmt.Fprintln(out, r.text())
		}
	}
	if format == "json" {
		if err := writeJSON(out, results); err != nil {
			return err
		}
	} else if len(ids) == 0 {
		fmt.Fprintln(out, "the quarantine is empty")
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d messages were not put back", failed, len(ids))
	}
	return nil
}

func (r requeued) text() string {
	switch r.Result {
	case "requeued":
		return r.ID + ": put back"
	case "absent":
		return r.ID + ": " + bus.ErrNotQuarantined.Error()
	}
	return r.ID + ": " + printable(r.Error)
}
