package kubectl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/kubectl/convert"
	"github.com/jobstream/jobstream/internal/zone"
)

// asWritten is the -o format that keeps manifests as text, comments included.
const asWritten = "yaml"

// convertCommand is "convert" with its flags.
type convertCommand struct {
	*tool
	files            []string
	to, timeZone     string
	selector, dryRun string
	all              bool
	apply, suspend   bool
	settle           time.Duration
	output           *output
}

// The kinds that convert accepts, in all spellings that a user may write before a slash.
var (
	cronJobNames      = []string{"cronjob", "cronjobs", "cj", "cronjob.batch", "cronjobs.batch"}
	scheduledJobNames = []string{"scheduledjob", "scheduledjobs", "schedjob", "scheduledjob." + v1alpha1.Group, "scheduledjobs." + v1alpha1.Group}
)

func newConvert(t *tool) *cobra.Command {
	c := &convertCommand{tool: t, output: newOutput("", asWritten)}
	command := &cobra.Command{
		Use:   "convert {-f FILE | cronjob/NAME... | -l SELECTOR | -A}",
		Short: "Make ScheduledJobs of CronJobs, or the other way round, and hand over without losing a run",
		Long: `Make ScheduledJobs of CronJobs, or CronJobs of ScheduledJobs. The result goes to standard output and a report about each object,
with what changes in meaning, to standard error. What cannot be converted stays as it was, and the exit code is 1.

With --apply --suspend-originals it hands over in the cluster: each nominal time is run by one controller or by the other. If it is
interrupted, run the same command again.`,
		Example: `  # Manifests: comments and other kinds stay
  kubectl jobstream convert -f cronjobs.yaml > scheduledjobs.yaml

  # What Helm renders
  helm template shop ./chart | kubectl jobstream convert -f - | kubectl apply -f -

  # What would be different, for all CronJobs of the cluster
  kubectl jobstream convert -A > /dev/null

  # Hand over a namespace, and back
  kubectl jobstream convert --selector=app=shop --apply --suspend-originals
  kubectl jobstream convert --selector=app=shop --to=CronJob --apply --suspend-originals`,
		RunE: func(command *cobra.Command, args []string) error { return c.run(command.Context(), args) },
	}
	f := command.Flags()
	f.SortFlags = false
	f.StringArrayVarP(&c.files, "filename", "f", nil, "`file` with manifests; - is standard input; may be repeated")
	f.StringVar(&c.to, "to", v1alpha1.ScheduledJobKind, "`kind` to make: ScheduledJob or CronJob")
	f.BoolVarP(&c.all, "all-namespaces", "A", false, "objects of all namespaces")
	f.StringVarP(&c.selector, "selector", "l", "", "`labels` of the objects, such as app=shop")
	f.StringVar(&c.timeZone, "time-zone", "", "`zone` for CronJobs that name none: the one of their kube-controller-manager (default: UTC)")
	f.BoolVar(&c.apply, "apply", false, "create the result in the cluster instead of printing it")
	f.BoolVar(&c.suspend, "suspend-originals", false, "suspend what is converted, and let the result begin where it stopped")
	f.DurationVar(&c.settle, "settle", convert.DefaultSettle, "`time` for the built-in controller to finish what it has begun")
	f.StringVar(&c.dryRun, "dry-run", "none", "`how`: none, or server (with --apply: ask the API server whether it would work, change nothing)")
	c.output.addTo(command)
	return command
}

// check refuses contradictory flags before any request.
func (c *convertCommand) check(args []string) error {
	named := len(args) > 0 || c.all || c.selector != ""
	switch {
	case c.to != v1alpha1.ScheduledJobKind && c.to != "CronJob":
		return fmt.Errorf("--to=%s: write ScheduledJob or CronJob", c.to)
	case c.dryRun != "none" && c.dryRun != "server":
		return fmt.Errorf("--dry-run=%s: write none or server; without --apply nothing is changed anyway", c.dryRun)
	case len(c.files) == 0 && !named:
		return errors.New("there is nothing to convert: write -f FILE, cronjob/NAME, -l SELECTOR, or -A for all")
	case len(c.files) > 0 && named:
		return errors.New("manifests and objects of the cluster at once: write -f, or names, -l and -A")
	case len(args) > 0 && (c.all || c.selector != ""):
		return errors.New("names do not go together with -l and -A: leave one of them out")
	case len(c.files) > 0 && (c.apply || c.suspend):
		return errors.New("--apply is for objects of the cluster: pipe the manifests into kubectl apply -f -")
	case c.apply && !c.suspend && c.dryRun == "none":
		return errors.New("--apply alone would run everything twice: add --suspend-originals, or --dry-run=server")
	case c.apply && c.output.format() != "":
		return fmt.Errorf("--output=%s is for what is printed, and --apply makes it in the cluster: leave one of them out", c.output.format())
	case c.suspend && !c.apply:
		return errors.New("--suspend-originals alone would stop everything: add --apply")
	}
	if _, err := zone.Load(c.timeZone); err != nil {
		return fmt.Errorf("--time-zone: %w", err)
	}
	return nil
}

// run converts, and collects the output as one list of objects if -o asks for a format for scripts.
func (c *convertCommand) run(ctx context.Context, args []string) error {
	if err := c.check(args); err != nil {
		return usage{err}
	}
	printer, err := c.output.objects()
	if err != nil {
		return err
	}
	if printer == nil {
		return c.convert(ctx, args)
	}
	out, text := c.Out, &bytes.Buffer{}
	withText := *c.tool
	withText.Out = text
	c.tool = &withText
	if err = c.convert(ctx, args); usageError(err) {
		return err
	}
	objects, wrong := documents(text)
	if wrong != nil {
		return errors.Join(err, wrong)
	}
	return errors.Join(err, c.output.print(printer, objects, out))
}

// documents returns the objects of manifests.
func documents(text io.Reader) (all []runtime.Object, err error) {
	for decode := yaml.NewYAMLOrJSONDecoder(text, 4096); ; {
		o := &unstructured.Unstructured{}
		switch err := decode.Decode(&o.Object); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("these manifests cannot be read again: %w: leave out --output", err)
		case len(o.Object) > 0: // a document may consist of comments only
			all = append(all, o)
		}
	}
}

// usageError reports whether the command line is wrong.
func usageError(err error) bool { return errors.As(err, &usage{}) }

// convert runs the steps of "convert", in order.
func (c *convertCommand) convert(ctx context.Context, args []string) error {
	o := convert.Options{Now: time.Now(), TimeZone: c.timeZone}
	if len(c.files) > 0 {
		return c.manifests(o)
	}
	cl, err := c.connect()
	if err != nil {
		return err
	}
	names, err := c.names(args)
	if err != nil {
		return usage{err}
	}
	cut := convert.Cutover{Client: cl, Dynamic: cl.dynamic, Options: o, Settle: c.settle, DryRun: c.dryRun == "server",
		Say: func(format string, args ...any) { fmt.Fprintf(c.Out, format+"\n", args...) }}
	namespace := cl.namespace
	if c.all {
		namespace = metav1.NamespaceAll
	}
	if c.to == v1alpha1.ScheduledJobKind {
		return c.forward(ctx, cl, cut, namespace, names)
	}
	return c.back(ctx, cl, cut, namespace, names)
}

// manifests converts files.
func (c *convertCommand) manifests(o convert.Options) error {
	f := convert.Forward
	if c.to == "CronJob" {
		f = convert.Back
	}
	var all []convert.Report
	var ends bool // whether the output so far ends with a newline
	for i, file := range c.files {
		text, err := c.read(file)
		if err != nil {
			return err
		}
		out, reports, err := f(text, o)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if i > 0 && !ends {
			fmt.Fprintln(c.Out)
		}
		if i > 0 && !strings.HasPrefix(string(out), "---") {
			fmt.Fprintln(c.Out, "---")
		}
		if _, err := c.Out.Write(out); err != nil {
			return err
		}
		ends = len(out) == 0 || strings.HasSuffix(string(out), "\n")
		all = append(all, reports...)
	}
	return c.report(all)
}

func (c *convertCommand) read(file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(c.In)
	}
	return os.ReadFile(file)
}

// report prints the differences, and returns an error if an object was refused.
func (c *convertCommand) report(all []convert.Report) error {
	convert.Write(c.ErrOut, all)
	refused := 0
	for _, r := range all {
		if r.Refused() {
			refused++
		}
	}
	switch {
	case refused > 0:
		return fmt.Errorf("%d of %d cannot be converted: see the report for the reasons, and what to write instead", refused, len(all))
	case len(all) == 0:
		fmt.Fprintf(c.ErrOut, "warning: there is nothing to convert to a %s\n", c.to)
	}
	return nil
}

// names strips the kind from the arguments.
func (c *convertCommand) names(args []string) (all []string, err error) {
	mine, other := cronJobNames, scheduledJobNames
	if c.to == "CronJob" {
		mine, other = other, mine
	}
	for _, arg := range args {
		kind, name, ok := strings.Cut(arg, "/")
		switch {
		case !ok:
			name = arg
		case slices.Contains(other, strings.ToLower(kind)):
			return nil, fmt.Errorf("%s: to make a %s, name a %s", arg, c.to, mine[0])
		case !slices.Contains(mine, strings.ToLower(kind)) || name == "":
			return nil, fmt.Errorf("%s: write %s/NAME", arg, mine[0])
		}
		all = append(all, name)
	}
	return all, nil
}

func (c *convertCommand) forward(ctx context.Context, cl *client, cut convert.Cutover, namespace string, names []string) error {
	list, err := cl.BatchV1().CronJobs(namespace).List(ctx, metav1.ListOptions{LabelSelector: c.selector})
	if err != nil {
		return cl.unreachable("cannot list the CronJobs", err)
	}
	items, err := pick(list.Items, names, namespace, "CronJob", func(j *batchv1.CronJob) string { return j.Name })
	if err != nil {
		return err
	}
	if !c.apply {
		return printConverted(c, items, func(j *batchv1.CronJob) { j.APIVersion, j.Kind = "batch/v1", "CronJob" }, convert.Forward, cut.Options)
	}
	reports, err := cut.TakeOver(ctx, items)
	return errors.Join(c.report(reports), err)
}

func (c *convertCommand) back(ctx context.Context, cl *client, cut convert.Cutover, namespace string, names []string) error {
	list, err := cl.scheduled.list(ctx, namespace, metav1.ListOptions{LabelSelector: c.selector})
	if err != nil {
		return cl.unreachable("cannot list the ScheduledJobs", err)
	}
	items, err := pick(list.Items, names, namespace, v1alpha1.ScheduledJobKind, func(j *v1alpha1.ScheduledJob) string { return j.Name })
	if err != nil {
		return err
	}
	if !c.apply {
		return printConverted(c, items, func(j *v1alpha1.ScheduledJob) {
			j.APIVersion, j.Kind = v1alpha1.GroupVersion.String(), v1alpha1.ScheduledJobKind
		}, convert.Back, cut.Options)
	}
	reports, err := cut.HandBack(ctx, items)
	return errors.Join(c.report(reports), err)
}

// pick returns the items with the given names, or all items if no name is given.
func pick[T any](items []T, names []string, namespace, kind string, nameOf func(*T) string) (picked []T, err error) {
	if len(names) == 0 {
		return items, nil
	}
	for _, name := range names {
		i := slices.IndexFunc(items, func(o T) bool { return nameOf(&o) == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no %s %s in the namespace %s: -n chooses another", kind, name, namespace)
		}
		picked = append(picked, items[i])
	}
	return picked, nil
}

// printConverted prints objects of the cluster as manifests of the other kind.
func printConverted[T any](c *convertCommand, items []T, typed func(*T), f func([]byte, convert.Options) ([]byte, []convert.Report, error), o convert.Options) error {
	var all []convert.Report
	for i := range items {
		typed(&items[i])
		text, err := convert.Manifest(&items[i])
		if err != nil {
			return err
		}
		out, reports, err := f(text, o)
		if err != nil {
			return err
		}
		all = append(all, reports...)
		if len(reports) == 1 && reports[0].Refused() {
			continue
		}
		fmt.Fprintf(c.Out, "---\n%s", out)
	}
	return c.report(all)
}
