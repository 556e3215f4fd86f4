package kubectl

import (
	"context"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// someJobs selects the Jobs of a command, and receives their changes.
type someJobs struct {
	// names are the Jobs' names; empty means all that the selector selects.
	names    []string
	selector string
	// saw receives a Job each time it has changed, gone receives it when it was deleted. A Job that reuses the name of a deleted one
	// is a different Job: with names, saw does not receive it.
	saw, gone func(*batchv1.Job)
	// enough reports, after each change, whether the command has seen all it needs.
	enough func() bool
	// lost receives the reason when the connection is lost; followJobs retries. At the beginning it returns an error instead.
	lost func(error)
}

// jobNames also accepts names as kubectl prints them: job.batch/pi.
func jobNames(args []string) []string {
	names := make([]string, len(args))
	for i, arg := range args {
		names[i] = arg
		if kind, name, is := strings.Cut(arg, "/"); is && (kind == "job" || kind == "jobs" || kind == "job.batch") {
			names[i] = name
		}
	}
	return names
}

// options select the Jobs as precisely as the API server can.
func (s *someJobs) options() metav1.ListOptions {
	o := metav1.ListOptions{LabelSelector: s.selector}
	if len(s.names) == 1 {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, s.names[0]).String()
	}
	return o
}

// podOptions select their Pods as precisely as the API server can.
func (s *someJobs) podOptions() metav1.ListOptions {
	if len(s.names) > 0 {
		return metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + " in (" + strings.Join(s.names, ",") + ")"}
	}
	return metav1.ListOptions{LabelSelector: batchv1.JobNameLabel}
}

// followJobs follows the Jobs until enough reports true or ctx ends. A name without a Job at the beginning is an error.
func (c *client) followJobs(ctx context.Context, s *someJobs) error {
	known := map[types.UID]*batchv1.Job{}
	first := map[string]types.UID{} // the UID that each given name had first
	see := func(j *batchv1.Job) {
		if len(s.names) > 0 {
			if !slices.Contains(s.names, j.Name) {
				return
			}
			if uid, had := first[j.Name]; had && uid != j.UID {
				return
			}
			first[j.Name] = j.UID
		}
		known[j.UID] = j
		s.saw(j)
	}
	forget := func(j *batchv1.Job) {
		if known[j.UID] != nil {
			delete(known, j.UID)
			s.gone(j)
		}
	}
	var wrong error
	begun := false
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	err := c.jobs().follow(ctx, s.options(), eyes[*batchv1.Job]{
		listed: func(jobs []*batchv1.Job) bool {
			there := map[types.UID]bool{}
			for _, j := range jobs {
				there[j.UID] = true
				see(j)
			}
			for uid, j := range known {
				if !there[uid] {
					forget(j)
				}
			}
			for _, name := range s.names {
				if _, found := first[name]; !found && !begun {
					wrong = noJob(name, c.namespace)
					return true
				}
			}
			begun = true
			return s.enough()
		},
		changed: func(how watch.EventType, j *batchv1.Job) bool {
			switch how {
			case watch.Added, watch.Modified:
				see(j)
			case watch.Deleted:
				forget(j)
			}
			return s.enough()
		},
		lost: func(err error) {
			if begun {
				s.lost(err)
				return
			}
			wrong = c.unreachable("cannot see the Jobs", err)
			giveUp()
		},
	})
	switch {
	case wrong != nil:
		return wrong
	case err != nil && hopeless(err):
		return c.unreachable("cannot see the Jobs", err)
	}
	return err
}

func noJob(name, namespace string) error {
	return fmt.Errorf("there is no Job %s in the namespace %s: kubectl get jobs -n %s lists those that there are", name, namespace, namespace)
}
