package progress

import (
	"fmt"
	"strconv"
	"strings"
)

// mark is the state of an index, or of a bucket of indexes: the worst one in it.
type mark int

const (
	markFailed  mark = iota // for good
	markFailing             // its last Pod has failed; there will be another one
	markRunning
	markPartly  // some of a bucket are complete, and none runs
	markWaiting // has had no Pod yet
	markComplete
	marks
)

var looks = [marks]struct {
	block, ascii string
	colour       Colour
	means        string
}{
	markFailed:   {"x", "x", Red, "failed"},
	markFailing:  {"!", "!", Yellow, "to be tried again"},
	markRunning:  {"▒", "+", Cyan, "running"},
	markPartly:   {"▄", "=", Green, "partly complete"},
	markWaiting:  {"·", ".", Faint, "waiting"},
	markComplete: {"█", "#", Green, "complete"},
}

// legend remembers what has been shown.
type legend [marks]bool

// lines explain what has been shown, and nothing else.
func (l *legend) lines(style Style) []string {
	var lines []string
	line := ""
	for _, m := range []mark{markComplete, markPartly, markRunning, markFailing, markFailed, markWaiting} {
		if !l[m] {
			continue
		}
		part := style.glyph(m) + " " + looks[m].means
		if line != "" && len([]rune(indent+line+gap+part)) > style.Width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += gap
		}
		line += part
	}
	if line != "" {
		lines = append(lines, line)
	}
	for i := range lines {
		lines[i] = indent + style.Paint(style.fit(lines[i], style.Width-len(indent)), Faint)
	}
	return lines
}

func (s Style) glyph(m mark) string {
	if s.Blocks {
		return looks[m].block
	}
	return looks[m].ascii
}

// indexMap shows the indexes of an Indexed Job in no more than so many rows: a cell for each, or for each bucket of as many
// as it takes. It is nothing where there is nothing to see: of a single index, and of a Job that is complete.
func (k *job) indexMap(style Style, rows int, legend *legend) []string {
	if !k.indexed || k.completions < 2 || rows == 0 || k.phase() == complete {
		return nil
	}
	labels := len(strconv.Itoa(k.completions))
	inRow := roundDown(style.Width - len(indent) - labels - 1)
	if inRow < 10 {
		return nil
	}
	inRow = min(inRow, k.completions)
	size := roundUp((k.completions + rows*inRow - 1) / (rows * inRow))
	buckets := k.marks(size)
	var lines []string
	for at := 0; at < len(buckets); at += inRow {
		row := buckets[at:min(at+inRow, len(buckets))]
		lines = append(lines, fmt.Sprintf("%s%*d %s", indent, labels, at*size, style.cells(row)))
		for _, m := range row {
			legend[m] = true
		}
	}
	if size > 1 {
		lines = append(lines, style.fit(fmt.Sprintf("%sa character: the worst of %d indexes", indent, size), style.Width))
	}
	return lines
}

// marks are the buckets of so many indexes each.
func (k *job) marks(size int) []mark {
	out := make([]mark, (k.completions+size-1)/size)
	done := coverage(k.completeIndexes.set, size, len(out))
	bad := coverage(k.failedIndexes.set, size, len(out))
	again := coverage(k.failingIndexes, size, len(out))
	run := coverage(k.runningIndexes, size, len(out))
	for i := range out {
		switch whole := min(size, k.completions-i*size); {
		case bad[i] > 0:
			out[i] = markFailed
		case again[i] > 0:
			out[i] = markFailing
		case run[i] > 0:
			out[i] = markRunning
		case done[i] >= whole:
			out[i] = markComplete
		case done[i] > 0:
			out[i] = markPartly
		default:
			out[i] = markWaiting
		}
	}
	return out
}

// cells writes marks, neighbours of one colour in one go.
func (s Style) cells(row []mark) string {
	var b strings.Builder
	for i := 0; i < len(row); {
		j := i
		for j < len(row) && row[j] == row[i] {
			j++
		}
		b.WriteString(s.Paint(strings.Repeat(s.glyph(row[i]), j-i), looks[row[i]].colour))
		i = j
	}
	return b.String()
}

// roundDown is the largest of 1, 2, 5, 10, 20, 50, ... that is not above n, and 0 where n is below 1: rows of such a length
// begin with indexes that are easy to read.
func roundDown(n int) int {
	out := 0
	for power := 1; power <= n; power *= 10 {
		for _, digit := range []int{1, 2, 5} {
			if digit*power <= n {
				out = digit * power
			}
		}
	}
	return out
}

// roundUp is the smallest of 1, 2, 5, 10, 20, 25, 50, 100, 200, 250, ... that is not below n.
func roundUp(n int) int {
	for power := 1; ; power *= 10 {
		for _, tenth := range []int{10, 20, 25, 50} {
			if size := tenth * power / 10; size >= n && (tenth != 25 || power > 1) {
				return size
			}
		}
	}
}
