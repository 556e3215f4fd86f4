package kubectl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

// The kinds of Kubernetes' own that commands are about.
const (
	jobKind     = "Job"
	cronJobKind = "CronJob"
)

// namesOfKinds are how users may write the kinds that commands are about.
var namesOfKinds = map[string][]string{
	jobKind:                   {"job", "jobs", "job.batch", "jobs.batch"},
	cronJobKind:               cronJobNames,
	v1alpha1.ScheduledJobKind: scheduledJobNames,
}

// named is an object that the user names; kind is "" where only its name was given.
type named struct{ kind, name string }

// kindsAndNames takes apart what the user has typed: NAME or KIND/NAME, of one of the kinds.
func kindsAndNames(args []string, kinds ...string) (all []named, err error) {
	for _, arg := range args {
		word, name, ok := strings.Cut(arg, "/")
		if !ok {
			all = append(all, named{"", arg})
			continue
		}
		kind, known := kindCalled(word, kinds)
		if !known || name == "" {
			return nil, fmt.Errorf("%s: write %s", arg, strings.Join(forms(kinds), " or "))
		}
		all = append(all, named{kind, name})
	}
	return all, nil
}

// kindCalled is the kind that the user calls so.
func kindCalled(word string, kinds []string) (kind string, known bool) {
	for _, kind := range kinds {
		if slices.Contains(namesOfKinds[kind], strings.ToLower(word)) {
			return kind, true
		}
	}
	return "", false
}

// forms are what may be written for objects of the kinds.
func forms(kinds []string) (all []string) {
	for _, kind := range kinds {
		all = append(all, strings.ToLower(kind)+"/NAME")
	}
	return all
}

// plurals are how users may write all objects of the kinds.
func plurals(kinds []string) (all []string) {
	for _, kind := range kinds {
		all = append(all, strings.ToLower(kind)+"s")
	}
	return all
}
