package history

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/kubectl/list"
	"github.com/jobstream/jobstream/internal/progress"
)

// mark is what became of a tick.
type mark int

const (
	complete mark = iota
	failed
	deleted
	replaced
	running
	skipped
	missed
	blocked
	refused
	unclear
	marks
)

// looks has a mark's cell, with and without characters that are not ASCII. Without colours the cells differ, too.
var looks = [marks]struct {
	block, ascii string
	colour       progress.Colour
	means        string
	bad          bool
}{
	complete: {"█", "#", progress.Green, "complete", false},
	failed:   {"x", "x", progress.Red, "failed", true},
	deleted:  {"/", "/", progress.Red, "deleted before its end", true},
	replaced: {"~", "~", progress.Yellow, "replaced", false},
	running:  {"▒", "+", progress.Cyan, "active", false},
	skipped:  {"·", ".", progress.Faint, "skipped", false},
	missed:   {"!", "!", progress.Red, "missed", true},
	blocked:  {"b", "b", progress.Red, "blocked", true},
	refused:  {"r", "r", progress.Red, "refused", true},
	unclear:  {"?", "?", progress.Normal, "end not known", false},
}

// mark judges the tick.
func (t Tick) mark() mark {
	switch t.Verdict {
	case events.Skipped:
		return skipped
	case events.Missed:
		return missed
	case events.Blocked:
		return blocked
	case events.NotCreated:
		return refused
	}
	switch r := t.Run; {
	case r == nil || r.State == "":
		return unclear
	case r.State == string(events.RunComplete):
		return complete
	case r.State == string(events.RunFailed):
		return failed
	case r.State == missing && r.Reason == list.Replaced:
		return replaced
	case r.State == missing:
		return deleted
	case !r.End.IsZero():
		return unclear // a result of another version
	}
	return running
}

const (
	indent = "  "
	// leastCells is the number of cells below which a line of them is of no use.
	leastCells = 10
	// inFull is the number of nominal times up to which a range has a cell for each. A longer one has one, and the number.
	inFull = 10
)

// cell is a part of the strip that is not split: that of one time, or of a long range.
type cell struct {
	at     time.Time
	times  int64
	colour progress.Colour
	text   string
}

// cells returns the cells of a tick.
func (t Tick) cells(style progress.Style) []cell {
	look := looks[t.mark()]
	c := cell{at: t.Nominal, times: 1, colour: look.colour, text: look.ascii}
	if style.Blocks {
		c.text = look.block
	}
	if t.Count <= inFull {
		return slices.Repeat([]cell{c}, int(t.Count))
	}
	c.times = t.Count
	c.text += fmt.Sprintf("(%d)", t.Count)
	return []cell{c}
}

// strip returns the lines of cells, the newest last, at most most lines of them, 0 for all, and for how many times there was no
// room. Each line begins with the time of its first cell.
func (s screen) strip(ticks []Tick, most int) (lines []string, left int64) {
	room := s.Style.Width - len(indent) - len(s.layout) - 1
	if room < leastCells {
		return nil, 0
	}
	rows := wrap(ticks, s.Style, room)
	if most > 0 && len(rows) > most {
		for _, c := range slices.Concat(rows[:len(rows)-most]...) {
			left += c.times
		}
		rows = rows[len(rows)-most:]
	}
	for _, row := range rows {
		lines = append(lines, indent+row[0].at.In(s.Zone).Format(s.layout)+" "+draw(row, s.Style))
	}
	return lines, left
}

// wrap puts the cells into rows, none wider than the room.
func wrap(ticks []Tick, style progress.Style, room int) (rows [][]cell) {
	used := room
	for _, t := range ticks {
		for _, c := range t.cells(style) {
			width := ansi.StringWidth(c.text)
			if used+width > room {
				rows, used = append(rows, nil), 0
			}
			used += width
			rows[len(rows)-1] = append(rows[len(rows)-1], c)
		}
	}
	return rows
}

// draw writes cells, neighbours of one colour in one go.
func draw(row []cell, style progress.Style) string {
	var b strings.Builder
	for i := 0; i < len(row); {
		text, j := "", i
		for ; j < len(row) && row[j].colour == row[i].colour; j++ {
			text += row[j].text
		}
		b.WriteString(style.Paint(text, row[i].colour))
		i = j
	}
	return b.String()
}

// legend explains the cells that the ticks have, each with its number, and nothing else.
func (s screen) legend(ticks []Tick) []string {
	var counts [marks]int64
	long := false
	for _, t := range ticks {
		counts[t.mark()] += t.Count
		long = long || t.Count > inFull
	}
	var parts []string
	for m, look := range looks {
		if counts[m] == 0 {
			continue
		}
		glyph := look.ascii
		if s.Style.Blocks {
			glyph = look.block
		}
		parts = append(parts, fmt.Sprintf("%s %d %s", glyph, counts[m], look.means))
	}
	if long {
		parts = append(parts, "(n) n times in a row")
	}
	var lines []string
	for _, part := range parts {
		if n := len(lines); n > 0 && ansi.StringWidth(lines[n-1]+indent+part) <= s.Style.Width {
			lines[n-1] += indent + part
			continue
		}
		lines = append(lines, indent+part)
	}
	for i, line := range lines {
		lines[i] = s.Style.Paint(s.Style.Fit(line), progress.Faint)
	}
	return lines
}
