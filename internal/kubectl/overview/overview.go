// Package overview sums up the Jobs and ScheduledJobs of a namespace for a screen. It knows no cluster and no clock: the same
// objects and time give the same lines.
//
//	overview.go   what is kept of each object, and which of them fit on a screen
//	jobs.go       the lines of Jobs
//	schedules.go  the lines of ScheduledJobs
package overview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jobstream/jobstream/internal/progress"
)

// lately is how long ago a Job may have failed to be shown.
const lately = 24 * time.Hour

// Overview is what has been seen so far. It keeps a line of each object, not the object.
type Overview struct {
	// Now is the time that ages are counted to.
	Now time.Time
	// Namespaces says that objects of several namespaces are shown, and adds a column.
	Namespaces bool

	unfinished, failed, schedules []line
	// complete, failedBefore and finished count what is not shown: Jobs, Jobs, ScheduledJobs.
	complete, failedBefore, finished int
	// others counts the Jobs that are not jobstream's.
	others int
	// suspended counts the ScheduledJobs that are.
	suspended int
}

// line is what is shown of one object.
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
	// More says how many rows there was no room for; "" for none.
	More string
}

// Sections are the tables, with rows rows altogether at most; 0 is for all. There is always one of Jobs; the others are left out
// where they would be empty.
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

// share divides the rows among those who want some: each gets as many as any other until it has enough.
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

// inOrder puts first what matters most, and of that the newest or the next.
func inOrder(a, b line) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), a.at.Compare(b.at), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
}

// more says how many there are besides, and in which states.
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

// clean makes what an object says safe to show.
func clean(text string) string {
	const most = 500 // bytes
	return progress.Clean(text, most)
}
