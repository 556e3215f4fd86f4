package finding

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"
)

// Count returns how many findings are of the level.
func Count(all []Finding, l Level) (n int) {
	for _, f := range all {
		if f.Level == l {
			n++
		}
	}
	return n
}

// Print writes a table with one finding on each line, followed by its advice, and the number of findings of each level. Its error
// is that of out.
func Print(out io.Writer, all []Finding) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "STATUS\tCHECK\tFOUND")
	for _, f := range all {
		found := f.Found
		if f.Level != OK && f.Advice != "" {
			found += " -> " + f.Advice
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", f.Level, line(f.Check), line(found))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\n%d OK, %d WARN, %d FAIL\n", Count(all, OK), Count(all, Warn), Count(all, Fail))
	return err
}

// line prevents text from other users from steering a terminal or breaking the table.
func line(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, strings.ReplaceAll(strings.TrimSpace(s), "\n", "; "))
}
