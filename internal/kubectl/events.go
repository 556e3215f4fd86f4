package kubectl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/spf13/cobra"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/progress"
)

// eventsSince is how far back events go by default.
const eventsSince = time.Hour

// eventKind is a type of public events: its name for users, and its part of the subject.
type eventKind struct {
	name, kind string
	of         events.Public
}

// eventKinds are in the order of docs/events.md.
var eventKinds = []eventKind{
	{"JobStart", "job.start", events.JobStarted{}},
	{"JobFinish", "job.finish", events.JobFinished{}},
	{"PodFinish", "pod.finish", events.PodFinished{}},
	{"TickDecided", "schedule.tick", events.TickDecided{}},
}

func eventNames() (all []string) {
	for _, k := range eventKinds {
		all = append(all, k.name)
	}
	return all
}

// eventsCommand is "events" with its flags.
type eventsCommand struct {
	*tool
	nats        *natsServer
	follow, all bool
	types       []string
	since       time.Duration
	output      string
}

func newEvents(t *tool) *cobra.Command {
	e := &eventsCommand{tool: t}
	command := &cobra.Command{
		Use:   "events [-f] [--type=TYPE] [--since=TIME] [-A] [-o json]",
		Short: "Show starts and ends of Jobs and verdicts on schedules, from NATS",
		Long: `Show the public events that jobstream has announced on NATS: starts and ends of Jobs, verdicts on the times of ScheduledJobs, and, if the
operator has enabled them, ends of Pods. A line begins with the time of the event. With -o json, each line is the CloudEvent.

It reads the stored events, of 7 days by default, and changes nothing: no subscriber misses one for it.`,
		Example: `  # What fails, as it fails
  kubectl jobstream events --type=JobFinish -f

  # The last day of all namespaces, for a program
  kubectl jobstream events -A --since=24h -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage{fmt.Errorf("%s: events shows those of a whole namespace: leave the name out, and choose by it, such as with: kubectl jobstream events | grep /%s", args[0], args[0])}
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return e.run(c.Context()) },
	}
	f := command.Flags()
	f.SortFlags = false
	f.BoolVarP(&e.follow, "follow", "f", false, "go on with events as they are announced, until you interrupt it")
	f.StringSliceVar(&e.types, "type", nil, "`type` of the events, or several separated by commas: "+strings.Join(eventNames(), ", ")+" (default: all)")
	f.DurationVar(&e.since, "since", eventsSince, "`time` to go back, such as 15m; with -f, 0 shows only what comes")
	f.BoolVarP(&e.all, "all-namespaces", "A", false, "show those of all namespaces")
	f.StringVarP(&e.output, "output", "o", "text", "`format`: text or json")
	f.Lookup("output").Annotations = map[string][]string{formatsAnnotation: {"text", "json"}}
	e.nats = newNATSServer(command)
	return command
}

// kinds returns the selected kinds.
func (e *eventsCommand) kinds() (all []string, err error) {
	for _, wanted := range e.types {
		i := slices.IndexFunc(eventKinds, func(k eventKind) bool {
			return strings.EqualFold(k.name, wanted) || wanted == events.PublicType(k.of)
		})
		if i < 0 {
			return nil, fmt.Errorf("--type=%s is none: write %s", wanted, strings.Join(eventNames(), ", "))
		}
		all = append(all, eventKinds[i].kind)
	}
	return slices.Compact(slices.Sorted(slices.Values(all))), nil
}

func (e *eventsCommand) run(ctx context.Context) error {
	kinds, err := e.kinds()
	switch {
	case err != nil:
		return usage{err}
	case e.output != "text" && e.output != "json":
		return usage{fmt.Errorf("--output=%s: write text or json", e.output)}
	case e.since < 0:
		return usage{fmt.Errorf("--since=%v is in the future: write a time such as 15m", e.since)}
	case e.since == 0 && !e.follow:
		return usage{errors.New("--since=0s shows nothing without -f: write a time such as 15m, or add -f")}
	}
	namespace := ""
	if !e.all {
		if namespace, _, err = e.namespace(); err != nil {
			return unusable(err)
		}
	}
	shown := 0
	err = e.nats.follow(ctx, namespace, kinds, e.now().Add(-e.since), e.follow, e.away, func(t told) error {
		shown++
		return e.print(t)
	})
	if shown == 0 && err == nil && !e.follow {
		where := "the namespace " + namespace
		if e.all {
			where = "any namespace"
		}
		fmt.Fprintf(e.ErrOut, "no event of %s in the last %v: --since=168h goes further back\n", where, e.since)
	}
	return err
}

// away tells a user who follows that nothing comes for now.
func (e *eventsCommand) away(err error) {
	if err != nil {
		fmt.Fprintf(e.ErrOut, "the bus does not answer, and is asked again: %s\n", progress.Clean(err.Error(), 500))
		return
	}
	fmt.Fprintln(e.ErrOut, "the bus answers again")
}

func (e *eventsCommand) print(t told) error {
	if e.output == "json" {
		if line, err := safeJSON(t.text); err == nil {
			_, err = fmt.Fprintln(e.Out, line)
			return err
		}
		_, err := fmt.Fprintf(e.ErrOut, "a message that is no JSON, stored at %s, is left out\n", t.stored.UTC().Format(time.RFC3339))
		return err
	}
	line := t.stored.UTC().Format(time.RFC3339) + "  a message that is no event of this version"
	if t.err != nil {
		line += ": " + t.err.Error()
	} else {
		line = eventLine(t.event)
	}
	_, err := fmt.Fprintln(e.Out, progress.Clean(line, 1000))
	return err
}

// safeJSON returns the JSON in one line. What could steer a terminal is written as an escape of JSON, which means the same.
func safeJSON(text []byte) (string, error) {
	var line bytes.Buffer
	if err := json.Compact(&line, text); err != nil {
		return "", err
	}
	var safe strings.Builder
	for _, r := range line.String() {
		if r < unicode.MaxASCII || unicode.IsPrint(r) {
			safe.WriteRune(r)
		} else if high, low := utf16.EncodeRune(r); high != unicode.ReplacementChar {
			fmt.Fprintf(&safe, `\u%04x\u%04x`, high, low)
		} else {
			fmt.Fprintf(&safe, `\u%04x`, r)
		}
	}
	return safe.String(), nil
}
