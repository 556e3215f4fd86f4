package cluster_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/jobstream/jobstream/functions/schedule"
)

// TestScheduledJobsRefused: the message names the field and the remedy. docs/schedules.md has a row for the field.
func TestScheduledJobsRefused(t *testing.T) {
	k := newKindTest(t)
	document, err := os.ReadFile("../../docs/schedules.md")
	if err != nil {
		t.Fatal(err)
	}
	const once = `schedule: null, runAt: "2026-12-24T18:00:00Z"`
	for _, c := range []struct{ name, spec, field, says string }{
		{"neither schedule nor runAt", `{schedule: null}`, "spec", "schedule or runAt is missing"},
		{"both schedule and runAt", `{runAt: "2026-12-24T18:00:00Z"}`, "spec.runAt", "leave one of them out"},
		{"a date without a time", `{schedule: null, runAt: "2026-12-24"}`, "spec.runAt", "such as 2026-12-24T18:00:00Z"},
		{"a time in small letters, which Go does not read", `{schedule: null, runAt: "2026-12-24t18:00:00z"}`, "spec.runAt", "RFC 3339"},
		{"a time without a zone", `{schedule: null, runAt: "2026-12-24T18:00:00"}`, "spec.runAt", "an offset"},
		{"half a second", `{schedule: null, runAt: "2026-12-24T18:00:00.5Z"}`, "spec.runAt", "whole seconds"},
		{"a day that is not", `{schedule: null, runAt: "2026-02-30T18:00:00Z"}`, "spec.runAt", "RFC 3339"},
		{"the zero time", `{schedule: null, runAt: "0001-01-01T00:00:00Z"}`, "spec.runAt", "1970 or later"},
		{"a zone for runAt", `{` + once + `, timeZone: Europe/Berlin}`, "spec.timeZone", "write the offset into runAt"},
		{"catchUp for runAt", `{` + once + `, catchUp: None}`, "spec.catchUp", "startingDeadlineSeconds"},
		{"onScheduleChange for runAt", `{` + once + `, onScheduleChange: Wait}`, "spec.onScheduleChange", "leave it out"},
		{"jitter for runAt", `{` + once + `, jitterSeconds: 10}`, "spec.jitterSeconds", "into runAt"},
		{"startAfter for runAt", `{` + once + `, startAfter: "2026-12-24T17:00:00Z"}`, "spec.startAfter", "into runAt"},
		{"a date to start after", `{startAfter: "2026-12-24"}`, "spec.startAfter", "such as 2026-12-24T18:00:00Z"},
		{"the zero time to start after", `{startAfter: "0001-01-01T00:00:00Z"}`, "spec.startAfter", "1970 or later"},
		{"a time to live for a schedule", `{ttlSecondsAfterFinished: 10}`, "spec.ttlSecondsAfterFinished", "successfulJobsHistoryLimit"},
		{"an unknown zone", `{timeZone: Mars/Olympus}`, "spec.timeZone", "unknown time zone Mars/Olympus"},
		{"a zone in small letters", `{timeZone: europe/berlin}`, "spec.timeZone", "such as Europe/Berlin"},
		{"Local", `{timeZone: Local}`, "spec.timeZone", "another zone on every machine"},
		{"local", `{timeZone: local}`, "spec.timeZone", "another zone on every machine"},
		{"an offset for a zone", `{timeZone: "+01:00"}`, "spec.timeZone", "neither an offset"},
		{"an empty zone", `{timeZone: ""}`, "spec.timeZone", "leave it out for UTC"},
		{"a path for a zone", `{timeZone: ../../etc/passwd}`, "spec.timeZone", "IANA name"},
		{"a deadline of less than nothing", `{startingDeadlineSeconds: -1}`, "spec.startingDeadlineSeconds", "must be at least 1"},
		{"a deadline of nothing", `{startingDeadlineSeconds: 0}`, "spec.startingDeadlineSeconds", "leave it out for no limit"},
		{"a jitter of less than nothing", `{jitterSeconds: -1}`, "spec.jitterSeconds", "greater than or equal to 0"},
		{"a jitter of more than a day", `{jitterSeconds: 86401}`, "spec.jitterSeconds", "less than or equal to 86400"},
		{"fewer complete Jobs than none", `{successfulJobsHistoryLimit: -1}`, "spec.successfulJobsHistoryLimit", "greater than or equal to 0"},
		{"fewer failed Jobs than none", `{failedJobsHistoryLimit: -1}`, "spec.failedJobsHistoryLimit", "greater than or equal to 0"},
		{"a negative time to live", `{` + once + `, ttlSecondsAfterFinished: -1}`, "spec.ttlSecondsAfterFinished", "greater than or equal to 0"},
		{"an unknown concurrencyPolicy", `{concurrencyPolicy: Sometimes}`, "spec.concurrencyPolicy", `"Allow", "Forbid", "Replace", "Queue"`},
		{"an unknown catchUp", `{catchUp: Some}`, "spec.catchUp", `"Latest", "All", "None"`},
		{"an unknown onScheduleChange", `{onScheduleChange: Never}`, "spec.onScheduleChange", `"CatchUp", "Wait"`},
		{"schedules beside schedule", `{schedules: ["0 1 * * *"]}`, "spec.schedules", "write all schedules into it"},
		{"no schedules", `{schedule: null, schedules: []}`, "spec.schedules", "at least 1 items"},
		{"a listed schedule of four fields", `{schedule: null, schedules: ["0 1 * *"]}`, "spec.schedules[0]", "has five fields"},
		{"@every among schedules", `{schedule: null, schedules: ["0 1 * * *", "@every 1h"]}`, "spec.schedules[1]", "it stands alone, in schedule"},
		{"eleven schedules", `{schedule: null, schedules: [` + strings.Repeat(`"0 1 * * *", `, 11) + `]}`, "spec.schedules", "at most 10 items"},
		{"a date of another order", `{exclude: ["24.12.2026"]}`, "spec.exclude[0]", "such as 2026-12-24"},
		{"three fields to exclude", `{exclude: ["2026-12-24", "* * *"]}`, "spec.exclude[1]", "five fields of a schedule"},
		{"a character that means nothing", `{exclude: ["* $ * * *"]}`, "spec.exclude[0]", "names of months"},
		{"the 13th month", `{exclude: ["2026-13-01/2026-13-02"]}`, "spec.exclude[0]", "such as 2026-12-24"},
		{"exclude for runAt", `{` + once + `, exclude: ["2026-12-24"]}`, "spec.exclude", "belongs to schedule"},
		{"a date not before", `{notBefore: "2026-12-24"}`, "spec.notBefore", "such as 2026-12-24T18:00:00Z"},
		{"the zero time not before", `{notBefore: "0001-01-01T00:00:00Z"}`, "spec.notBefore", "1970 or later"},
		{"notBefore for runAt", `{` + once + `, notBefore: "2026-12-24T17:00:00Z"}`, "spec.notBefore", "into runAt"},
		{"a date not after", `{notAfter: "2026-12-24"}`, "spec.notAfter", "such as 2026-12-24T18:00:00Z"},
		{"notAfter before notBefore", `{notBefore: "2026-12-24T18:00:00Z", notAfter: "2026-12-24T18:00:00+01:00"}`, "spec.notAfter", "write a later time"},
		{"notAfter for runAt", `{` + once + `, notAfter: "2026-12-24T19:00:00Z"}`, "spec.notAfter", "startingDeadlineSeconds"},
		{"a queue of nothing", `{concurrencyPolicy: Queue, queueLimit: 0}`, "spec.queueLimit", "greater than or equal to 1"},
		{"a queue without end", `{concurrencyPolicy: Queue, queueLimit: 101}`, "spec.queueLimit", "less than or equal to 100"},
		{"a queueLimit without Queue", `{concurrencyPolicy: Forbid, queueLimit: 2}`, "spec.queueLimit", "write concurrencyPolicy: Queue"},
		{"catchUp with Queue", `{concurrencyPolicy: Queue, catchUp: All}`, "spec.catchUp", "queueLimit"},
		{"a pause after nothing", `{pauseAfterFailures: 0}`, "spec.pauseAfterFailures", "greater than or equal to 1"},
		{"a pause after too many", `{pauseAfterFailures: 101}`, "spec.pauseAfterFailures", "less than or equal to 100"},
		{"a pause for runAt", `{` + once + `, pauseAfterFailures: 1}`, "spec.pauseAfterFailures", "there is one run"},
		{"no template", `{jobTemplate: null}`, "spec.jobTemplate", "Required"},
		{"a template of nothing", `{jobTemplate: {spec: null}}`, "spec.jobTemplate", "jobTemplate.spec is missing"},
		{"no Pod template", `{jobTemplate: {spec: {template: {spec: null}}}}`, "spec.jobTemplate.spec.template", "write containers and a restartPolicy"},
		{"no containers", `{jobTemplate: {spec: {template: {spec: {containers: null}}}}}`, "spec.jobTemplate.spec.template.spec.containers", "Required"},
		{"restartPolicy Always", `{jobTemplate: {spec: {template: {spec: {restartPolicy: Always}}}}}`, "spec.jobTemplate.spec.template.spec.restartPolicy", "OnFailure or Never"},
		{"no restartPolicy", `{jobTemplate: {spec: {template: {spec: {restartPolicy: null}}}}}`, "spec.jobTemplate.spec.template.spec.restartPolicy", "OnFailure or Never"},
		{"a manualSelector", `{jobTemplate: {spec: {manualSelector: true}}}`, "spec.jobTemplate.spec.manualSelector", "leave it out"},
		{"a selector", `{jobTemplate: {spec: {selector: {matchLabels: {a: b}}}}}`, "spec.jobTemplate.spec.selector", "leave it out"},
		{"a number that no int32 holds", `{jobTemplate: {spec: {parallelism: 3000000000}}}`, "spec.jobTemplate.spec.parallelism", "int32"},
		{"a field that there is not", `{runat: "2026-12-24T18:00:00Z"}`, "spec.runat", "unknown field"},
	} {
		t.Run(c.name, func(t *testing.T) {
			says := k.try(scheduledJob(t, "spec: "+c.spec))
			t.Log(says)
			if !regexp.MustCompile(regexp.QuoteMeta(c.field)+`(\b|:)`).MatchString(says) || !strings.Contains(says, c.says) {
				t.Errorf("it should name %s and say %q: %q", c.field, c.says, says)
			}
			if row := "| `" + entry.ReplaceAllString(strings.TrimPrefix(c.field, "spec."), "") + "` |"; strings.HasPrefix(c.field, "spec.") && c.field != "spec.runat" && !strings.Contains(string(document), row) {
				t.Errorf("docs/schedules.md has no row of %s", row)
			}
		})
	}
	if says := k.try(scheduledJob(t, "metadata: {name: "+strings.Repeat("a", 53)+"}")); !strings.Contains(says, "metadata.name must be at most 52 characters") {
		t.Errorf("a name of 53 characters: %q", says)
	}
}

// entry is the index of an entry in the name of a field.
var entry = regexp.MustCompile(`\[\d+\]`)

func TestScheduledJobsAccepted(t *testing.T) {
	k := newKindTest(t)
	const once = `schedule: null, runAt: "2026-12-24T18:00:00Z"`
	for _, c := range []struct{ name, change string }{
		{"a name of 52 characters", `metadata: {name: ` + strings.Repeat("a", 52) + `}`},
		{"once", `spec: {` + once + `}`},
		{"once, with an offset", `spec: {schedule: null, runAt: "2026-12-24T18:00:00+05:30"}`},
		{"once, with a time to live", `spec: {` + once + `, ttlSecondsAfterFinished: 0, startingDeadlineSeconds: 1}`},
		{"once, with the defaults written out", `spec: {` + once + `, catchUp: Latest, onScheduleChange: CatchUp, jitterSeconds: 0, suspend: false}`},
		{"a zone", `spec: {timeZone: Europe/Berlin}`},
		{"a zone with digits and signs", `spec: {timeZone: Etc/GMT+5}`},
		{"a zone with an underscore", `spec: {timeZone: America/Argentina/Buenos_Aires}`},
		{"UTC", `spec: {timeZone: UTC}`},
		{"a time to start after", `spec: {startAfter: "2026-12-24T18:00:00+01:00"}`},
		{"several schedules, and what they leave out", `spec: {schedule: null, schedules: ["0 9 * * MON-FRI", "H 12 * * SAT", "@daily"], exclude: ["2026-12-24", "2026-12-24/2027-01-06", "* 0-6 * * *"], timeZone: Europe/Berlin}`},
		{"a window", `spec: {notBefore: "2026-12-24T18:00:00Z", notAfter: "2026-12-24T19:00:00+01:00"}`},
		{"a queue, and a pause", `spec: {concurrencyPolicy: Queue, queueLimit: 100, pauseAfterFailures: 100}`},
		{"everything", `spec: {startAfter: "2020-01-01T00:00:00Z", concurrencyPolicy: Replace, catchUp: All, onScheduleChange: Wait, jitterSeconds: 86400, suspend: true, startingDeadlineSeconds: 9, successfulJobsHistoryLimit: 0, failedJobsHistoryLimit: 0}`},
		{"manualSelector off", `spec: {jobTemplate: {spec: {manualSelector: false}}}`},
	} {
		if says := k.try(scheduledJob(t, c.change)); says != "" {
			t.Errorf("%s: %s", c.name, says)
		}
	}
}

// TestScheduleGrammar: the API server accepts exactly those schedules that functions/schedule can parse.
func TestScheduleGrammar(t *testing.T) {
	k := newKindTest(t)
	for _, c := range []struct{ spec, says string }{
		{"* * * * *", ""}, {"*/15 8-17 * * MON-FRI", ""}, {"*/10 30 2 * * *", ""}, {"0 0 1 jan,Jul ?", ""}, {"00 08-17 01 * 1-fri", ""}, {"5/20 * * * *", ""},
		{"*/90 * * * *", ""}, {"0 22-23,0-6 * * *", ""}, {" 0\t0  1 1 * \n", ""}, {"59 59 23 31 12 6", ""}, {"1-5/2,30,40-50/3 * * * *", ""}, {"0 0 * * SUN,6", ""},
		{"H H * * *", ""}, {"H H H H H H", ""}, {"H/15 H(9-17) * * *", ""}, {"0 H(0-5)/6 * * *", ""}, {"0 0 H(1-31)/31 * *", ""}, {"H(0-29),H(30-59) * * * *", ""}, {"0 0 H/28 H/12 H/7", ""},
		{"@yearly", ""}, {"@annually", ""}, {"@monthly", ""}, {"@weekly", ""}, {" @daily ", ""}, {"@midnight", ""}, {"@hourly", ""},
		{"@every 90s", ""}, {"@every 1h30m", ""}, {"@every 1.5m", ""}, {"@every 1500ms500ms", ""}, {"@every 2000000us", ""}, {"@every\t1h", ""},
		{"", "five fields"}, {" ", "five fields"}, {"* * * *", "five fields"}, {"* * * * * * *", "five fields"},
		{"60 0 * * * *", "field second takes 0-59"}, {"60 * * * *", "field minute takes 0-59"}, {"* 24 * * *", "field hour takes 0-23"}, {"0 0 0 * *", "field day of month takes 1-31"},
		{"0 0 32 * *", "field day of month takes 1-31"}, {"0 0 1 13 *", "field month takes 1-12 or JAN-DEC"}, {"0 0 * MON *", "field month takes"}, {"0 0 * * 7", "0 is Sunday"}, {"0 0 * * JAN", "field day of week"},
		{"99 1,2 3 4 5", "field minute"}, {"1, * * * *", "field minute"}, {",1 * * * *", "field minute"}, {"1,,2 * * * *", "field minute"}, {"-5 * * * *", "field minute"}, {"+5 * * * *", "field minute"},
		{"*/0 * * * *", "field minute"}, {"*-5 * * * *", "field minute"}, {"1-2-3 * * * *", "field minute"}, {"1/2/3 * * * *", "field minute"}, {"x * * * *", "field minute"}, {"٣ * * * *", "field minute"},
		{"0 22-6 * * *", "22-23,0-6 for 22-6"}, {"0 0 * * FRI-MON", "a <= b"}, {"0 0 * DEC-1 *", "a <= b"}, {"0 0 20-010 * *", "a <= b"}, {"0 H(5-2) * * *", "a <= b"},
		{"h * * * *", "field minute"}, {"H/1 * * * *", "field minute"}, {"H/61 * * * *", "field minute"}, {"0 0 H/29 * *", "day of month"}, {"0 H(20-24) * * *", "field hour"}, {"H(5 * * * *", "field minute"},
		{"H-5 * * * *", "field minute"}, {"0 H(0-5)/7 * * *", "length of its range"}, {"H(0-58)/60 * * * *", "length of its range"},
		{"TZ=Europe/Berlin 0 0 * * *", "into the field timeZone"}, {"CRON_TZ=UTC 0 0 * * *", "into the field timeZone"}, {"TZ=0", "into the field timeZone"},
		{"@reboot", "write @yearly"}, {"@Daily", "write @yearly"}, {"@daily 5", "write @yearly"}, {"@every", "@every needs"}, {"@everyday", "write @yearly"},
		{"@every 500ms", "at least one"}, {"@every 1500ms", "whole seconds"}, {"@every 1s1ns", "whole seconds"}, {"@every -1h", "whole seconds"}, {"@every 0s", "at least one"}, {"@every 1d", "whole seconds"}, {"@every 1", "whole seconds"},
		{"@every 99999999999h", "whole seconds"}, {strings.Repeat("0,", 200) + "0 * * * *", "256"},
	} {
		says := k.try(scheduledJob(t, "spec: {schedule: "+quoted(c.spec)+"}"))
		if (says == "") != (c.says == "") || !strings.Contains(says, c.says) || says != "" && !strings.Contains(says, "spec.schedule: ") {
			t.Errorf("%q: %q, which should say %q", c.spec, says, c.says)
		}
		agree(t, c.spec, says)
	}

	// Schedules that are nearly right, and some that are.
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	number := func() string {
		return pick("0", "1", "5", "6", "7", "12", "13", "23", "24", "28", "29", "31", "32", "59", "60", "07", "MON", "sat", "Jan", "DEC", "x")
	}
	term := func() string {
		base := pick("*", "*", "?", number(), number(), number()+"-"+number(), number()+"-"+number(), "H", "H("+number()+"-"+number()+")")
		return base + pick("", "", "", "/"+number())
	}
	const near = 500
	read := 0
	for range near {
		var words []string
		for range 5 + r.IntN(2) {
			word := pick("*", "*", term())
			for r.IntN(4) == 0 {
				word += "," + term()
			}
			words = append(words, word)
		}
		spec := strings.Join(words, pick(" ", " ", "  ", "\t"))
		if agree(t, spec, k.try(scheduledJob(t, "spec: {schedule: "+quoted(spec)+"}"))) {
			read++
		}
	}
	t.Logf("%d of %d were read", read, near)
}

// agree asserts that the API server and functions/schedule agree about a schedule, and returns whether it is accepted. Only
// functions/schedule knows the calendar, and rejects a date that never comes.
func agree(t *testing.T, spec, refusal string) bool {
	t.Helper()
	_, err := schedule.Parse(spec, schedule.Options{})
	if err != nil && strings.Contains(err.Error(), "it is never due") {
		err = nil
	}
	if (err == nil) != (refusal == "") {
		t.Errorf("%q: the API server says %q, and functions/schedule %v", spec, refusal, err)
	}
	return err == nil
}

// quoted returns a YAML scalar.
func quoted(s string) string {
	return `"` + strings.NewReplacer("\t", `\t`, "\n", `\n`, `"`, `\"`).Replace(s) + `"`
}

// startAfter sets where the schedule of a new object begins: it can be removed, and neither changed nor added.
func TestStartAfterOfAnObjectThatExists(t *testing.T) {
	k := newKindTest(t)
	for _, c := range []struct{ name, at, change, says string }{
		{"removed", `{startAfter: "2026-12-24T18:00:00Z"}`, `{startAfter: null}`, ""},
		{"left-alone", `{startAfter: "2026-12-24T18:00:00Z"}`, `{schedule: "1 * * * *"}`, ""},
		{"changed", `{startAfter: "2026-12-24T18:00:00Z"}`, `{startAfter: "2026-12-24T19:00:00Z"}`, "counts only when the object is created"},
		{"added", `{}`, `{startAfter: "2026-12-24T19:00:00Z"}`, "counts only when the object is created"},
	} {
		t.Run(c.name, func(t *testing.T) {
			live, err := k.Create(t.Context(), scheduledJob(t, "{metadata: {name: "+c.name+"}, spec: "+c.at+"}"), metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var change map[string]any
			if err := yaml.Unmarshal([]byte("spec: "+c.change), &change); err != nil {
				t.Fatal(err)
			}
			merge(live.Object, change)
			_, err = k.Update(t.Context(), live, metav1.UpdateOptions{})
			if says := fmt.Sprint(err); c.says == "" && err != nil || !strings.Contains(says, c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
}
