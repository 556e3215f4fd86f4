package run

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Options are what shall run. A pointer that is nil is a flag that was not given.
type Options struct {
	// Name is that of the Job or ScheduledJob.
	Name string
	// Namespace stands in the objects; "" leaves it to whoever creates them.
	Namespace string
	// Image is what the container is made of.
	Image string
	// Command is the program and its arguments. Without one, the image's own runs.
	Command []string

	// Completions is how many Pods have to succeed, each with an index of its own: 1 or more. Lists imply it.
	Completions *int32
	// Parallelism is how many Pods run at once: 1 or more. Without it, all completions run at once, up to DefaultParallelism.
	Parallelism *int32
	// PerCompletionEnv are the lists with one value for each index, all of one length.
	PerCompletionEnv []List
	// IndexVariable is the name of the variable in which a Pod finds its index; "" for none.
	IndexVariable string
	// Env are more variables, NAME=VALUE.
	Env []string

	// Restart is OnFailure or Never. Without it, Never where something of what belongs to it is asked for, else OnFailure.
	Restart string
	// BackoffLimit is how many failures the Job forgives: 0 or more. Without it Kubernetes' default holds.
	BackoffLimit *int32
	// BackoffSeconds is the delay after the first failed Pod: 1 to 600.
	BackoffSeconds *int32
	// FailedPodsLimit is how many failed Pods are kept: 0 to 1000.
	FailedPodsLimit *int32

	// RunAt is a time (RFC 3339) or a schedule; "" is at once.
	RunAt string
	// TimeZone is the IANA name of the schedule's zone; "" is UTC.
	TimeZone string

	// Suffix ends the name of the ConfigMap. It is another one each time: the ConfigMap of a Job that was deleted a moment ago
	// may still be there.
	Suffix string
}

const (
	// DefaultParallelism is how many Pods run at once at most where nobody says how many. The proposal runs its lists in
	// parallel, and knows no bound; a list of a thousand values should not fill a cluster unasked.
	DefaultParallelism = 10

	maxBackoffSeconds  = 600
	maxFailedPodsLimit = 1000
)

// Build makes the objects. Its error says what is wrong, and what to type instead.
func Build(o Options) (Objects, error) {
	lists, err := readLists(o.PerCompletionEnv)
	if err != nil {
		return Objects{}, err
	}
	if err := o.implyCompletions(lists); err != nil {
		return Objects{}, err
	}
	o.implyRestart()
	for _, check := range []func() error{o.checkNumbers, o.checkName, o.checkImage, o.checkRestart, func() error { return o.checkVariables(lists) }, o.checkCommand} {
		if err := check(); err != nil {
			return Objects{}, err
		}
	}
	at, err := o.when()
	if err != nil {
		return Objects{}, err
	}
	return Objects{Owner: o.owner(at, lists), Parameters: o.parameters(lists), Notes: o.notes(lists)}, nil
}

// implyCompletions sets completions where the lists say how many, and how many run at once.
func (o *Options) implyCompletions(lists []list) error {
	if len(lists) > 0 {
		length := int32(len(lists[0].values)) //nolint:gosec // a ConfigMap holds a million bytes
		switch {
		case o.Completions == nil:
			o.Completions = &length
		case *o.Completions != length:
			return fmt.Errorf("--completions=%d, but the list %s has %s: leave out --completions, which the list implies", *o.Completions, lists[0].key, countOf(int(length)))
		}
	}
	if o.Parallelism == nil && o.Completions != nil {
		o.Parallelism = new(min(*o.Completions, DefaultParallelism))
	}
	if o.IndexVariable != "" && o.Completions == nil {
		return fmt.Errorf("--completion-index-var-name=%s, but the Job has no indexes: add --completions=N, or a --per-completion-env", o.IndexVariable)
	}
	return nil
}

// implyRestart follows the proposal, where jobs are restarted in place unless the user says otherwise. What is counted by
// Pods needs Pods that fail.
func (o *Options) implyRestart() {
	switch {
	case o.Restart != "":
	case o.BackoffSeconds != nil || o.FailedPodsLimit != nil:
		o.Restart = string(corev1.RestartPolicyNever)
	default:
		o.Restart = string(corev1.RestartPolicyOnFailure)
	}
}

func (o *Options) checkNumbers() error {
	for _, n := range []struct {
		flag      string
		value     *int32
		low, high int32 // no upper bound of ours where high is 0
		says      string
	}{
		{"completions", o.Completions, 1, 0, "1 or more: how many Pods have to succeed"},
		{"parallelism", o.Parallelism, 1, 0, "1 or more: how many Pods run at once"},
		{"backoff-limit", o.BackoffLimit, 0, 0, "0 or more: how many failures are forgiven"},
		{"backoff-seconds", o.BackoffSeconds, 1, maxBackoffSeconds, "1 to 600 seconds: the delay after the first failed Pod"},
		{"failed-pods-limit", o.FailedPodsLimit, 0, maxFailedPodsLimit, "0 to 1000: how many failed Pods are kept"},
	} {
		if n.value != nil && (*n.value < n.low || n.high > 0 && *n.value > n.high) {
			return fmt.Errorf("--%s=%d is none: write %s", n.flag, *n.value, n.says)
		}
	}
	return nil
}

// The longest names: that of a Job becomes a label's value, that of one of its Pods a host name, and a ScheduledJob's Jobs
// have a name that is 11 longer than its own.
const (
	longestLabel        = validation.DNS1123LabelMaxLength
	longestScheduledJob = 52
)

// CheckName refuses what cannot be the name of a Job, one with indexes where completions is not nil. Its error says why.
func CheckName(name string, completions *int32) error {
	return (&Options{Name: name, Completions: completions}).checkName()
}

func (o *Options) checkName() error {
	if o.Name == "" {
		return fmt.Errorf("there is no name: write it first, as in: run NAME --image=%s", or(o.Image, "IMAGE"))
	}
	if problems := validation.IsDNS1123Subdomain(o.Name); len(problems) > 0 {
		return fmt.Errorf("%q cannot be a name: write small letters, digits and -, as in my-job-1", o.Name)
	}
	longest, why := longestLabel, "a Job's name becomes a label"
	if o.Completions != nil {
		longest -= len(fmt.Sprintf("-%d", *o.Completions-1))
		why = "with its index it becomes a host name"
		if strings.Contains(o.Name, ".") {
			return fmt.Errorf("%q cannot be the name of a Job with completions: %s, so write it without dots", o.Name, why)
		}
	}
	if o.RunAt != "" {
		// The API server's own check of the Jobs' names comes too late for the user: when they are due.
		longest, why = min(longestScheduledJob, longest-(longestLabel-longestScheduledJob)), "the names of its Jobs are longer"
	}
	if len(o.Name) > longest {
		return fmt.Errorf("the name %q has %d characters, and may have %d: %s; choose a shorter one", o.Name, len(o.Name), longest, why)
	}
	return nil
}

func (o *Options) checkImage() error {
	switch {
	case o.Image == "":
		return fmt.Errorf("there is no image: add --image=IMAGE, as in --image=busybox")
	case strings.ContainsFunc(o.Image, isBlankOrControl):
		return fmt.Errorf("--image=%q has a blank in it: write the name alone, as in --image=busybox", o.Image)
	}
	return nil
}

func (o *Options) checkRestart() error {
	switch o.Restart {
	case string(corev1.RestartPolicyOnFailure), string(corev1.RestartPolicyNever):
	case string(corev1.RestartPolicyAlways):
		return fmt.Errorf("--restart=Always is for what never ends, and a Job's Pods end: write --restart=OnFailure or --restart=Never; for a server, kubectl create deployment")
	default:
		i := slices.IndexFunc([]string{"OnFailure", "Never"}, func(s string) bool { return strings.EqualFold(s, o.Restart) })
		if i >= 0 {
			return fmt.Errorf("--restart=%s is none: write --restart=%s", o.Restart, []string{"OnFailure", "Never"}[i])
		}
		return fmt.Errorf("--restart=%s is none: write --restart=OnFailure, which restarts a container in its Pod, or --restart=Never, where a new Pod comes", o.Restart)
	}
	if o.Restart == string(corev1.RestartPolicyOnFailure) {
		const about = "--%s is about failed Pods, and with --restart=OnFailure containers are restarted in their Pods: write --restart=Never"
		switch {
		case o.BackoffSeconds != nil:
			return fmt.Errorf(about, "backoff-seconds")
		case o.FailedPodsLimit != nil:
			return fmt.Errorf(about, "failed-pods-limit")
		}
	}
	return nil
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
