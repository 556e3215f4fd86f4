// Package table lays out lines of columns as kubectl prints them, each line in a colour of its own. It has no I/O.
package table

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/jobstream/jobstream/internal/progress"
)

// Row is a line with a cell for each column. Cells have neither tabs nor line breaks (see progress.Clean).
type Row struct {
	Cells  []string
	Colour progress.Colour
}

// NewWriter returns a writer that aligns cells separated by tabs, with the gaps that kubectl has between them.
func NewWriter(out io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(out, 0, 8, 3, ' ', 0) }

// Lines returns the line of the columns' names and one for each row, none wider than the style allows.
func Lines(columns []string, rows []Row, style progress.Style) []string {
	var b bytes.Buffer
	w := NewWriter(&b)
	fmt.Fprintln(w, strings.Join(columns, "\t"))
	for _, r := range rows {
		fmt.Fprintln(w, strings.Join(r.Cells, "\t"))
	}
	_ = w.Flush() // a buffer takes all
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	for i, line := range lines {
		lines[i] = style.Fit(strings.TrimRight(line, " "))
		if i > 0 {
			lines[i] = style.Paint(lines[i], rows[i-1].Colour)
		}
	}
	return lines
}
