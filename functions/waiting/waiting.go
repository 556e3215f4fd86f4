// Package waiting describes in one line what the Pods of a Job wait for.
package waiting

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/jobstream/jobstream/events"
)

// A user who may write the status of a Pod may put any words there: these limit what a Job shows of them.
const (
	mostReasons = 5
	mostMessage = 1024
)

// Unknown is the reason of Pods that have none: neither the scheduler nor the kubelet has looked at them yet.
const Unknown = "Unknown"

// FinalizersRemain is the reason of Pods whose deletion a finalizer holds. A Namespace that is being deleted has it, too.
const FinalizersRemain = "SomeFinalizersRemain"

// Pods are those that wait, by their reason: events.Pod.Waiting.
type Pods map[string]group

// group has the number of Pods, and the name of the one with the lowest serial: it stays the same for as long as that one waits.
type group struct {
	reason string
	n      int
	serial int
	name   string
}

// Add adds a Pod that waits.
func (all Pods) Add(p events.Pod) {
	reason := cmp.Or(p.Waiting, Unknown)
	if reason == "ErrImagePull" {
		reason = "ImagePullBackOff" // the kubelet shows the two in turn
	}
	g, also := all[reason]
	if !also || p.Serial < g.serial {
		g.serial, g.name = p.Serial, p.Name
	}
	g.reason, g.n = reason, g.n+1
	all[reason] = g
}

// Condition returns the reason that most of the Pods have, and a message of at most 1 KiB, such as
//
//	3 of 5 Pods wait: 2 ImagePullBackOff (pi-x7abc), 1 Unschedulable (pi-8kq2z)
//
// of is the number of all Pods of the Job. There must be Pods that wait.
func (all Pods) Condition(of int) (reason, message string) {
	groups := slices.SortedFunc(maps.Values(all), func(a, b group) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.reason, b.reason)) })
	total := 0
	for _, g := range groups {
		total += g.n
	}
	message = fmt.Sprintf("%d of %d Pods wait:", total, of)
	for i, g := range groups[:min(len(groups), mostReasons)] {
		one := fmt.Sprintf("%s %d %s (%s)", map[bool]string{true: ","}[i > 0], g.n, g.reason, g.name)
		if len(message)+len(one) > mostMessage {
			break
		}
		message += one
	}
	switch reason = groups[0].reason; {
	case strings.HasPrefix(reason, events.FinalizerPrefix):
		reason = FinalizersRemain
	case !unicode.IsLetter(rune(reason[0])): // a condition's reason begins with a letter
		reason = Unknown
	}
	return reason, message
}
