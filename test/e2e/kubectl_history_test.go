package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// historyRecording is in docs/.
const historyRecording = "kubectl-history.md"

// asksNATS lets the terminal's commands find the bus, as users of the NATS command line do.
func (u *terminal) asksNATS() {
	u.env = append(u.env, "NATS_URL="+u.NATSURL(), "JOBSTREAM_CLUSTER_NAME="+harness.ClusterName)
}

// screenshot runs a line on a terminal of 120 columns and 30 lines, and returns what it shows in the end.
func (u *terminal) screenshot(line string, env ...string) (lines []string, written string) {
	u.Helper()
	c := exec.Command("bash", "-c", line)
	c.Dir, c.Env = u.dir, append(append(slices.Clone(u.env), "TERM=xterm-256color", "LANG=C.UTF-8"), env...)
	term, err := harness.OpenTerminal(c, 120, 30)
	if err != nil {
		u.Fatal(err)
	}
	code, err := term.Exit(timeout)
	if err != nil || code != 0 {
		u.Fatalf("$ %s: exit code %d, %v: %s", line, code, err, term.Written())
	}
	shots := term.Shots()
	return shots[len(shots)-1].Lines, term.Written()
}

// A history whose times are all whole minutes shows no seconds: that of the one failed Job is, one run of twenty.
var (
	historyHead = regexp.MustCompile(`^report: (\d+) times? since 20\d\d-\d\d-\d\d \d\d:\d\d(:\d\d)? \(UTC\)$`)
	stripRow    = regexp.MustCompile(`^  20\d\d-\d\d-\d\d \d\d:\d\d(?::\d\d)? ([█x·▒!?]+)$`)
	stripLegend = regexp.MustCompile(`([█x·▒!?]) (\d+) (complete|failed|skipped|active|missed|end not known)`)
	historyMore = regexp.MustCompile(`^and (\d+) earlier verdicts \(-o wide shows all\)$`)
	// A slow cluster misses times, several of which may share a verdict, and then the table has a column of how many.
	historyRow = regexp.MustCompile(`^20\d\d-\d\d-\d\d \d\d:\d\d(?::\d\d)?(?: to 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d)? +(\d+ +)?(?:Started +(?:Complete|Failed) |Skipped \(Overlap\) |Missed \()`)
)

// readHistory checks that a screen agrees with itself: a cell, a count and a line for each time. It returns the cells.
func readHistory(lines []string) (cells string, err error) {
	m := historyHead.FindStringSubmatch(lines[0])
	if m == nil {
		return "", fmt.Errorf("not the first line of a history: %q", lines[0])
	}
	rows, unseen, explained := 0, 0, 0
	for _, line := range lines[1:] {
		strip, legend := stripRow.FindStringSubmatch(line), stripLegend.FindAllStringSubmatch(line, -1)
		switch {
		case line == "", strings.HasPrefix(line, "TIME "), strings.HasPrefix(line, "note: "):
		case strip != nil:
			cells += strip[1]
		case historyRow.MatchString(line):
			n, _ := strconv.Atoi(strings.TrimSpace(historyRow.FindStringSubmatch(line)[1]))
			rows += max(n, 1)
		case historyMore.MatchString(line): // on a slow cluster there are more verdicts than the table has lines
			unseen, _ = strconv.Atoi(historyMore.FindStringSubmatch(line)[1])
		case legend != nil:
			for _, l := range legend {
				n, _ := strconv.Atoi(l[2])
				if explained += n; n != strings.Count(cells, l[1]) {
					return "", fmt.Errorf("%d cells of %q", strings.Count(cells, l[1]), l[0])
				}
			}
		default:
			return "", fmt.Errorf("not part of a history: %q", line)
		}
	}
	if all, _ := strconv.Atoi(m[1]); len([]rune(cells)) != all || explained != all || rows+unseen > all || unseen == 0 && rows != all {
		return "", fmt.Errorf("%d times, %d cells, %d explained, %d in lines, and %d verdicts more", all, len([]rune(cells)), explained, rows, unseen)
	}
	return cells, nil
}

// The history of a schedule of every three seconds whose fourth Job fails and whose seventh runs into the times after it: the status has
// the last ten, the stream has all, and no time is missing or there twice. docs/ has the screens.
func TestKubectlHistoryOnATerminal(t *testing.T) {
	t.Parallel()
	u := open(t)
	u.asksNATS()
	count := filepath.Join(t.TempDir(), "count")
	u.schedule("report", "schedule: \"*/3 * * * * *\"\n  concurrencyPolicy: Forbid\n  successfulJobsHistoryLimit: 2",
		`n=$(($(cat "`+count+`" 2>/dev/null || echo 0)+1)); echo $n >"`+count+`"; sleep 1; case $n in 4) exit 3;; 7) sleep 5;; esac`)
	u.AwaitSchedule("report", timeout, "to have run a dozen times", func(s *v1alpha1.ScheduledJob) bool { return s.Status.Successful+s.Status.Failed >= 12 })
	u.Reschedule("report", `{"suspend":true}`)
	u.AwaitSchedule("report", timeout, "to be suspended, and its Jobs to have ended", func(s *v1alpha1.ScheduledJob) bool {
		return s.Status.NextScheduleTime == nil && len(s.Status.Active) == 0 && !slices.ContainsFunc(s.Status.Recent, func(v v1alpha1.TickVerdict) bool { return !v.Announced })
	})
	harness.Until(t, timeout, "the stream to have all verdicts, and the ends of all Jobs", func(ctx context.Context) error { return u.ticks(ctx, count) })
	harness.Until(t, timeout, "the Jobs beyond the limits to be gone, of which the history no longer knows the start", func(ctx context.Context) error {
		jobs, err := u.Client.BatchV1().Jobs(u.Namespace).List(ctx, metav1.ListOptions{})
		if err == nil && len(jobs.Items) > 3 { // two successful, one failed
			err = fmt.Errorf("there are %d", len(jobs.Items))
		}
		return err
	})
	screens := map[string][]string{}
	lines := []string{"kubectl jobstream history report", `kubectl jobstream history report --nats-url="$NATS_URL"`, `kubectl jobstream history report --nats-url="$NATS_URL" --failed`}
	var cells []string
	for _, line := range lines {
		shown, written := u.screenshot(line)
		found, err := readHistory(shown)
		if err != nil {
			t.Errorf("$ %s\n%s\n%v", line, strings.Join(shown, "\n"), err)
		}
		screens[line], cells = shown, append(cells, found)
		if !strings.Contains(written, "\x1b[31m") || strings.Contains(strings.Join(shown, ""), "with --nats-url") != (line == lines[0]) {
			t.Errorf("$ %s: no colours, or a wrong note: %q", line, written)
		}
	}
	// --failed shows what was missed, too: on a slow machine a Job may not be made before the next time has come.
	if of, in := []rune(cells[0]), []rune(cells[1]); len(of) < v1alpha1.RecentVerdicts || len(in) < len(of) || strings.ReplaceAll(cells[2], "!", "") != "x" ||
		!slices.Equal(of[len(of)-v1alpha1.RecentVerdicts:], in[len(in)-v1alpha1.RecentVerdicts:]) {
		t.Fatalf("the status has the end of what the stream has, and one Job has failed: %q", cells)
	}
	if plain, written := u.screenshot(lines[0], "NO_COLOR=1"); !slices.Equal(plain, screens[lines[0]]) || strings.Contains(written, "\x1b[3") {
		t.Errorf("with NO_COLOR: %q", written)
	}
	recordHistory(t, lines, screens)
}

// ticks compares the history in JSON with the clock, and with what the Jobs have written. The end of a Job may reach the stream after
// the status of its schedule shows it.
func (u *terminal) ticks(ctx context.Context, count string) error {
	u.Helper()
	out, err := u.asks(ctx, `kubectl jobstream history report --nats-url="$NATS_URL" -o json`)
	if err != nil {
		return err
	}
	var list struct {
		Items []struct {
			Time            time.Time
			Count           int
			Verdict, Reason string
			Job             *struct{ Result, Reason, Message, StartTime, CompletionTime string }
		}
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		u.Fatal(err)
	}
	text, err := os.ReadFile(count)
	if err != nil {
		u.Fatal(err)
	}
	ran, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	times := 0
	for i, tick := range list.Items {
		if at := list.Items[0].Time.Add(time.Duration(times) * 3 * time.Second); !tick.Time.Equal(at) {
			return fmt.Errorf("verdict %d is for %v, and %v follows", i, tick.Time, at)
		}
		times += tick.Count
		switch j := tick.Job; {
		case tick.Count < 1 || j != nil && tick.Count > 1 || (tick.Verdict == "Started") != (j != nil):
			return fmt.Errorf("%+v", tick)
		case j == nil:
		case j.StartTime == "" || j.CompletionTime == "" || j.Result != "Complete" && !strings.Contains(j.Message, "exit code 3"):
			return fmt.Errorf("%v: %+v", tick.Time, *j)
		default:
			ran--
		}
	}
	if ran != 0 || times < 14 {
		return fmt.Errorf("%d times; %d Jobs more have run than it has", times, ran)
	}
	return nil
}

// recordHistory writes the recording, or checks that the existing one shows what the program does.
func recordHistory(t *testing.T, lines []string, screens map[string][]string) {
	t.Helper()
	path := filepath.Join(harness.Root, "docs", historyRecording)
	if *update {
		var b strings.Builder
		b.WriteString("# The history of a schedule\n\nRecorded by `TestKubectlHistoryOnATerminal` on a real control plane, with a terminal of 120 columns and 30 lines: a schedule of\n" +
			"every three seconds with `concurrencyPolicy: Forbid`, whose fourth Job fails and whose seventh takes six seconds. A real terminal\n" +
			"shows colours. `successfulJobsHistoryLimit` is 2, so the status knows how older Jobs have ended, and not when they started.\n")
		for _, line := range lines {
			fmt.Fprintf(&b, "\n```\n$ %s\n%s\n```\n", line, strings.Join(screens[line], "\n"))
		}
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "```")
	if len(blocks) != 2*len(lines)+1 {
		t.Fatalf("docs/%s has %d screens", historyRecording, len(blocks)/2)
	}
	for i, line := range lines {
		screen := strings.Split(strings.TrimSpace(blocks[2*i+1]), "\n")
		if _, err := readHistory(screen[1:]); err != nil || screen[0] != "$ "+line {
			t.Errorf("docs/%s shows what the program does not: %s: %v: record it anew with -args -update", historyRecording, screen[0], err)
		}
	}
}
