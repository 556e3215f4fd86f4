package report

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Sort sorts durations, the shortest first.
func Sort(all []time.Duration) { slices.Sort(all) }

// Quantile is the smallest of the sorted values that at least that percentage of them does not exceed; 0 where there are none.
func Quantile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*percent+99)/100-1]
}

// Table prints a table in Markdown that is readable as text.
func Table(rows [][]string) { Write(os.Stdout, rows) }

// Write writes such a table.
func Write(out io.Writer, rows [][]string) {
	w := tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	for i, row := range rows {
		fmt.Fprintf(w, "| %s\t|\n", strings.Join(row, "\t| "))
		if i == 0 {
			fmt.Fprintf(w, "|---\t|%s\n", strings.Repeat("---:\t|", len(row)-1))
		}
	}
	_ = w.Flush() // to stdout, or a buffer
}

// Seconds writes a duration to the hundredth.
func Seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// Mebibytes writes an amount of memory.
func Mebibytes(kib int64) string { return fmt.Sprintf("%.0f MiB", float64(kib)/1024) }

// Number writes three digits, and all before the point.
func Number(n float64) string {
	switch size := math.Abs(n); {
	case n == math.Trunc(n), size >= 100:
		return fmt.Sprintf("%.0f", n)
	case size >= 10:
		return fmt.Sprintf("%.1f", n)
	}
	return fmt.Sprintf("%.2f", n)
}
