package events

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// PodFailure is how a Pod has failed, as far as its user needs it to look further: v1alpha1.LastFailureAnnotation. It has no message, for
// the reason that PodEnd has none.
type PodFailure struct {
	_ struct{} `cbor:",toarray"`

	// Pod is the name of the Pod.
	Pod string `json:"pod"`
	// Index is its completion index in an Indexed Job.
	Index *int `json:"index,omitempty"`
	// Node is where it ran, if that is known.
	Node string `json:"node,omitempty"`
	// Container is the container that failed, if that is known, and ExitCode its exit code.
	Container string `json:"container,omitempty"`
	// ExitCode is 0 if no container is known to have failed, as in a Pod that was evicted.
	ExitCode int32 `json:"exitCode,omitempty"`
	// Reason is the Pod's, such as Evicted, else the container's, such as Error or OOMKilled.
	Reason string `json:"reason,omitempty"`
	// Time is when the Pod failed.
	Time time.Time `json:"time"`
}

// FailureOf returns how a Pod has failed. What a snapshot leaves out of the Pod is missing in it.
func FailureOf(p Pod) PodFailure {
	f := PodFailure{Pod: p.Name, Time: p.Finished.UTC()}
	if p.Index != NoIndex {
		f.Index = &p.Index
	}
	if len(p.Exits) > 0 {
		f.Container, f.ExitCode = p.Exits[0].Container, p.Exits[0].Code
	}
	if e := p.End; e != nil {
		f.Node, f.Reason = e.Node, e.Reason
		if c := e.Container; c != nil && c.ExitCode != 0 {
			f.Container, f.ExitCode, f.Reason = c.Name, c.ExitCode, cmp.Or(f.Reason, c.Reason)
		}
	}
	return f
}

// Later returns the failure that came later; of two observations of one, that which shows more.
func (f *PodFailure) Later(g *PodFailure) *PodFailure {
	switch {
	case f == nil:
		return g
	case g == nil:
		return f
	}
	if cmp.Or(f.Time.Compare(g.Time), cmp.Compare(f.Pod, g.Pod), cmp.Compare(f.Node, g.Node), cmp.Compare(f.Container, g.Container),
		cmp.Compare(f.ExitCode, g.ExitCode), cmp.Compare(f.Reason, g.Reason)) < 0 {
		return g
	}
	return f
}

// String describes the failure for people: "Pod pi-4xk2b failed: container main, exit code 3, Error".
func (f PodFailure) String() string {
	var how []string
	if f.Container != "" {
		how = append(how, "container "+f.Container, fmt.Sprint("exit code ", f.ExitCode))
	}
	if f.Reason != "" {
		how = append(how, f.Reason)
	}
	if f.Node != "" {
		how = append(how, "on node "+f.Node)
	}
	return strings.TrimSuffix("Pod "+f.Pod+" failed: "+strings.Join(how, ", "), ": ")
}

// failure reads the annotation, nil if it is missing or no reconciler has written it.
func failure(annotation string) *PodFailure {
	const longest, name = 1024, 253 // a record of a reconciler is shorter
	var f PodFailure
	if len(annotation) == 0 || len(annotation) > longest || json.Unmarshal([]byte(annotation), &f) != nil {
		return nil
	}
	if f.Pod == "" || len(f.Pod) > name || len(f.Node) > name || len(f.Container) > name || f.Reason != word(f.Reason) || f.Time.IsZero() {
		return nil
	}
	f.Time = f.Time.UTC()
	return &f
}
