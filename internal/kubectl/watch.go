package kubectl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/internal/progress"
)

// watchCommand is "watch" with its flags.
type watchCommand struct {
	*tool
	names    []string
	selector string
	all      bool
	timeout  time.Duration
}

func newWatch(t *tool) *cobra.Command {
	w := &watchCommand{tool: t}
	c := &cobra.Command{
		Use:   "watch [JOB...] [flags]",
		Short: "See Jobs run",
		Long: `See Jobs run: how far they are, how fast, and which indexes have failed.

With names, until those Jobs have ended. Without, all Jobs of the namespace that have not ended and those that come,
until Ctrl-C. If standard output is not a terminal, each change is printed as a line.`,
		Example: `  # One Job until it has ended
  kubectl jobstream watch render

  # All of the namespace, those with a label, those of the cluster
  kubectl jobstream watch
  kubectl jobstream watch -l app=render
  kubectl jobstream watch -A`,
		Args: func(_ *cobra.Command, args []string) error {
			w.names = jobNames(args)
			return w.check()
		},
		RunE: func(c *cobra.Command, _ []string) error { return w.run(c.Context()) },
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVarP(&w.selector, "selector", "l", "", "`labels` of the Jobs, in the syntax of kubectl get")
	f.BoolVarP(&w.all, "all-namespaces", "A", false, "Jobs of all namespaces")
	f.DurationVar(&w.timeout, "timeout", 0, "`time` after which it ends with exit code 124, such as 5m (default: never)")
	return c
}

// check refuses contradictory flags.
func (w *watchCommand) check() error {
	switch {
	case len(w.names) > 0 && w.all:
		return usage{errors.New("a name belongs to one namespace: leave out --all-namespaces, or the names")}
	case len(w.names) > 0 && w.selector != "":
		return usage{errors.New("--selector selects the Jobs: leave it out, or the names")}
	case w.timeout < 0:
		return usage{fmt.Errorf("--timeout=%v is in the past: write a time such as 5m", w.timeout)}
	}
	return nil
}

func (w *watchCommand) run(ctx context.Context) error {
	c, err := w.connect()
	if err != nil {
		return err
	}
	if w.all {
		c.namespace = metav1.NamespaceAll
	}
	if w.timeout > 0 {
		var cancel func()
		ctx, cancel = context.WithTimeoutCause(ctx, w.timeout, exit{fmt.Errorf("%v have passed", w.timeout), ExitTimeout})
		defer cancel()
	}
	v := newView(w.Out, true)
	defer v.Close()
	s := w.jobs(c, v)
	defer v.followPods(ctx, c, s.podOptions())()
	err = c.followJobs(ctx, &s.someJobs)
	switch {
	case errors.Is(ctx.Err(), context.Canceled) && len(w.names) == 0:
		return nil // Ctrl-C is the only way to end it
	case errors.Is(ctx.Err(), context.Canceled):
		return exit{errors.New("interrupted: the Jobs go on"), ExitInterrupted}
	case err != nil:
		return err
	case len(s.deleted) > 0:
		return fmt.Errorf("deleted before its end: %s", strings.Join(s.deleted, ", "))
	}
	return nil
}

// shownJobs are the Jobs on the screen.
type shownJobs struct {
	someJobs
	shown   map[types.UID]bool // whether each has ended
	deleted []string
}

func (w *watchCommand) jobs(c *client, v *view) *shownJobs {
	s := &shownJobs{shown: map[types.UID]bool{}}
	begun := false
	s.someJobs = someJobs{names: w.names, selector: w.selector,
		saw: func(j *batchv1.Job) {
			if _, known := s.shown[j.UID]; !known && !begun && len(w.names) == 0 && ended(j) != nil {
				return // it had ended before, and was not asked for by name
			}
			s.shown[j.UID] = ended(j) != nil
			v.Show(j)
		},
		gone: func(j *batchv1.Job) {
			over, known := s.shown[j.UID]
			switch {
			case !known || over && len(w.names) > 0:
			case len(w.names) > 0:
				s.shown[j.UID] = true
				s.deleted = append(s.deleted, j.Name)
				v.see(func(b *progress.Board) { b.JobGone(j.UID) })
			default:
				delete(s.shown, j.UID)
				v.see(func(b *progress.Board) { b.Forget(j.UID) })
				if !over {
					v.Note(fmt.Sprintf("job.batch/%s was deleted", j.Name))
				}
			}
		},
		enough: func() bool {
			if !begun && len(s.shown) == 0 && len(w.names) == 0 {
				v.Note("no Job is unfinished; waiting for one, until Ctrl-C")
			}
			begun = true
			if len(w.names) == 0 {
				return false
			}
			for _, over := range s.shown {
				if !over {
					return false
				}
			}
			return true
		},
		lost: func(err error) {
			v.Note(fmt.Sprintf("warning: %v; trying again", c.unreachable("cannot see the Jobs", err)))
		},
	}
	return s
}
