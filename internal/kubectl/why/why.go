// Package why explains what a Job or ScheduledJob waits for, why it did not run, or how it ended. It has no I/O and no clock: the
// caller reads the objects.
//
//	why.go         Answer, and the order of its findings
//	job.go         the causes that a Job's own object has
//	controller.go  which controller the Job belongs to, and whether that one does its work
//	refused.go     what the API server refuses: by a quota, a webhook, a policy, or because the template is wrong
//	pods.go        Pods that do not run, grouped by what they wait for
//	pod.go         what one Pod waits for, as the scheduler and the kubelet report it
//	leaving.go     deletions that wait for finalizers or for a node
//	ended.go       how a Job ended
//	suspended.go   who has suspended an object
//	schedule.go    the causes of a ScheduledJob
//	verdicts.go    why its latest nominal times got no Job, and how its last Job ended
//
// Most causes hide others: a Job without Pods has none that wait for an image. So each file reports all that it sees, in the
// order in which a user has to act, and Answer puts first what does not pass by itself.
package why

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/jobstream/jobstream/internal/finding"
	"github.com/jobstream/jobstream/internal/progress"
)

// Answer is the explanation of one object. All its texts are safe to print: nothing in them steers a terminal.
type Answer struct {
	// Kind is Job or ScheduledJob.
	Kind, Namespace, Name string
	UID                   types.UID
	// State is what the object does, in one word, such as Waiting or Suspended.
	State string
	// Progress is how far it is, in a few words.
	Progress string
	// Findings are the causes in the order of what to do first; there is always one. Check names the cause in a few words that stay
	// the same, Found is a sentence, Advice what to do. Fail does not pass until a user or an operator acts; Warn passes by itself, or
	// is a setting without effect; OK needs no action.
	Findings []finding.Finding
}

// longest is how much of a message is shown, in bytes: a kubelet or a webhook may write 32 kB.
const longest = 500

// findings collects the findings of one object.
type findings struct {
	kind, namespace, name string
	now                   time.Time
	all                   []finding.Finding
}

func (f *findings) fail(check, advice, format string, args ...any) {
	f.add(finding.Worry(check, finding.Fail, advice, format, args...))
}

func (f *findings) warn(check, advice, format string, args ...any) {
	f.add(finding.Worry(check, finding.Warn, advice, format, args...))
}

func (f *findings) good(check, format string, args ...any) {
	f.add(finding.Good(check, format, args...))
}

func (f *findings) add(all ...finding.Finding) { f.all = append(f.all, all...) }

// has reports whether there is a finding of that check.
func (f *findings) has(check string) bool {
	return slices.ContainsFunc(f.all, func(o finding.Finding) bool { return o.Check == check })
}

// holdUp reports whether something is found that keeps the object from going on.
func (f *findings) holdUp() bool {
	return slices.ContainsFunc(f.all, func(o finding.Finding) bool { return o.Level != finding.OK })
}

// sorted returns the findings with those first that do not pass by themselves; those of one level stay in order.
func (f *findings) sorted() []finding.Finding {
	slices.SortStableFunc(f.all, func(a, b finding.Finding) int { return int(b.Level) - int(a.Level) })
	for i := range f.all {
		f.all[i].Found, f.all[i].Advice = progress.Clean(f.all[i].Found, 4*longest), progress.Clean(f.all[i].Advice, 4*longest)
	}
	return f.all
}

// object returns the arguments by which kubectl finds the object, such as "job pi -n shop".
func (f *findings) object() string {
	return fmt.Sprintf("%s %s -n %s", f.kind, f.name, f.namespace)
}

// ago describes how long ago a time was, or for how long something has lasted since then.
func (f *findings) ago(at time.Time) string { return span(f.now.Sub(at)) }

// span describes a duration in at most two units.
func span(d time.Duration) string { return duration.HumanDuration(max(0, d)) }

// clean makes a text of another program safe to print, and shortens it.
func clean(text string) string {
	if len(text) > longest {
		return progress.Clean(text, longest) + "…"
	}
	return progress.Clean(text, longest)
}

// argument returns a name that another program has written for use in a command, which users copy: NAME if it cannot be the name of an
// object.
func argument(name string) string {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "NAME"
	}
	return name
}

// several returns "1 Pod" or "3 Pods".
func several(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
