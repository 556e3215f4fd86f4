package kubectl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/jobstream/jobstream/internal/kubectl/run"
)

// maker holds the shared flags of the commands that create objects: --dry-run, --output, --wait and --logs.
type maker struct {
	*tool
	dryRun     string
	wait, logs bool
	timeout    time.Duration
	output     *output
	printer    printers.ResourcePrinter // made by check
}

func newMaker(t *tool) *maker {
	return &maker{tool: t, dryRun: "none", output: newOutput("created")}
}

func (m *maker) addFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&m.dryRun, "dry-run", m.dryRun, "`how`: none, client (send nothing, only print), or server (send, keep nothing)")
	m.output.addTo(c)
	f.BoolVar(&m.wait, "wait", false, "wait until the Job has ended: exit code 0 if complete, 1 if failed, 124 after --timeout")
	f.BoolVar(&m.logs, "logs", false, "like --wait, and print the output of the Pods as it arrives")
	f.DurationVar(&m.timeout, "timeout", 0, "`time` after which --wait and --logs end, such as 5m; the Job goes on (default: never)")
}

// check refuses contradictory flags. It sends no request.
func (m *maker) check() error {
	waits := m.wait || m.logs
	switch {
	case m.dryRun != "none" && m.dryRun != "client" && m.dryRun != "server":
		return usage{fmt.Errorf("--dry-run=%s is none: write --dry-run=client or --dry-run=server", m.dryRun)}
	case waits && m.dryRun != "none":
		return usage{fmt.Errorf("--dry-run=%s makes no Job to wait for: leave out --wait and --logs", m.dryRun)}
	case m.logs && m.output.format() != "" && m.output.format() != nameOnly:
		return usage{fmt.Errorf("--logs and --output=%s both write to standard output: leave one of them out; \"logs JOB -f\" prints what the Pods print, too", m.output.format())}
	case m.timeout != 0 && !waits:
		return usage{errors.New("--timeout is how long to wait: add --wait or --logs")}
	case m.timeout < 0:
		return usage{fmt.Errorf("--timeout=%v is in the past: write a time such as 5m", m.timeout)}
	}
	said := map[string]string{"none": "%s", "client": "%s (dry run)", "server": "%s (server dry run)"}[m.dryRun]
	var err error
	m.printer, err = m.output.printer(said)
	return err
}

// tell prints the notes about the objects.
func (m *maker) tell(objects run.Objects) {
	for _, note := range objects.Notes {
		fmt.Fprintln(m.ErrOut, "note:", note)
	}
}

// show prints the objects in the format of --output. In JSON several objects form a List; in YAML they are separate documents.
func (m *maker) show(objects []run.Object) error {
	if m.output.format() == "json" && len(objects) > 1 {
		return m.output.print(m.printer, asObjects(objects), m.Out)
	}
	for _, o := range objects {
		if err := m.printer.PrintObj(o, m.Out); err != nil {
			return err
		}
	}
	return nil
}

// make creates the objects, prints them, and waits for the end of the Job if a flag asks for it.
func (m *maker) make(ctx context.Context, c *client, objects run.Objects) error {
	whole, cancel := toTheEnd(ctx)
	defer cancel()
	created, err := c.create(whole, objects, m.dryRun == "server")
	if err != nil {
		return err
	}
	if err := m.show(created); err != nil || m.dryRun == "server" {
		return err
	}
	return m.after(ctx, c, created[0])
}
