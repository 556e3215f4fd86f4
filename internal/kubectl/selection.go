package kubectl

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
)

// selection holds the shared flags of the commands that change objects: which objects, and --dry-run.
type selection struct {
	*tool
	kinds            []string // kinds that the command accepts; a name without a kind belongs to the first
	selector, dryRun string
	all              bool
	output           *output
	printer          printers.ResourcePrinter // nil without -o
	shown            []runtime.Object
	named            int
}

func newSelection(t *tool, kinds ...string) *selection {
	return &selection{tool: t, kinds: kinds, output: newOutput("")}
}

func (s *selection) flags(command *cobra.Command) {
	f := command.Flags()
	f.SortFlags = false
	f.StringVarP(&s.selector, "selector", "l", "", "`labels` of the objects, such as app=shop")
	f.BoolVarP(&s.all, "all-namespaces", "A", false, "objects of all namespaces, limited by -l if given")
	f.StringVar(&s.dryRun, "dry-run", "none", "`how`: none, or server (ask the API server whether it would work, change nothing)")
	s.output.addTo(command)
}

// check refuses contradictory flags before any request. It returns the named objects, or the kinds of which all objects are
// meant.
func (s *selection) check(args []string) (names []named, kinds []string, err error) {
	switch {
	case s.dryRun != "none" && s.dryRun != "server":
		return nil, nil, fmt.Errorf("--dry-run=%s: write none or server", s.dryRun)
	case len(args) == 0 && s.selector == "" && !s.all:
		return nil, nil, fmt.Errorf("nothing is named: write NAME, %s, -l SELECTOR, or -A for all of the cluster", strings.Join(forms(s.kinds), ", "))
	case s.selector == "" && !s.all:
		names, err = kindsAndNames(args, s.kinds...)
		return names, nil, err
	}
	for _, arg := range args {
		kind, known := kindCalled(arg, s.kinds)
		if !known {
			return nil, nil, fmt.Errorf("%s: names do not go together with -l and -A: leave one of them out, or write %s", arg, strings.Join(plurals(s.kinds), " or "))
		}
		kinds = append(kinds, kind)
	}
	if len(kinds) == 0 {
		kinds = s.kinds
	}
	return nil, kinds, nil
}

// find gets the objects from the API server.
func (s *selection) find(ctx context.Context, args []string) (c *client, found []target, err error) {
	names, kinds, err := s.check(args)
	if err != nil {
		return nil, nil, usage{err}
	}
	s.named = len(names)
	if s.printer, err = s.output.objects(); err != nil {
		return nil, nil, err
	}
	if c, err = s.connect(); err != nil {
		return nil, nil, err
	}
	if names != nil {
		if len(s.kinds) == 1 {
			for i := range names {
				names[i].kind = s.kinds[0]
			}
		}
		found, err = c.targetsNamed(ctx, names)
	} else {
		namespace := c.namespace
		if s.all {
			namespace = metav1.NamespaceAll
		}
		found, err = c.targetsSelected(ctx, kinds, namespace, s.selector)
	}
	if err == nil && len(found) == 0 {
		fmt.Fprintf(s.ErrOut, "warning: nothing is selected: -l and -A choose among %s\n", s.selectable())
	}
	return c, found, err
}

func (s *selection) selectable() string {
	if len(s.kinds) == 1 {
		return "unfinished Jobs of jobstream"
	}
	return "ScheduledJobs and unfinished Jobs of jobstream"
}

// report prints what was done to an object, or keeps the object for the output of -o.
func (s *selection) report(o target, format string, args ...any) {
	if s.printer == nil {
		fmt.Fprintf(s.Out, format+"\n", args...)
	}
	s.shown = append(s.shown, o.object())
}

// unchanged handles an object that is already in the wanted state: the caller has printed so for people, and with -o it is
// printed like any other.
func (s *selection) unchanged(o target) error {
	s.shown = append(s.shown, o.object())
	return nil
}

// each calls one for every object, even after a failure. With -o it then prints the reported objects: the object itself if one
// was named, else a List.
func (s *selection) each(ctx context.Context, found []target, one func(target) error) error {
	err := s.through(ctx, found, one)
	switch {
	case s.printer == nil:
		return err
	case s.named == 1 && len(s.shown) == 1:
		return errors.Join(err, s.printer.PrintObj(s.shown[0], s.Out))
	}
	return errors.Join(err, s.output.print(s.printer, s.shown, s.Out))
}

// gone reports whether err is that an object which -l or -A selected is there no more. Then nothing is left to do, as for "kubectl
// delete --all". An object that the user has named is missed.
func (s *selection) gone(err error) bool {
	return apierrors.IsNotFound(err) && (s.all || s.selector != "")
}

// through is each without the final output.
func (s *selection) through(ctx context.Context, found []target, one func(target) error) error {
	var failed []error
	for _, o := range found {
		if err := one(o); err != nil {
			failed = append(failed, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	if len(failed) < 2 {
		return errors.Join(failed...)
	}
	for _, err := range failed {
		fmt.Fprintln(s.ErrOut, "error:", err)
	}
	return fmt.Errorf("%d of %d were not changed", len(failed), len(found))
}

// patchOptions returns the options of a request that changes an object or, in a dry run, does not, and the matching suffix of the
// message.
func (s *selection) patchOptions() (o metav1.PatchOptions, mode string) {
	o = metav1.PatchOptions{FieldManager: fieldManager}
	if s.dryRun == "server" {
		o.DryRun, mode = []string{metav1.DryRunAll}, " (server dry run)"
	}
	return o, mode
}
