package kubectl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

// The built-in kinds that commands accept.
const (
	jobKind     = "Job"
	cronJobKind = "CronJob"
)

// namesOfKinds lists the accepted spellings of each kind.
var namesOfKinds = map[string][]string{
	jobKind:                   {"job", "jobs", "job.batch", "jobs.batch"},
	cronJobKind:               cronJobNames,
	v1alpha1.ScheduledJobKind: scheduledJobNames,
}

// named is an object on the command line; kind is "" if the user typed only the name.
type named struct{ kind, name string }

// kindsAndNames parses arguments of the form NAME or KIND/NAME, where KIND is one of the kinds.
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

// kindCalled returns the kind with that spelling.
func kindCalled(word string, kinds []string) (kind string, known bool) {
	for _, kind := range kinds {
		if slices.Contains(namesOfKinds[kind], strings.ToLower(word)) {
			return kind, true
		}
	}
	return "", false
}

// forms returns the accepted forms of an argument, for error messages.
func forms(kinds []string) (all []string) {
	for _, kind := range kinds {
		all = append(all, strings.ToLower(kind)+"/NAME")
	}
	return all
}

// plurals returns the spellings that mean all objects of the kinds.
func plurals(kinds []string) (all []string) {
	for _, kind := range kinds {
		all = append(all, strings.ToLower(kind)+"s")
	}
	return all
}
