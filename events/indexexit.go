package events

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// MaxIndexExits is how many failed indexes have their exits in a Job's annotation and in its JobFinish. They take 2.4 kB at most.
const MaxIndexExits = 20

// IndexExit is how an index of an Indexed Job failed for good: v1alpha1.FailedIndexExitsAnnotation.
type IndexExit struct {
	_ struct{} `cbor:",toarray"`

	// Index is the completion index.
	Index int `json:"index"`
	// ExitCode is that of the container that failed; 0 if no container is known to have failed, as in a Pod that was evicted.
	ExitCode int32 `json:"exitCode,omitempty"`
	// Reason is the Pod's, such as Evicted, else the container's, such as Error or OOMKilled; "" if neither has one.
	Reason string `json:"reason,omitempty"`
}

// String describes the exit: "7:137(OOMKilled)", or "7:?(Evicted)" if no container is known to have failed.
func (e IndexExit) String() string {
	out := fmt.Sprintf("%d:%d", e.Index, e.ExitCode)
	if e.ExitCode == 0 {
		out = fmt.Sprintf("%d:?", e.Index)
	}
	if e.Reason != "" {
		out += "(" + e.Reason + ")"
	}
	return out
}

// ExitOf returns how the index of a Pod ended that has failed.
func ExitOf(p Pod) IndexExit {
	f := FailureOf(p)
	return IndexExit{Index: p.Index, ExitCode: f.ExitCode, Reason: f.Reason}
}

// indexExits reads the annotation: the exits of indexes that have failed, the lowest first; nil if no reconciler has written it.
func indexExits(annotation, failed string) (out []IndexExit) {
	const longest = 4096 // what a reconciler writes is shorter
	var all []IndexExit
	if annotation == "" || len(annotation) > longest || json.Unmarshal([]byte(annotation), &all) != nil || len(all) > MaxIndexExits {
		return nil
	}
	slices.SortStableFunc(all, func(a, b IndexExit) int { return cmp.Compare(a.Index, b.Index) })
	for i, e := range all {
		if e.Index < 0 || e.Reason != word(e.Reason) || i > 0 && e.Index == all[i-1].Index {
			return nil
		}
	}
	for first, last := range spans(failed) {
		for len(all) > 0 && all[0].Index <= last {
			if all[0].Index >= first {
				out = append(out, all[0])
			}
			all = all[1:]
		}
		if len(all) == 0 {
			break
		}
	}
	return out
}

// within reports whether the index is one of those in a status.
func within(text string, index int) bool {
	for first, last := range spans(text) {
		if index <= last {
			return index >= first
		}
	}
	return false
}

// spans iterates over the intervals of indexes in a status, such as "0-3,7", up to one that does not parse.
func spans(text string) func(yield func(first, last int) bool) {
	return func(yield func(first, last int) bool) {
		for part := range strings.SplitSeq(text, ",") {
			a, b, isRange := strings.Cut(part, "-")
			first, err := strconv.Atoi(a)
			last := first
			if isRange && err == nil {
				last, err = strconv.Atoi(b)
			}
			if err != nil || !yield(first, last) {
				return
			}
		}
	}
}
