package history

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/kubectl/table"
	"github.com/jobstream/jobstream/internal/progress"
)

const (
	// anyWidth is the width of a strip on an output without one.
	anyWidth = 100
	// stripRows is the number of lines of cells on a screen, leastRows the number of ticks in the table.
	stripRows, leastRows = 4, 6
	// furniture is the number of lines that the names of the columns, notes and the user's prompt take.
	furniture = 4
)

// View is how ticks are shown.
type View struct {
	// Name is that of the ScheduledJob.
	Name string
	// Now is the time up to which active runs are measured, Zone the schedule's.
	Now  time.Time
	Zone *time.Location
	// All shows all ticks, each line in full; otherwise they fit the screen, if the style has a height.
	All bool
	// Style is that of the output.
	Style progress.Style
}

// screen is a View with the layout of its times.
type screen struct {
	View
	layout string
}

// Lines returns a summary, the strip with its legend, and the table, the newest tick last.
func (v View) Lines(ticks []Tick) []string {
	s := screen{v, "2006-01-02 15:04"}
	for _, t := range ticks {
		if t.Nominal.Second() != 0 || t.Until.Second() != 0 {
			s.layout = time.DateTime
		}
	}
	lines := []string{v.Style.Fit(s.summary(ticks)), ""}
	lines = append(lines, s.cells(ticks)...)
	lines = append(lines, "")
	shown := ticks
	if room := max(leastRows, v.Style.Height-len(lines)-furniture); !v.All && v.Style.Height > 0 && len(ticks) > room {
		shown = ticks[len(ticks)-room:]
	}
	lines = append(lines, s.table(shown)...)
	if hidden := len(ticks) - len(shown); hidden > 0 {
		lines = append(lines, v.Style.Fit(fmt.Sprintf("and %d earlier verdicts (-o wide shows all)", hidden)))
	}
	return lines
}

// cells returns the strip and its legend.
func (s screen) cells(ticks []Tick) []string {
	wide := s
	if wide.Style.Width == 0 {
		wide.Style.Width = anyWidth
	}
	most := stripRows
	if s.All {
		most = 0
	}
	lines, left := wide.strip(ticks, most)
	if left > 0 {
		lines = append(lines, s.Style.Fit(fmt.Sprintf("%sand %d earlier times (-o wide shows all)", indent, left)))
	}
	return append(lines, wide.legend(ticks)...)
}

// summary returns for how many times there are verdicts, and since when.
func (s screen) summary(ticks []Tick) string {
	var all int64
	for _, t := range ticks {
		all += t.Count
	}
	times := "times"
	if all == 1 {
		times = "time"
	}
	return fmt.Sprintf("%s: %d %s since %s (%s)", clean(s.Name), all, times, s.stamp(ticks[0].Nominal), s.Zone)
}

func (s screen) stamp(t time.Time) string { return t.In(s.Zone).Format(s.layout) }

// table returns a line for each tick. Only if one is about several times, a column has how many.
func (s screen) table(ticks []Tick) []string {
	columns, many := []string{"TIME", "VERDICT", "RESULT", "DURATION", "JOB", "REASON"}, false
	for _, t := range ticks {
		many = many || t.Count > 1
	}
	if many {
		columns = append([]string{"TIME", "TIMES"}, columns[1:]...)
	}
	rows := make([]table.Row, len(ticks))
	for i, t := range ticks {
		cells := s.row(t)
		if many {
			cells = append([]string{cells[0], fmt.Sprint(t.Count)}, cells[1:]...)
		}
		rows[i] = table.Row{Cells: cells, Colour: t.colour()}
	}
	return table.Lines(columns, rows, s.Style)
}

func (s screen) row(t Tick) []string {
	at := s.stamp(t.Nominal)
	if t.Until.After(t.Nominal) {
		at += " to " + s.stamp(t.Until)
	}
	verdict := clean(string(t.Verdict))
	if t.Reason != "" {
		verdict += " (" + clean(t.Reason) + ")"
	}
	cells := []string{at, verdict, "", "", clean(t.job()), clean(t.Message)}
	r := t.Run
	if r == nil {
		return cells
	}
	cells[2] = clean(r.State)
	if r.State == "" {
		cells[2] = unknown
	}
	if took, ok := r.Took(s.Now); ok {
		cells[3] = duration.HumanDuration(took)
	}
	if r.State != string(events.RunComplete) {
		cells[5] = why(r)
	}
	return cells
}

// why explains the state of a run that is not complete.
func why(r *Run) string {
	return strings.TrimSuffix(strings.TrimPrefix(clean(r.Reason)+": "+clean(r.Message), ": "), ": ")
}

// colour is that of a tick's line: only what went wrong, or goes on, stands out.
func (t Tick) colour() progress.Colour {
	if c := looks[t.mark()].colour; c != progress.Green {
		return c
	}
	return progress.Normal
}

// clean removes from an object's text what is unsafe to print on a terminal.
func clean(text string) string {
	const most = 500 // bytes
	return progress.Clean(text, most)
}
