package main

import (
	"fmt"
	"time"

	"github.com/jobstream/jobstream/test/bench/report"
)

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
