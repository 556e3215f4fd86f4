package progress

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
)

const (
	minBar, maxBar = 8, 30
	minName        = 8
	minState       = 10
	gap            = "  "
)

// column is a part of a head, left to right.
type column int

const (
	colName column = iota
	colBar
	colDone
	colActive
	colFailed
	colRate
	colLeft
	colElapsed
	colState
	columns
)

// giveWay lists the columns that may be left out, the least important first.
var giveWay = []column{colElapsed, colRate, colActive, colLeft, colFailed}

// head returns the texts of one line, without the bar, which takes the remaining room.
func (b *Board) head(k *job, now time.Time) [columns]string {
	c := [columns]string{colName: b.label(k), colDone: fmt.Sprint(k.succeeded), colState: string(k.phase())}
	if k.completions >= 0 {
		c[colDone] += fmt.Sprintf("/%d", k.completions)
	}
	if !k.over() {
		c[colActive] = fmt.Sprintf("%d active", k.active)
		c[colRate] = pace(k.rate.perSecond(now))
		if left := k.timeLeft(now); left > 0 {
			c[colLeft] = span(left) + " left"
		}
	}
	c[colFailed] = fmt.Sprintf("%d failed", k.failed)
	if elapsed := k.elapsed(now); elapsed > 0 || k.over() {
		c[colElapsed] = span(elapsed)
	}
	return c
}

// heads returns a line for each Job, with aligned columns: name, bar, successes, active Pods, failures, rate, time left, elapsed
// time, and state.
func (b *Board) heads(jobs []*job, now time.Time, style Style) []string {
	rows := make([][columns]string, len(jobs))
	var widths [columns]int
	for i, k := range jobs {
		rows[i] = b.head(k, now)
		for c, text := range rows[i] {
			widths[c] = max(widths[c], ansi.StringWidth(text))
		}
	}
	widths = squeeze(widths, style.Width)
	lines := make([]string, len(jobs))
	for i, k := range jobs {
		var parts []string
		for c, text := range rows[i] {
			c, width := column(c), widths[c]
			switch {
			case c == colBar:
				text = k.bar(style, width)
			case c == colState:
				text = style.Paint(style.fit(text, width), k.colour())
			case width == 0:
				continue
			case c == colFailed && k.failed > 0:
				text = style.Paint(pad(style.fit(text, width), width, true), Red)
			default:
				text = pad(style.fit(text, width), width, c != colName)
			}
			parts = append(parts, text)
		}
		lines[i] = strings.TrimRight(strings.Join(parts, gap), " ")
	}
	return lines
}

// squeeze computes the widths of the columns, so that the line has at most width columns: it drops the least important ones, then
// shortens the name and the outcome, then the bar.
func squeeze(widths [columns]int, width int) [columns]int {
	widths[colBar] = minBar
	total := func() int {
		sum := -len(gap)
		for _, w := range widths {
			if w > 0 {
				sum += w + len(gap)
			}
		}
		return sum
	}
	for _, c := range giveWay {
		if c == colFailed && total() > width {
			widths[colBar] = minBar / 2 // failures matter more than the picture
		}
		if total() > width {
			widths[c] = 0
		}
	}
	for _, cut := range []struct {
		column column
		least  int
	}{{colState, minState}, {colName, minName}, {colState, 1}, {colName, 1}, {colBar, 1}, {colDone, 1}} {
		if over := total() - width; over > 0 && widths[cut.column] > cut.least {
			widths[cut.column] = max(cut.least, widths[cut.column]-over)
		}
	}
	widths[colBar] += min(max(0, width-total()), maxBar-widths[colBar])
	return widths
}

// bar shows finished, running and remaining work. The bar of a work queue is full when it has ended.
func (k *job) bar(style Style, width int) string {
	full, busy, empty := "#", "+", "-"
	if style.Blocks {
		full, busy, empty = "█", "▒", "░"
	}
	whole := k.completions
	if whole < 0 {
		whole = max(k.parallelism, k.active+k.succeeded)
	}
	whole = max(whole, 1)
	done := min(k.done(), whole) * width / whole
	if k.result != "" && k.completions < 0 || k.phase() == complete {
		done = width
	}
	doing := min(k.done()+k.active, whole)*width/whole - done
	if k.active > 0 && doing == 0 && done < width {
		doing = 1 // show even ten of a hundred thousand
	}
	doing = max(0, doing)
	return style.Paint(strings.Repeat(full, done), k.barColour()) + style.Paint(strings.Repeat(busy, doing), Cyan) +
		style.Paint(strings.Repeat(empty, width-done-doing), Faint)
}

func (k *job) barColour() Colour {
	if k.phase() == failed || k.phase() == failing {
		return Red
	}
	return Green
}

// colour is that of the word for what the Job does.
func (k *job) colour() Colour {
	switch k.phase() {
	case complete:
		return Green
	case failed, failing, deleted:
		return Red
	case suspended, waiting:
		return Yellow
	}
	return Normal
}
