package convert

import (
	"fmt"
	"io"
	"slices"
)

// Weight is how much a Difference matters.
type Weight int

const (
	// Note is for information: the behaviour is the same, written in another way.
	Note Weight = iota
	// Change is a difference in behaviour.
	Change
	// Refusal is the reason why the object is not converted.
	Refusal
)

func (w Weight) String() string { return [...]string{"note", "CHANGE", "REFUSED"}[w] }

// Difference is one aspect in which the two sides differ.
type Difference struct {
	Weight Weight
	// Field is the field of the original object, such as "spec.timeZone".
	Field string
	// Text is a sentence with the old behaviour, the new one, and what to write to avoid the change.
	Text string
}

// Report is the list of differences for one object.
type Report struct {
	// From is the original kind; To is the new one, "" if the object was refused.
	From, To        string
	Namespace, Name string
	Differences     []Difference
}

// Refused reports whether the object was not converted.
func (r Report) Refused() bool {
	return slices.ContainsFunc(r.Differences, func(d Difference) bool { return d.Weight == Refusal })
}

func (r *Report) add(w Weight, field, format string, args ...any) {
	r.Differences = append(r.Differences, Difference{w, field, fmt.Sprintf(format, args...)})
}

// object returns the object's name for messages.
func (r Report) object() string {
	if r.Namespace == "" {
		return r.Name
	}
	return r.Namespace + "/" + r.Name
}

// Write prints the reports for the user: a line for each object, and below it the differences, the most important first.
func Write(w io.Writer, reports []Report) {
	for _, r := range reports {
		if r.Refused() {
			fmt.Fprintf(w, "%s %s: not converted\n", r.From, r.object())
		} else {
			fmt.Fprintf(w, "%s %s: now a %s\n", r.From, r.object(), r.To)
		}
		all := slices.Clone(r.Differences)
		slices.SortStableFunc(all, func(a, b Difference) int { return int(b.Weight - a.Weight) })
		for _, d := range all {
			fmt.Fprintf(w, "  %-8s%s: %s\n", d.Weight, d.Field, d.Text)
		}
	}
}
