package history_test

import (
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/kubectl/history"
	"github.com/jobstream/jobstream/internal/progress"
	"github.com/jobstream/jobstream/internal/zone"
)

// check compares lines with the wanted ones. ^ stands for an escape character.
func check(t *testing.T, got []string, want string) {
	t.Helper()
	if text := "\n" + strings.ReplaceAll(strings.Join(got, "\n"), "\x1b", "^") + "\n"; text != want {
		t.Errorf("got%s\nwant%s", text, want)
	}
}

// all are ticks of every kind.
func all() []history.Tick {
	h := history.New()
	s := scheduled(started(0, ended("Complete")), started(1, ended("Complete")), started(2, ended("Failed")), started(3, ended("Missing")), started(4, ended("Missing")),
		not(5, "Skipped", "Overlap", "the Job nightly-x was running"), not(6, "Missed", "Deadline", "it was 2m late"), not(7, "Blocked", "NameTaken", "its name is taken"),
		not(8, "Failed", "Invalid", "spec is wrong"), started(9), started(10))
	s.Status.LastRun = &v1alpha1.EndedRun{JobName: job(4).Name, JobUID: job(4).UID, Result: "Missing", Reason: "Replaced", CompletionTime: *stamp(at(5))}
	h.SawStatus(s)
	h.SawJob(object(2, is(batchv1.JobFailed, "BackoffLimitExceeded", "Job has reached the specified backoff limit"), func(j *batchv1.Job) {
		j.Annotations[v1alpha1.LastFailureAnnotation] = `{"pod":"nightly-4xk2b","node":"worker-1","container":"main","exitCode":3,"reason":"Error","time":"2026-11-21T00:00:00Z"}`
	}))
	h.Announced(finish(1, events.JobSucceeded))
	h.SawJob(object(10))
	return h.Ticks(me.UID)
}

func berlin(t *testing.T) *time.Location {
	t.Helper()
	l, err := zone.Load("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Every kind of tick has a cell of its own without colours, and without any characters that are not ASCII.
func TestLines(t *testing.T) {
	check(t, history.View{Name: "nightly", Now: now, Zone: berlin(t)}.Lines(all()), `
nightly: 11 times since 2026-11-22 11:00 (Europe/Berlin)

  2026-11-22 11:00 ##x/~.!br?+
  # 2 complete  x 1 failed  / 1 deleted before its end  ~ 1 replaced  + 1 active  . 1 skipped
  ! 1 missed  b 1 blocked  r 1 refused  ? 1 end not known

TIME               VERDICT               RESULT     DURATION   JOB                 REASON
2026-11-22 11:00   Started               Complete              nightly-d5ntm8bvm
2026-11-22 12:00   Started               Complete   2m         nightly-dhgtkjf7f
2026-11-22 13:00   Started               Failed     4m30s      nightly-btnvx24r6   BackoffLimitExceeded: exit code 3, Error, Pod nightly-4xk2b, node worker-1
2026-11-22 14:00   Started               Missing               nightly-czcvxc9gp
2026-11-22 15:00   Started               Missing               nightly-fm4rc5f8w   Replaced
2026-11-22 16:00   Skipped (Overlap)                                               the Job nightly-x was running
2026-11-22 17:00   Missed (Deadline)                                               it was 2m late
2026-11-22 18:00   Blocked (NameTaken)                                             its name is taken
2026-11-22 19:00   Failed (Invalid)                                                spec is wrong
2026-11-22 20:00   Started               unknown               nightly-dbqz2kjd4
2026-11-22 21:00   Started               Running    119m       nightly-fsc9fqbcw
`)
}

// docs/kubectl.md shows what the program prints.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../../docs/kubectl.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := history.View{Name: "nightly", Now: now, Zone: berlin(t), Style: progress.Style{Blocks: true}}.Lines(all())
	if want := strings.Join(lines, "\n"); !strings.Contains(string(text), "```\n"+want+"\n```\n") {
		t.Errorf("docs/kubectl.md does not have\n%s", want)
	}
}

// On a terminal, what went wrong and what goes on stand out, and each line fits.
func TestLinesOnATerminal(t *testing.T) {
	check(t, history.View{Name: "nightly", Now: now, Zone: berlin(t), Style: progress.Style{Width: 60, Height: 40, Colour: true, Blocks: true}}.Lines(all()), `
nightly: 11 times since 2026-11-22 11:00 (Europe/Berlin)

  2026-11-22 11:00 ^[32m██^[0m^[31mx/^[0m^[33m~^[0m^[2m·^[0m^[31m!br^[0m?^[36m▒^[0m
^[2m  █ 2 complete  x 1 failed  / 1 deleted before its end^[0m
^[2m  ~ 1 replaced  ▒ 1 active  · 1 skipped  ! 1 missed^[0m
^[2m  b 1 blocked  r 1 refused  ? 1 end not known^[0m

TIME               VERDICT               RESULT     DURATIO…
2026-11-22 11:00   Started               Complete          …
2026-11-22 12:00   Started               Complete   2m     …
^[31m2026-11-22 13:00   Started               Failed     4m30s  …^[0m
^[31m2026-11-22 14:00   Started               Missing           …^[0m
^[33m2026-11-22 15:00   Started               Missing           …^[0m
^[2m2026-11-22 16:00   Skipped (Overlap)                       …^[0m
^[31m2026-11-22 17:00   Missed (Deadline)                       …^[0m
^[31m2026-11-22 18:00   Blocked (NameTaken)                     …^[0m
^[31m2026-11-22 19:00   Failed (Invalid)                        …^[0m
2026-11-22 20:00   Started               unknown           …
^[36m2026-11-22 21:00   Started               Running    119m   …^[0m
`)
}

// hours are complete runs, one after another.
func hours(n int) []history.Tick {
	h := history.New()
	for hour := range n {
		h.Announced(said(hour, events.Started))
		result := events.JobSucceeded
		if hour%50 == 7 {
			result = events.JobFailed
		}
		h.Announced(finish(hour, result))
	}
	return h.Ticks(me.UID)
}

// A screen has the newest; -o wide has all.
func TestManyTicks(t *testing.T) {
	v := history.View{Name: "nightly", Now: now, Zone: time.UTC, Style: progress.Style{Width: 60, Height: 20, Blocks: true}}
	check(t, v.Lines(hours(168)), `
nightly: 168 times since 2026-11-22 10:00 (UTC)

  2026-11-24 03:00 ████████████████x████████████████████████
  2026-11-25 20:00 █████████████████████████x███████████████
  2026-11-27 13:00 ██████████████████████████████████x██████
  2026-11-29 06:00 ████
  and 41 earlier times (-o wide shows all)
  █ 164 complete  x 4 failed

TIME               VERDICT   RESULT     DURATION   JOB     …
2026-11-29 03:00   Started   Complete   2m         nightly-…
2026-11-29 04:00   Started   Complete   2m         nightly-…
2026-11-29 05:00   Started   Complete   2m         nightly-…
2026-11-29 06:00   Started   Complete   2m         nightly-…
2026-11-29 07:00   Started   Complete   2m         nightly-…
2026-11-29 08:00   Started   Complete   2m         nightly-…
2026-11-29 09:00   Started   Complete   2m         nightly-…
and 161 earlier verdicts (-o wide shows all)
`)
	v.Style.Height = 8
	if got := v.Lines(hours(168)); !strings.Contains(strings.Join(got, "\n"), "and 162 earlier verdicts") {
		t.Errorf("%q", got)
	}
	v.All, v.Style.Width = true, 0
	if got := v.Lines(hours(500)); len(got) != 2+7+1+1+1+500 {
		t.Errorf("%d lines: %q", len(got), got[:15])
	}
}

// A range of a million times has one line and one cell; a short one has a cell for each time. A schedule of seconds shows them.
func TestRanges(t *testing.T) {
	long := said(0, events.Skipped)
	long.Reason, long.Count, long.Until = "Suspended", 1_000_000, ten.Add(999_999*time.Second)
	short := said(24*12, events.Missed)
	short.Reason, short.Count, short.Until = "Superseded", 3, short.Nominal.Add(2*time.Second)
	h := history.New()
	h.Announced(long)
	h.Announced(short)
	h.Announced(said(24*13, events.Started))
	check(t, history.View{Name: "nightly", Now: now, Zone: time.UTC, Style: progress.Style{Width: 80, Blocks: true}}.Lines(h.Ticks(me.UID)), `
nightly: 1000004 times since 2026-11-22 10:00:00 (UTC)

  2026-11-22 10:00:00 ·(1000000)!!!?
  · 1000000 skipped  ! 3 missed  ? 1 end not known  (n) n times in a row

TIME                                         TIMES     VERDICT               RE…
2026-11-22 10:00:00 to 2026-12-03 23:46:39   1000000   Skipped (Suspended)
2026-12-04 10:00:00 to 2026-12-04 10:00:02   3         Missed (Superseded)
2026-12-05 10:00:00                          1         Started               un…
`)
}

// Texts of objects and of messages neither move the cursor, nor change colours, nor add lines; numbers that cannot be do no harm.
func TestHostileTexts(t *testing.T) {
	const evil = "\x1b[2J\x1b[31m\nname\t\u202eevil\x00"
	h := history.New()
	for i, count := range []int64{0, -5, math.MaxInt64, math.MaxInt64} {
		e := said(i, events.Verdict("Started"+evil))
		e.ScheduledJob.Name, e.Reason, e.Message, e.Count = evil, evil, strings.Repeat(evil, 10_000), count
		e.Until = at(i - 3) // before its beginning
		e.Job = &events.Reference{Namespace: evil, Name: evil, UID: job(i).UID}
		h.Announced(e)
		h.Announced(finish(i, events.JobResult(evil), func(f *events.JobFinished) {
			f.Reason, f.Message, f.Start = evil, evil, f.End.Add(time.Hour)
			f.LastFailure = &events.PodFailure{Pod: evil, Node: evil, Container: evil, Reason: evil}
		}))
	}
	ticks := h.Ticks(me.UID)
	for _, style := range []progress.Style{{}, {Width: 79, Height: 23, Blocks: true}, {Width: 5, Height: 2}} {
		lines := history.View{Name: evil, Now: now, Zone: time.UTC, Style: style}.Lines(ticks)
		for _, line := range lines {
			if strings.ContainsAny(line, "\x1b\n\t\x00\u202e") || len(line) > 5000 || style.Width > 0 && ansi.StringWidth(line) > style.Width {
				t.Errorf("in style %+v: %q", style, line)
			}
		}
		if len(lines) > 20 {
			t.Errorf("%d lines", len(lines))
		}
	}
}
