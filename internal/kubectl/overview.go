package kubectl

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/kubectl/overview"
	"github.com/jobstream/jobstream/internal/progress"
	"github.com/jobstream/jobstream/internal/progress/terminal"
	"github.com/jobstream/jobstream/internal/zone"
)

const (
	// screenful is the number of objects shown if there is no terminal to measure.
	screenful = 20
	// furniture is the number of lines that titles, column headers and the user's prompt take.
	furniture = 14
	leastRows = 6
)

// overviewCommand is "jobstream" alone, with its flags.
type overviewCommand struct {
	*tool
	selector string
	all      bool
	output   *output
}

func (o *overviewCommand) flags(c *cobra.Command) {
	f := c.Flags()
	f.SortFlags = false
	f.StringVarP(&o.selector, "selector", "l", "", "`labels` of the Jobs and ScheduledJobs, such as app=shop")
	f.BoolVarP(&o.all, "all-namespaces", "A", false, "show all namespaces")
	o.output = newOutput("", wide)
	o.output.addTo(c)
}

func (o *overviewCommand) run(ctx context.Context) error {
	printer, err := o.output.objects()
	if err != nil {
		return err
	}
	c, err := o.connect()
	if err != nil {
		return err
	}
	if o.all {
		c.namespace = metav1.NamespaceAll
	}
	sum := &overview.Overview{Now: time.Now(), Namespaces: o.all}
	var objects []runtime.Object
	err = c.eachJob(ctx, o.selector, func(j *batchv1.Job) {
		sum.SawJob(j)
		if printer != nil && overview.Managed(j) {
			j.APIVersion, j.Kind = batchv1.SchemeGroupVersion.String(), jobKind
			objects = append(objects, j)
		}
	})
	if err != nil {
		return c.answered("cannot list the Jobs", err)
	}
	missing := c.eachScheduledJob(ctx, o.selector, func(s *v1alpha1.ScheduledJob) {
		sum.SawScheduledJob(s, zone.Load)
		if printer != nil {
			s.APIVersion, s.Kind = v1alpha1.GroupVersion.String(), v1alpha1.ScheduledJobKind
			objects = append(objects, s)
		}
	})
	unknown := apierrors.IsNotFound(missing)
	if printer != nil {
		err = o.output.print(printer, objects, o.Out)
	} else {
		err = o.show(c, sum, unknown)
	}
	if missing != nil && !unknown {
		return c.answered("cannot list the ScheduledJobs", missing)
	}
	return err
}

// show prints the overview for people.
func (o *overviewCommand) show(c *client, sum *overview.Overview, unknown bool) error {
	rows, style := o.room()
	var b bytes.Buffer
	where := ""
	if !o.all {
		where = " in the namespace " + c.namespace
	}
	switch {
	case sum.Empty() && o.selector != "":
		fmt.Fprintf(&b, "no Job of jobstream and no ScheduledJob%s has the labels %s\n", where, o.selector)
	case sum.Empty():
		fmt.Fprintf(&b, "no Jobs yet%s: kubectl jobstream run NAME --image=IMAGE -- COMMAND makes one\n", where)
	default:
		for i, s := range sum.Sections(rows) {
			if i > 0 {
				b.WriteByte('\n')
			}
			if err := writeSection(&b, s); err != nil {
				return err
			}
		}
	}
	if unknown {
		fmt.Fprint(&b, "\nThis cluster does not know ScheduledJobs: install them with: kubectl apply -k deploy/crd\n")
	}
	for line := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(o.Out, style.Fit(strings.TrimSuffix(line, "\n"))); err != nil {
			return err
		}
	}
	return nil
}

func writeSection(out io.Writer, s overview.Section) error {
	fmt.Fprintln(out, s.Title)
	if len(s.Rows) > 0 {
		table := newTable(out, s.Columns...)
		for _, cells := range s.Rows {
			table.row(cells...)
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	if s.More != "" {
		fmt.Fprintf(out, "%s (-o wide shows all)\n", s.More)
	}
	return nil
}

// room returns how many objects to show, 0 for all, and the style that their lines have to fit.
func (o *overviewCommand) room() (rows int, style progress.Style) {
	if o.output.format() == wide {
		return 0, progress.Style{Blocks: true}
	}
	if s := terminal.New(o.Out); s.Live {
		style = s.Style()
		return max(leastRows, style.Height-furniture), style
	}
	return screenful, progress.Style{Blocks: true}
}

// eachJob calls tell for each Job of the namespace that the selector selects, page by page.
func (c *client) eachJob(ctx context.Context, selector string, tell func(*batchv1.Job)) error {
	p := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return c.BatchV1().Jobs(c.namespace).List(ctx, o)
	})
	return p.EachListItem(ctx, metav1.ListOptions{LabelSelector: selector}, func(o runtime.Object) error {
		tell(o.(*batchv1.Job))
		return nil
	})
}

// eachScheduledJob is eachJob for ScheduledJobs. The error is NotFound if the cluster does not have the kind.
func (c *client) eachScheduledJob(ctx context.Context, selector string, tell func(*v1alpha1.ScheduledJob)) error {
	p := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return c.scheduled.list(ctx, c.namespace, o)
	})
	return p.EachListItem(ctx, metav1.ListOptions{LabelSelector: selector}, func(o runtime.Object) error {
		tell(o.(*v1alpha1.ScheduledJob))
		return nil
	})
}
