package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

func sortDurations(all []time.Duration) { slices.Sort(all) }

// quantile is the smallest of the sorted values that at least that share of them does not exceed.
func quantile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*percent+99)/100-1]
}

// printBursts prints what became of our schedules and of the built-in controller's.
func printBursts(results []result) {
	if len(results) == 0 {
		return
	}
	fmt.Printf("\n%d schedules due in the same second. Lateness: from that second to the sight of the Job in a watch.\n\n", results[0].count)
	rows := [][]string{{"", "due", "Jobs made", "twice", "p50", "p99", "the last", "Jobs/s"}}
	for _, r := range results {
		rows = append(rows, []string{r.name, r.due.Format(time.TimeOnly), fmt.Sprintf("%d of %d", len(r.late), r.count), strconv.Itoa(r.double),
			seconds(quantile(r.late, 50)), seconds(quantile(r.late, 99)), seconds(quantile(r.late, 100)), rate(r)})
	}
	if len(results) == 2 {
		a, b := results[0].late, results[1].late
		rows = append(rows, []string{"the second by the first", "", "", "", ratio(a, b, 50), ratio(a, b, 99), ratio(a, b, 100), ""})
	}
	printTable(rows)
	for _, r := range results {
		if len(r.late) < r.count {
			fmt.Printf("\n%s: %d of %d Jobs had been made %v after their time, when the wait ended. Their lateness is that of those that had been made: the true one is greater.\n",
				r.name, len(r.late), r.count, r.wait)
		}
	}
}

// printIdle prints what idle schedules cost.
func printIdle(r idleResult) {
	fmt.Printf("\n%d idle ScheduledJobs, %d of them known. Made in %s; known %s after the first was begun.\n\n", r.count, r.known, seconds(r.made), seconds(r.knew))
	rows := [][]string{{"", "RSS without any", "RSS with them", "peak RSS", "CPU s until all were known", "CPU s per minute at rest"}}
	for _, row := range r.rows {
		perMinute := (row.late.cpu - row.after.cpu).Seconds() * float64(time.Minute) / float64(r.over)
		rows = append(rows, []string{row.name, mebibytes(row.before.rss), mebibytes(row.late.rss), mebibytes(row.late.peak),
			fmt.Sprintf("%.1f", (row.after.cpu - row.before.cpu).Seconds()), fmt.Sprintf("%.2f", perMinute)})
	}
	printTable(rows)
}

// printTable prints a table that is Markdown and can be read as it is.
func printTable(rows [][]string) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 1, ' ', 0)
	for i, row := range rows {
		fmt.Fprintf(w, "| %s\t|\n", strings.Join(row, "\t| "))
		if i == 0 {
			fmt.Fprintf(w, "|---\t|%s\n", strings.Repeat("---:\t|", len(row)-1))
		}
	}
	_ = w.Flush() // to stdout
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

func mebibytes(kib int64) string { return fmt.Sprintf("%.0f MiB", float64(kib)/1024) }

// rate is how many Jobs were made in a second, from the nominal time to the last of them.
func rate(r result) string {
	last := quantile(r.late, 100)
	if last <= 0 {
		return ""
	}
	return fmt.Sprintf("%.0f", float64(len(r.late))/last.Seconds())
}

func ratio(a, b []time.Duration, percent int) string {
	if len(a) == 0 || len(b) == 0 || quantile(a, percent) <= 0 {
		return ""
	}
	return fmt.Sprintf("%.1f ×", quantile(b, percent).Seconds()/quantile(a, percent).Seconds())
}
