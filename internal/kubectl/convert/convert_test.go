package convert_test

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/jobstream/jobstream/internal/kubectl/convert"
)

// The files in testdata are conversions as a user sees them: the report, a line of =, and standard output. Rewrite them with
//
//	go test ./internal/kubectl/convert -run TestStreams -rewrite
func TestStreams(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			o := convert.Options{Now: now}
			for _, a := range d.CmdArgs {
				if a.Key == "time-zone" {
					o.TimeZone = a.Vals[0]
				}
			}
			f := map[string]func([]byte, convert.Options) ([]byte, []convert.Report, error){"forward": convert.Forward, "back": convert.Back}[d.Cmd]
			if f == nil {
				d.Fatalf(t, "unknown command %s", d.Cmd)
			}
			out, reports, err := f([]byte(d.Input+"\n"), o)
			if err != nil {
				return "error: " + err.Error() + "\n"
			}
			var b bytes.Buffer
			convert.Write(&b, reports)
			b.WriteString("====\n")
			if strings.TrimRight(string(out), "\n") == strings.TrimRight(d.Input, "\n") {
				b.WriteString("(as it was)\n")
			} else {
				b.Write(out)
			}
			return b.String()
		})
	})
}

// TestNightsInWhichTheClocksChange: the report names the difference, and docs/cronjobs.md has a row for the schedule.
func TestNightsInWhichTheClocksChange(t *testing.T) {
	page, err := os.ReadFile("../../../docs/cronjobs.md")
	if err != nil {
		t.Fatal(err)
	}
	winter, summer := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC), time.Date(2027, 6, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		schedule string
		now      time.Time
		says     string
	}{
		{"30 2 * * *", winter, "on 2027-03-28 a CronJob runs at no time, a ScheduledJob at 03:00 CEST\n"},
		{"30 2 * * *", summer, "on 2027-10-31 a CronJob runs at 02:30 CEST, 02:30 CET, a ScheduledJob at 02:30 CEST\n"},
		{"*/10 2 * * *", winter, "on 2027-03-28 a CronJob runs at no time, a ScheduledJob at 03:00 CEST\n"},
		{"*/10 2 * * *", summer, "(12 times), a ScheduledJob at 02:00 CEST, 02:10 CEST, … 02:50 CEST (6 times)\n"},
		{"0 0-6 * * *", winter, "on 2027-10-31 a CronJob runs at 01:00 CEST, 02:00 CEST, … 05:00 CET (6 times), a ScheduledJob at 01:00 CEST, 02:00 CEST, … 05:00 CET (5 times)\n"},
		{"0 3 * * *", winter, ""},
		{"*/30 * * * *", winter, ""},
	} {
		t.Run(c.schedule+" "+c.now.Format(time.DateOnly), func(t *testing.T) {
			cron := `{apiVersion: batch/v1, kind: CronJob, metadata: {name: a}, spec: {schedule: "` + c.schedule +
				`", timeZone: Europe/Berlin, jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: a}]}}}}}}`
			_, reports, err := convert.Forward([]byte(cron), convert.Options{Now: c.now})
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			convert.Write(&b, reports)
			if _, says, told := strings.Cut(b.String(), "around the change of the clock "); told != (c.says != "") || !strings.HasSuffix(says, c.says) {
				t.Errorf("the report should end with %q: %s", c.says, b.String())
			}
			if !strings.Contains(string(page), "\n| `"+c.schedule+"` | ") {
				t.Errorf("docs/cronjobs.md has no row for %s", c.schedule)
			}
		})
	}
}
