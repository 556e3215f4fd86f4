// Package overview sums up the Jobs and ScheduledJobs of a namespace for a screen. It has no I/O and no clock: the same objects
// and time give the same lines.
//
//	overview.go   what is kept of each object, and which lines fit on a screen
//	jobs.go       the lines of Jobs
//	schedules.go  the lines of ScheduledJobs
package overview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// lately is how recently a Job must have failed to be shown.
const lately = 24 * time.Hour

// Overview sums up the objects added so far. It keeps a line of each, not the object.
type Overview struct {
	// Now is the time from which ages are measured.
	Now time.Time
	// Namespaces reports whether objects of several namespaces are shown, which adds a column.
	Namespaces bool

	unfinished, failed, schedules []line
	// complete, failedBefore and finished count what is not shown: complete Jobs, Jobs that failed earlier, finished ScheduledJobs.
	complete, failedBefore, finished int
	// others counts the Jobs of other controllers.
	others int
	// suspended counts the suspended ScheduledJobs.
	suspended int
}

// line is what the overview shows of one object.
type line struct {
	namespace, name string
	rank            int
	at              time.Time
	state           string
	cells           []string // without the namespace
}

// Section is a table with a title.
type Section struct {
	Title   string
	Columns []string
	Rows    [][]string
	// More describes the rows for which there was no room; "" if there are none.
	More string
}

// Sections returns the tables, with at most rows rows in total; 0 means all. A table of Jobs is always there; empty other tables
// are left out.
func (o *Overview) Sections(rows int) []Section {
	tables := []struct {
		title   string
		columns []string
		lines   []line
	}{
		{o.jobsTitle(), jobColumns, o.unfinished},
		{o.failedTitle(), failedColumns, o.failed},
		{o.schedulesTitle(), scheduleColumns, o.schedules},
	}
	room := make([]int, len(tables))
	for i, t := range tables {
		room[i] = len(t.lines)
	}
	if rows > 0 {
		room = share(rows, room)
	}
	var sections []Section
	for i, t := range tables {
		if t.title == "" {
			continue
		}
		slices.SortFunc(t.lines, inOrder)
		s := Section{Title: t.title, Columns: t.columns, More: more(t.lines[room[i]:])}
		if o.Namespaces {
			s.Columns = append([]string{"NAMESPACE"}, s.Columns...)
		}
		for _, l := range t.lines[:room[i]] {
			cells := l.cells
			if o.Namespaces {
				cells = append([]string{l.namespace}, cells...)
			}
			s.Rows = append(s.Rows, cells)
		}
		if len(s.Rows) == 0 {
			s.Columns = nil
		}
		sections = append(sections, s)
	}
	return sections
}

// share divides the rows among the tables: each gets as many as any other, up to the number that it wants.
func share(rows int, wanted []int) []int {
	got := make([]int, len(wanted))
	for given := true; given; {
		given = false
		for i := range wanted {
			if rows > 0 && got[i] < wanted[i] {
				got[i]++
				rows--
				given = true
			}
		}
	}
	return got
}

// inOrder sorts lines by importance, then by time: the newest failure, or the next start, first.
func inOrder(a, b line) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), a.at.Compare(b.at), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
}

// more counts the lines that are not shown, by state.
func more(lines []line) string {
	if len(lines) == 0 {
		return ""
	}
	var states []string
	counts := map[string]int{}
	for _, l := range lines {
		if counts[l.state]++; counts[l.state] == 1 && l.state != "" {
			states = append(states, l.state)
		}
	}
	for i, state := range states {
		states[i] = fmt.Sprintf("%d %s", counts[state], state)
	}
	text := fmt.Sprintf("and %d more", len(lines))
	if len(states) > 0 {
		text += ": " + strings.Join(states, ", ")
	}
	return text
}
