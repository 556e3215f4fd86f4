package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/jobstream/jobstream/test/bench/report"
)

// printBursts prints the results of jobstream's schedules and of the built-in controller's.
func printBursts(results []result) {
	if len(results) == 0 {
		return
	}
	fmt.Printf("\n%d schedules due in the same second. Lateness: from that second to the observation of the Job in a watch.\n\n", results[0].count)
	rows := [][]string{{"", "due", "Jobs made", "twice", "p50", "p99", "the last", "Jobs/s"}}
	for _, r := range results {
		rows = append(rows, []string{r.name, r.due.Format(time.TimeOnly), fmt.Sprintf("%d of %d", len(r.late), r.count), strconv.Itoa(r.double),
			report.Seconds(report.Quantile(r.late, 50)), report.Seconds(report.Quantile(r.late, 99)), report.Seconds(report.Quantile(r.late, 100)), rate(r)})
	}
	if len(results) == 2 {
		a, b := results[0].late, results[1].late
		rows = append(rows, []string{"the second by the first", "", "", "", ratio(a, b, 50), ratio(a, b, 99), ratio(a, b, 100), ""})
	}
	report.Table(rows)
	for _, r := range results {
		if len(r.late) < r.count {
			fmt.Printf("\n%s: %d of %d Jobs had been made %v after their time, when the wait ended. Their lateness is that of those that had been made: the true one is greater.\n",
				r.name, len(r.late), r.count, r.wait)
		}
	}
}

// printIdle prints what idle schedules cost.
func printIdle(r idleResult) {
	fmt.Printf("\n%d idle ScheduledJobs, %d of them known. Made in %s; known %s after the first was begun.\n\n", r.count, r.known, report.Seconds(r.made), report.Seconds(r.knew))
	rows := [][]string{{"", "RSS without any", "RSS with them", "peak RSS", "CPU s until all were known", "CPU s per minute at rest"}}
	for _, row := range r.rows {
		perMinute := (row.late.CPU - row.after.CPU).Seconds() * float64(time.Minute) / float64(r.over)
		rows = append(rows, []string{row.name, report.Mebibytes(row.before.RSS), report.Mebibytes(row.late.RSS), report.Mebibytes(row.late.Peak),
			fmt.Sprintf("%.1f", (row.after.CPU - row.before.CPU).Seconds()), fmt.Sprintf("%.2f", perMinute)})
	}
	report.Table(rows)
}

// rate is how many Jobs were made in a second, from the nominal time to the last of them.
func rate(r result) string {
	last := report.Quantile(r.late, 100)
	if last <= 0 {
		return ""
	}
	return fmt.Sprintf("%.0f", float64(len(r.late))/last.Seconds())
}

func ratio(a, b []time.Duration, percent int) string {
	if len(a) == 0 || len(b) == 0 || report.Quantile(a, percent) <= 0 {
		return ""
	}
	return fmt.Sprintf("%.1f ×", report.Quantile(b, percent).Seconds()/report.Quantile(a, percent).Seconds())
}
