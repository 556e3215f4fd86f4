// Package intervals implements sets of small non-negative integers that are written and stored as intervals: "0-3,7,9,10". The
// text is that of a Job's status.completedIndexes: two neighbours are "9,10", three or more are "0-3".
package intervals

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Span is the range of integers from First to Last, both included; 0 <= First <= Last.
type Span struct {
	_     struct{} `cbor:",toarray"`
	First int
	Last  int
}

// Set is ordered and has neither overlapping nor adjacent spans. The zero value is the empty set. Sets are values: no method
// changes its receiver.
type Set []Span

// Of returns the set of the given integers, in any order.
func Of(ns ...int) Set {
	ns = slices.Clone(ns)
	slices.Sort(ns)
	var out Set
	for _, n := range ns {
		if k := len(out) - 1; k >= 0 && n <= out[k].Last+1 {
			out[k].Last = max(out[k].Last, n)
			continue
		}
		out = append(out, Span{First: n, Last: n})
	}
	return out
}

// Has reports whether n is in the set.
func (s Set) Has(n int) bool {
	i := sort.Search(len(s), func(i int) bool { return s[i].Last >= n })
	return i < len(s) && s[i].First <= n
}

// Len returns the number of integers in the set.
func (s Set) Len() (n int) {
	for _, v := range s {
		n += v.Last - v.First + 1
	}
	return n
}

// With returns the set with n added.
func (s Set) With(n int) Set {
	if s.Has(n) {
		return s
	}
	return s.Union(Set{{First: n, Last: n}})
}

// Union returns the integers that are in either set.
func (s Set) Union(t Set) Set {
	if len(s) == 0 {
		return t
	}
	out := make(Set, 0, len(s)+len(t))
	add := func(v Span) {
		if k := len(out) - 1; k >= 0 && v.First <= out[k].Last+1 {
			out[k].Last = max(out[k].Last, v.Last)
			return
		}
		out = append(out, v)
	}
	for i, j := 0, 0; i < len(s) || j < len(t); {
		if j == len(t) || i < len(s) && s[i].First <= t[j].First {
			add(s[i])
			i++
		} else {
			add(t[j])
			j++
		}
	}
	return out
}

// Intersect returns the integers that are in both sets.
func (s Set) Intersect(t Set) Set {
	var out Set
	for i, j := 0, 0; i < len(s) && j < len(t); {
		if first, last := max(s[i].First, t[j].First), min(s[i].Last, t[j].Last); first <= last {
			out = append(out, Span{First: first, Last: last})
		}
		if s[i].Last < t[j].Last {
			i++
		} else {
			j++
		}
	}
	return out
}

// Below returns the part of the set that is less than n.
func (s Set) Below(n int) Set {
	var out Set
	for _, v := range s {
		if v.First < n {
			out = append(out, Span{First: v.First, Last: min(v.Last, n-1)})
		}
	}
	return out
}

// String renders the set as Kubernetes does (indexed_job_utils.go, orderedIntervals.String).
func (s Set) String() string {
	var b strings.Builder
	for i, v := range s {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(v.First))
		if v.Last > v.First {
			if v.Last == v.First+1 {
				b.WriteByte(',')
			} else {
				b.WriteByte('-')
			}
			b.WriteString(strconv.Itoa(v.Last))
		}
	}
	return b.String()
}

// Parse parses the form that String writes. The error names the part that is not a number, an interval, or in order, or exceeds any
// index that a Job can have, which is an int32.
func Parse(text string) (Set, error) {
	if text == "" {
		return nil, nil
	}
	var out Set
	last := -1
	for part := range strings.SplitSeq(text, ",") {
		a, b, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(a)
		if err != nil {
			return nil, fmt.Errorf("intervals %q: %q is not a number", text, a)
		}
		end := first
		if isRange {
			if end, err = strconv.Atoi(b); err != nil {
				return nil, fmt.Errorf("intervals %q: %q is not a number", text, b)
			}
		}
		if first <= last || end < first {
			return nil, fmt.Errorf("intervals %q: %q is out of order", text, part)
		}
		if end > math.MaxInt32 {
			return nil, fmt.Errorf("intervals %q: %q exceeds %d", text, part, math.MaxInt32)
		}
		if k := len(out) - 1; k >= 0 && out[k].Last+1 == first {
			out[k].Last = end
		} else {
			out = append(out, Span{First: first, Last: end})
		}
		last = end
	}
	return out, nil
}

// Without returns the set with n removed.
func (s Set) Without(n int) Set {
	if !s.Has(n) {
		return s
	}
	out := make(Set, 0, len(s)+1)
	for _, v := range s {
		if n < v.First || n > v.Last {
			out = append(out, v)
			continue
		}
		if v.First < n {
			out = append(out, Span{First: v.First, Last: n - 1})
		}
		if n < v.Last {
			out = append(out, Span{First: n + 1, Last: v.Last})
		}
	}
	return out
}
