package show

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	batchv1 "k8s.io/api/batch/v1"
)

// Style says what the terminal can show.
type Style struct {
	// Width of a line; longer ones are cut, because a line that wraps cannot be redrawn. 0 is any.
	Width int
	// Colour allows escape sequences for colours, Blocks characters that are not ASCII.
	Colour, Blocks bool
}

// barWidth is room for twenty completions, one character each.
const barWidth = 20

// Bars is one line for each Job: name, bar, counters, time, state.
func (s *Story) Bars(now time.Time, style Style) []string {
	lines := make([]string, len(s.Jobs))
	for i, k := range s.Jobs {
		lines[i] = s.Bar(k, now, style)
	}
	return lines
}

// Bar is the line of one Job.
func (s *Story) Bar(k *Job, now time.Time, style Style) string {
	of := "  "
	if k.Completions > 0 {
		of = fmt.Sprintf("/%d", k.Completions)
	}
	head := fmt.Sprintf("  %-*s ", s.nameWidth(), k.Name)
	counters := fmt.Sprintf("  %5s  active %-2d failed %-2d %6s  ", fmt.Sprintf("%d%s", k.Succeeded, of), k.Active, k.Failed, k.elapsed(now))
	bar, state := k.bar(style), k.state(now)
	if style.Width > 0 {
		// The state is what gives way: all before it is about 60 columns.
		state = clip(state, style.Width-1-utf8.RuneCountInString(head+bar+counters))
	}
	colour := ""
	switch k.Result {
	case batchv1.JobComplete:
		colour = green
	case batchv1.JobFailed:
		colour = red
	}
	return head + paint(bar, colour, style) + counters + paint(state, colour, style)
}

// bar shows what is done, what is being done, and what is left. That of a work queue is full when it has ended.
func (k *Job) bar(style Style) string {
	full, busy, empty := "#", "+", "-"
	if style.Blocks {
		full, busy, empty = "█", "▒", "░"
	}
	whole := max(k.Completions, 1)
	if k.Completions == 0 {
		whole = max(k.Parallelism, k.Active+k.Succeeded, 1)
	}
	done := int(min(k.Succeeded, whole)) * barWidth / int(whole)
	doing := int(min(k.Succeeded+k.Active, whole))*barWidth/int(whole) - done
	return strings.Repeat(full, done) + strings.Repeat(busy, doing) + strings.Repeat(empty, barWidth-done-doing)
}

// elapsed is the time since the Job was applied, until it ended.
func (k *Job) elapsed(now time.Time) string {
	switch {
	case k.Applied.IsZero():
		return ""
	case !k.Ended.IsZero():
		now = k.Ended
	}
	return fmt.Sprintf("%.1fs", max(0, now.Sub(k.Applied).Seconds()))
}

// state is what the Job does now, in a few words.
func (k *Job) state(now time.Time) string {
	switch {
	case k.Applied.IsZero():
		return "not applied yet"
	case k.Result == batchv1.JobFailed:
		return "Failed: " + k.Reason
	case k.Result != "":
		return string(k.Result)
	case k.done:
		return "Ending"
	case !k.NextTry.IsZero():
		return "Waiting, next try in " + span(max(0, k.NextTry.Sub(now)).Round(time.Second))
	case k.Started.IsZero():
		return "Waiting to start"
	}
	return "Running"
}

// Line is a moment as a line: when, who, what.
func (s *Story) Line(m Moment, style Style) string {
	line := fmt.Sprintf("%8.3fs  %-*s  %s", m.At.Sub(s.Began).Seconds(), s.nameWidth(), m.Job, m.Text)
	if style.Width > 0 {
		line = clip(line, style.Width-1)
	}
	return line
}

func (s *Story) nameWidth() int {
	width := 0
	for _, k := range s.Jobs {
		width = max(width, len(k.Name))
	}
	return width
}

const (
	green = "\x1b[32m"
	red   = "\x1b[31m"
	plain = "\x1b[0m"
)

func paint(text, colour string, style Style) string {
	if colour == "" || !style.Colour {
		return text
	}
	return colour + text + plain
}

// clip cuts a text to so many characters.
func clip(text string, width int) string {
	if width <= 0 {
		return ""
	}
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:width])
}
