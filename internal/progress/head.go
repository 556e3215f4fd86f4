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

// giveWay are the columns that may be left out, those that are missed least first.
var giveWay = []column{colElapsed, colRate, colActive, colLeft, colFailed}

// head is the texts of one line, without the bar, which takes what room is left.
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

// heads are a line for each Job, with columns below each other: name, bar, successes, Pods active, failures, rate, time left,
// time elapsed, and what it does.
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
				text = style.paint(style.fit(text, width), k.colour())
			case width == 0:
				continue
			case c == colFailed && k.failed > 0:
				text = style.paint(pad(style.fit(text, width), width, true), red)
			default:
				text = pad(style.fit(text, width), width, c != colName)
			}
			parts = append(parts, text)
		}
		lines[i] = strings.TrimRight(strings.Join(parts, gap), " ")
	}
	return lines
}

// squeeze decides how wide the columns are, so that the line has width columns at most: what is missed least goes, then the
// name and the outcome are cut, then the bar.
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
			widths[colBar] = minBar / 2 // what has failed matters more than the picture
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

// bar shows what is done, what is being done, and what is left. That of a work queue is full when it has ended.
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
		doing = 1 // ten of a hundred thousand are something, too
	}
	doing = max(0, doing)
	return style.paint(strings.Repeat(full, done), k.barColour()) + style.paint(strings.Repeat(busy, doing), cyan) +
		style.paint(strings.Repeat(empty, width-done-doing), faint)
}

func (k *job) barColour() colour {
	if k.phase() == failed || k.phase() == failing {
		return red
	}
	return green
}

// colour is that of the word for what the Job does.
func (k *job) colour() colour {
	switch k.phase() {
	case complete:
		return green
	case failed, failing, deleted:
		return red
	case suspended, waiting:
		return yellow
	}
	return normal
}
