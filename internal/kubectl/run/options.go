package run

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Options describe what to run. A nil pointer means that the flag was not given.
type Options struct {
	// Name is the name of the Job or ScheduledJob.
	Name string
	// Namespace is written into the objects; "" leaves it to the caller.
	Namespace string
	// Image is the container's image.
	Image string
	// Command is the program and its arguments; empty runs the image's own.
	Command []string

	// Completions is the number of Pods that must succeed, each with an index of its own: 1 or more. Lists imply it.
	Completions *int32
	// Parallelism is how many Pods run at once: 1 or more. Without it, all completions run at once, up to DefaultParallelism.
	Parallelism *int32
	// PerCompletionEnv are the lists with one value for each index, all of the same length.
	PerCompletionEnv []List
	// IndexVariable is the name of the variable that holds a Pod's index; "" for none.
	IndexVariable string
	// Env are more variables, NAME=VALUE.
	Env []string

	// Restart is OnFailure or Never. The default is OnFailure, or Never if another option requires it.
	Restart string
	// BackoffLimit is the number of failures that the Job tolerates: 0 or more. Without it, Kubernetes' default applies.
	BackoffLimit *int32
	// BackoffSeconds is the delay after the first failed Pod, in seconds: 1 to 600.
	BackoffSeconds *int32
	// FailedPodsLimit is the number of failed Pods to keep: 0 to 1000.
	FailedPodsLimit *int32

	// RunAt is a time (RFC 3339) or a schedule; "" means now.
	RunAt string
	// TimeZone is the IANA name of the schedule's zone; "" means UTC.
	TimeZone string

	// Suffix ends the name of the ConfigMap. It differs at each call, because the ConfigMap of a Job deleted a moment ago may still
	// exist.
	Suffix string
}

const (
	// DefaultParallelism limits how many Pods run at once by default. The proposal runs its lists in parallel without a limit; a
	// list of a thousand values should not fill a cluster unasked.
	DefaultParallelism = 10

	maxBackoffSeconds  = 600
	maxFailedPodsLimit = 1000
)

// Build builds the objects. The error tells the user what is wrong, and what to type instead.
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

// implyCompletions derives completions from the length of the lists, and the default parallelism from both.
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

// implyRestart follows the proposal: containers restart in place unless the user chooses otherwise. Options that count Pods need
// Pods that fail.
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
		low, high int32 // high 0 means no upper bound
		says      string
	}{
		{"completions", o.Completions, 1, 0, "1 or more: how many Pods must succeed"},
		{"parallelism", o.Parallelism, 1, 0, "1 or more: how many Pods run at once"},
		{"backoff-limit", o.BackoffLimit, 0, 0, "0 or more: how many failures are tolerated"},
		{"backoff-seconds", o.BackoffSeconds, 1, maxBackoffSeconds, "1 to 600 seconds: the delay after the first failed Pod"},
		{"failed-pods-limit", o.FailedPodsLimit, 0, maxFailedPodsLimit, "0 to 1000: how many failed Pods are kept"},
	} {
		if n.value != nil && (*n.value < n.low || n.high > 0 && *n.value > n.high) {
			return fmt.Errorf("--%s=%d is none: write %s", n.flag, *n.value, n.says)
		}
	}
	return nil
}

// The longest names: a Job's name becomes the value of a label, its Pods' names become host names, and the names of a
// ScheduledJob's Jobs are 11 characters longer than its own.
const (
	longestLabel        = validation.DNS1123LabelMaxLength
	longestScheduledJob = 52
)

// CheckName refuses an invalid name of a Job; completions is nil for a Job without indexes. The error has the reason.
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
		why = "name and index form a host name"
		if strings.Contains(o.Name, ".") {
			return fmt.Errorf("%q cannot be the name of a Job with completions: %s, so write it without dots", o.Name, why)
		}
	}
	if o.RunAt != "" {
		// The API server checks the Jobs' names only when they are due, which is too late for the user.
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
		return fmt.Errorf("--restart=Always is for programs that never end, and a Job's Pods end: write --restart=OnFailure or --restart=Never; for a server use kubectl create deployment")
	default:
		i := slices.IndexFunc([]string{"OnFailure", "Never"}, func(s string) bool { return strings.EqualFold(s, o.Restart) })
		if i >= 0 {
			return fmt.Errorf("--restart=%s is none: write --restart=%s", o.Restart, []string{"OnFailure", "Never"}[i])
		}
		return fmt.Errorf("--restart=%s is no policy: write --restart=OnFailure, which restarts a container in its Pod, or --restart=Never, which creates a new Pod", o.Restart)
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
