package convert_test

import (
	"bytes"
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
