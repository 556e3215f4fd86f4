package waiting_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/waiting"
)

// TestCondition: the reason is that of most Pods, and one Pod of each is named, the oldest.
func TestCondition(t *testing.T) {
	pod := func(serial int, reason string) events.Pod {
		return events.Pod{Name: fmt.Sprintf("pi-%d", serial), Serial: serial, Waiting: reason}
	}
	for _, c := range []struct {
		name            string
		pods            []events.Pod
		reason, message string
	}{
		{"one", []events.Pod{pod(4, "ImagePullBackOff")}, "ImagePullBackOff", "1 of 5 Pods wait: 1 ImagePullBackOff (pi-4)"},
		{"two reasons", []events.Pod{pod(3, "Unschedulable"), pod(2, "ImagePullBackOff"), pod(1, "ImagePullBackOff")}, "ImagePullBackOff",
			"3 of 5 Pods wait: 2 ImagePullBackOff (pi-1), 1 Unschedulable (pi-3)"},
		{"as many of each", []events.Pod{pod(3, "Unschedulable"), pod(2, "ImagePullBackOff")}, "ImagePullBackOff",
			"2 of 5 Pods wait: 1 ImagePullBackOff (pi-2), 1 Unschedulable (pi-3)"},
		{"the two of an image are one", []events.Pod{pod(0, "ErrImagePull"), pod(1, "ImagePullBackOff")}, "ImagePullBackOff", "2 of 5 Pods wait: 2 ImagePullBackOff (pi-0)"},
		{"none has looked at it", []events.Pod{pod(0, "")}, waiting.Unknown, "1 of 5 Pods wait: 1 Unknown (pi-0)"},
		{"no reason of Kubernetes", []events.Pod{pod(0, "42")}, waiting.Unknown, "1 of 5 Pods wait: 1 42 (pi-0)"},
		{"a finalizer", []events.Pod{pod(0, events.FinalizerPrefix+"example.com/keep")}, waiting.FinalizersRemain,
			"1 of 5 Pods wait: 1 finalizer example.com/keep (pi-0)"},
	} {
		all := waiting.Pods{}
		for _, p := range c.pods {
			all.Add(p)
		}
		if reason, message := all.Condition(5); reason != c.reason || message != c.message {
			t.Errorf("%s: %s, %q; want %s, %q", c.name, reason, message, c.reason, c.message)
		}
	}
}

// TestTheMessageIsShort: whatever users write into the statuses of their Pods, the message has five reasons and 1 KiB at most.
func TestTheMessageIsShort(t *testing.T) {
	for _, c := range []struct {
		name, prefix string
		length       int
	}{
		{"words", "R", 60},
		{"finalizers with long names", events.FinalizerPrefix, 300},
	} {
		all := waiting.Pods{}
		for i := range 1000 {
			all.Add(events.Pod{Name: strings.Repeat("n", 253), Serial: i, Waiting: fmt.Sprintf("%s%0*d", c.prefix, c.length, i)})
		}
		_, message := all.Condition(1000)
		if shown := strings.Count(message, "(n"); len(message) > 1024 || shown < 1 || shown > 5 || !strings.HasPrefix(message, "1000 of 1000 Pods wait: 1 ") {
			t.Errorf("%s: %d bytes, %d reasons: %.80s…", c.name, len(message), shown, message)
		}
	}
}

// TestWhereTheMessageEnds: a message of just 1 KiB is shown whole; the first reason that is too long for it ends it, so that no reason is
// shown while one with more Pods is left out.
func TestWhereTheMessageEnds(t *testing.T) {
	const first = "4 of 4 Pods wait: 2 Unschedulable (pi-a)"
	room := 1024 - len(first) - len(", 1  (pi-c)")
	for _, c := range []struct {
		name    string
		reasons []string // of the Pods pi-a, pi-b, pi-c and pi-d
		want    string
	}{
		{"just 1 KiB", []string{"Unschedulable", "Unschedulable", strings.Repeat("R", room)}, first + ", 1 " + strings.Repeat("R", room) + " (pi-c)"},
		{"a byte more", []string{"Unschedulable", "Unschedulable", strings.Repeat("R", room+1)}, first},
		{"a short one after one that is too long", []string{"Unschedulable", "Unschedulable", strings.Repeat("R", room+1), "S"}, first},
	} {
		all := waiting.Pods{}
		for i, reason := range c.reasons {
			all.Add(events.Pod{Name: "pi-" + string(rune('a'+i)), Serial: i, Waiting: reason})
		}
		if _, message := all.Condition(4); message != strings.Replace(c.want, "4 of 4", fmt.Sprintf("%d of 4", len(c.reasons)), 1) {
			t.Errorf("%s: %d bytes: %s", c.name, len(message), message)
		}
	}
}

// TestTheFirstOfASerialIsNamed: of Pods with the same serial, as those without one, the first stays the one that is named.
func TestTheFirstOfASerialIsNamed(t *testing.T) {
	all := waiting.Pods{}
	for _, name := range []string{"pi-b", "pi-a"} {
		all.Add(events.Pod{Name: name, Waiting: "Unschedulable"})
	}
	if _, message := all.Condition(2); message != "2 of 2 Pods wait: 2 Unschedulable (pi-b)" {
		t.Error(message)
	}
}
