package progress

import (
	"fmt"
	"strings"
	"time"

	"github.com/jobstream/jobstream/functions/intervals"
)

// anyWidth is the width of an output without one.
const anyWidth = 100

// indent stands before the lines that belong to the one above.
const indent = "  "

// mapRows are the details in which a map can be shown, best first. The last one shows none.
var mapRows = []int{4, 2, 1, 0}

// Frame returns the lines that show all Jobs at now: at most the style's height, none wider than its width.
func (b *Board) Frame(now time.Time, style Style) []string {
	if style.Width <= 0 {
		style.Width = anyWidth
	}
	for _, rows := range mapRows {
		if lines := b.frame(b.jobs, now, style, rows); style.Height <= 0 || len(lines) <= style.Height {
			return lines
		}
	}
	return b.crowdedFrame(now, style)
}

// frame shows some Jobs in full.
func (b *Board) frame(jobs []*job, now time.Time, style Style, rows int) []string {
	var lines []string
	var legend legend
	heads := b.heads(jobs, now, style)
	for i, k := range jobs {
		k.lookAtPods()
		lines = append(lines, heads[i])
		lines = append(lines, k.indexMap(style, rows, &legend)...)
		lines = append(lines, k.remarks(style)...)
	}
	return append(lines, legend.lines(style)...)
}

// crowdedFrame shows one line each for as many Jobs as fit, unfinished ones first, and the number of the others.
func (b *Board) crowdedFrame(now time.Time, style Style) []string {
	room := max(1, style.Height-1)
	show, others := map[*job]bool{}, map[phase]int{}
	for _, ended := range []bool{false, true} {
		for _, k := range b.jobs {
			switch {
			case k.over() != ended:
			case len(show) < room:
				show[k] = true
			default:
				others[k.phase()]++
			}
		}
	}
	var jobs []*job
	for _, k := range b.jobs {
		if show[k] {
			jobs = append(jobs, k)
		}
	}
	lines := b.heads(jobs, now, style)
	if hidden := len(b.jobs) - len(jobs); hidden > 0 && style.Height > 1 {
		var parts []string
		for _, p := range []phase{running, waiting, suspended, completing, failing, failed, deleted, complete} {
			if others[p] > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", others[p], p))
			}
		}
		lines = append(lines, style.fit(fmt.Sprintf("and %d more: %s", hidden, strings.Join(parts, ", ")), style.Width))
	}
	return lines
}

// remarks returns the problems of the Job, a line each.
func (k *job) remarks(style Style) []string {
	var lines []string
	say := func(c Colour, text string) {
		lines = append(lines, indent+style.Paint(style.fit(text, style.Width-len(indent)), c))
	}
	list := func(c Colour, what string, set intervals.Set) {
		if len(set) > 0 {
			say(c, what+some(set, style.Width-len(indent+what)))
		}
	}
	list(Red, "failed indexes: ", k.failedIndexes.set)
	if !k.over() {
		list(Yellow, "to be tried again: ", k.failingIndexes)
	}
	if k.completeIndexes.unreadable || k.failedIndexes.unreadable {
		say(Yellow, "the lists of indexes in its status cannot be read")
	}
	if k.reason != "" {
		say(Red, k.reason+": "+k.message)
	}
	if k.obstacle != "" && !k.over() {
		say(Yellow, k.obstacle)
	}
	return lines
}
