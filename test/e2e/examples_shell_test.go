package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/bus"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// tick returns a verdict, without a schedule to wait for.
func tick(p *harness.Space, schedule string, minute int) events.TickDecided {
	return events.TickDecided{ScheduledJob: events.Reference{Namespace: p.Namespace, Name: schedule, UID: types.UID("uid-of-" + schedule)},
		Verdict: events.Missed, Reason: "Superseded", Count: 1, Nominal: time.Date(2026, 1, 2, 3, minute, 0, 0, time.UTC)}
}

// failure returns the end of a Job, without a Job to wait for.
func failure(p *harness.Space, job string, second int) events.JobFinished {
	at := time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC)
	return events.JobFinished{Job: events.Reference{Namespace: p.Namespace, Name: job, UID: types.UID("uid-of-" + job)}, Result: events.JobFailed,
		Reason: "BackoffLimitExceeded", Start: at, End: at}
}

// announced publishes it as jobstream does.
func announced(p *harness.Space, e events.Public) {
	p.Helper()
	b, err := bus.Connect(p.Context(), bus.Config{URL: p.NATS.As("operator"), Cluster: harness.ClusterName})
	if err != nil {
		p.Fatal(err)
	}
	defer b.Close()
	if err := b.Announce(p.Context(), e); err != nil {
		p.Fatal(err)
	}
}

var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// documented returns the lines of a page that call the NATS command line, each behind the file that is written for it.
func documented(t *testing.T, page string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(harness.Root, page))
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range shellBlock.FindAllStringSubmatch(string(text), -1) {
		file, writes := "", false
		for line := range strings.Lines(block[1]) {
			if writes = writes || strings.HasPrefix(line, "cat >"); writes {
				file, writes = file+line, line != "END\n"
			} else if strings.HasPrefix(line, "nats ") {
				lines, file = append(lines, file+strings.TrimSpace(line)), ""
			}
		}
	}
	return lines
}

// What the documentation shows of the NATS command line works, word for word: each line receives what it asks for.
func shell(t *testing.T, s *harness.System) {
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("jq is missing: install it (apt-get install jq)")
	}
	p := s.Space(t)
	bin := t.TempDir()
	if err := os.Rename(built(t, "test/natscli", "github.com/nats-io/natscli/nats"), filepath.Join(bin, "nats")); err != nil {
		t.Fatal(err)
	}
	p.Apply(quick("pi"))
	p.Apply(harness.Shell("bad", "exit 3", harness.Size(1, 1, 0)))
	p.AwaitEnd("pi", batchv1.JobComplete, timeout)
	p.AwaitEnd("bad", batchv1.JobFailed, timeout)
	announced(p, tick(p, "nightly", 0))
	announced(p, events.PodFinished{Job: events.Reference{Namespace: p.Namespace, Name: "pi", UID: "uid-of-pi"}, // a failed Pod of pi, which succeeds in the end
		Pod: events.Reference{Namespace: p.Namespace, Name: "pi-1", UID: "uid-of-pi-1"}, Result: events.PodFailed, End: time.Now()})
	// The required and the forbidden output of each line, identified by a part of it; the first match counts. Output that
	// contains "later" is published while the line runs.
	expected := []struct{ part, prints, not, as string }{
		{"shop.>", `"subject":"later"`, `"bad"`, "audit"},
		{"nats sub --raw 'jobstream.events.default.*.job.finish.failed.*'", `"subject":"later-bad"`, `"pi"`, "operator"},
		{`.data.result == "Failed").data'`, `"bad"`, `"pi"`, "operator"},
		{`.data.result == "Failed").data |`, p.Namespace + "/bad: Job has reached", "/pi:", "operator"},
		{`"Missed"`, `"Superseded"`, `"result"`, "operator"},
		{"--since 24h", `"subject":"pi"`, "error", "operator"},
		{"consumer add", "Information for Consumer", "error", "operator"},
		{"--js-api-prefix", `"Superseded"`, `"result"`, "audit"},
		{"consumer next", `"Superseded"`, `"result"`, "operator"},
	}
	ran := map[string]bool{}
	var lines []string
	for _, page := range []string{"docs/events.md", "examples/shell/README.md", "examples/javascript/README.md", "examples/chain/README.md", "examples/webhook/README.md"} {
		lines = append(lines, documented(t, page)...)
	}
	here := strings.NewReplacer("events.default.shop.", "events."+harness.ClusterName+"."+p.Namespace+".",
		"events.default.", "events."+harness.ClusterName+".", "jobstream_default_", "jobstream_"+harness.ClusterName+"_")
	for i, line := range lines {
		known := slices.IndexFunc(expected, func(e struct{ part, prints, not, as string }) bool { return strings.Contains(line, e.part) })
		if known < 0 {
			t.Errorf("the test does not expect this line: %s", line)
			continue
		}
		want := expected[known]
		ran[want.part] = true
		switch words := strings.Fields(line[strings.LastIndex(line, "\n")+1:]); words[2] {
		case "add":
			gone(p, words[4])
		case "next":
			made(p, words[4], "schedule.tick.>") // delivered events come again
		}
		e := example(p, fmt.Sprintf("line-%d", i), "sh", []string{"-c", "cd " + bin + "\n" + here.Replace(line)}, []string{"NATS_URL=" + p.NATS.As(want.as), "PATH=" + bin + ":" + os.Getenv("PATH")})
		begin(p, e)
		for n := 0; strings.Contains(want.prints, "later") && !strings.Contains(e.Printed(), want.prints) && n < 1000; n++ {
			announced(p, tick(p, "later", 1000*i+n)) // it receives only what is published while it listens
			announced(p, failure(p, "later-bad", 1000*i+n))
		}
		prints(p, e, want.prints)
		if strings.Contains(e.Printed(), want.not) {
			t.Errorf("%s prints %q, too:\n%s", line, want.not, e.Printed())
		}
		if err := e.Kill(); err != nil {
			t.Error(err)
		}
		t.Logf("as %s: %s", want.as, line)
	}
	for _, e := range expected {
		if !ran[e.part] {
			t.Errorf("no page has a line with %q", e.part)
		}
	}
}
