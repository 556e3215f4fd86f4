package convert

import (
	"fmt"
	"io"
	"slices"
)

// Weight is how much a Difference matters.
type Weight int

const (
	// Note is for information: the same happens, told or written in another way.
	Note Weight = iota
	// Change is something that happens otherwise from then on.
	Change
	// Refusal is why the object is not converted.
	Refusal
)

func (w Weight) String() string { return [...]string{"note", "CHANGE", "REFUSED"}[w] }

// Difference is one thing that is not the same on the other side.
type Difference struct {
	Weight Weight
	// Field is where it stands in the object that is converted, such as "spec.timeZone".
	Field string
	// Text is a sentence that says what is, what will be, and what to write if that is not wanted.
	Text string
}

// Report is what is said about one object.
type Report struct {
	// From is the kind that it was; To the kind that it is now, "" where it was refused.
	From, To        string
	Namespace, Name string
	Differences     []Difference
}

// Refused says that the object was not converted.
func (r Report) Refused() bool {
	return slices.ContainsFunc(r.Differences, func(d Difference) bool { return d.Weight == Refusal })
}

func (r *Report) add(w Weight, field, format string, args ...any) {
	r.Differences = append(r.Differences, Difference{w, field, fmt.Sprintf(format, args...)})
}

// object is the name of the object for people.
func (r Report) object() string {
	if r.Namespace == "" {
		return r.Name
	}
	return r.Namespace + "/" + r.Name
}

// Write writes the reports for people: a line for each object, below it what differs, what matters most first.
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
