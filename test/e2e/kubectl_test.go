package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/dev/controlplane"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// plugin builds kubectl-jobstream once, and returns its folder.
var plugin = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(suite.Folder(), "plugin")
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "kubectl-jobstream"), "./cmd/kubectl-jobstream")
	build.Dir = harness.Root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build kubectl-jobstream: %w\n%s", err, out)
	}
	return dir, nil
})

// terminal is the shell of a user who has kubectl with the plugin, and a kubeconfig for the namespace.
type terminal struct {
	*harness.Space
	dir string
	env []string
}

// open opens a terminal in a folder of its own, with the files of the proposals, and with their programs in usr/local/bin: each
// prints its name and its arguments.
func open(t *testing.T) *terminal {
	t.Helper()
	return openIn(t, shared(t))
}

// openIn opens a terminal in a namespace of the System.
func openIn(t *testing.T, s *harness.System) *terminal {
	t.Helper()
	p := s.Space(t)
	assets, err := controlplane.Assets()
	if err != nil {
		t.Fatal(err)
	}
	bin, err := plugin()
	if err != nil {
		t.Fatal(err)
	}
	c, err := clientcmd.LoadFromFile(p.ControlPlane.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, context := range c.Contexts {
		context.Namespace = p.Namespace
	}
	u := &terminal{Space: p, dir: t.TempDir()}
	u.env = []string{"HOME=" + u.dir, "KUBECONFIG=" + filepath.Join(u.dir, "kubeconfig"),
		"PATH=" + strings.Join([]string{bin, assets, os.Getenv("PATH")}, string(os.PathListSeparator))}
	if err := clientcmd.WriteToFile(*c, filepath.Join(u.dir, "kubeconfig")); err != nil {
		t.Fatal(err)
	}
	const says = "#!/bin/sh\necho \"${0##*/} $*\"\n"
	for file, text := range map[string]string{
		"files-to-process.txt": "12342.dat\n97283.dat\n38732.dat\n",
		"matrix-commandlines.txt": u.here(`/usr/local/bin/process_matrix_block -start_row 0 -end_row 15 -start_col 0 --end_col 15
/usr/local/bin/process_matrix_block -start_row 16 -end_row 31 -start_col 0 --end_col 15
/usr/local/bin/process_matrix_block -start_row 0 -end_row 15 -start_col 16 --end_col 31
/usr/local/bin/process_matrix_block -start_row 16 -end_row 31 -start_col 16 --end_col 31
`),
		"fruits.txt": "apple banana cherry\n", "colors.txt": "green yellow red\n",
		"process_file": says, "process_matrix_block": says, "mergefiles": says,
	} {
		if err := os.WriteFile(filepath.Join(u.dir, file), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return u
}

// here makes a line call the test's programs instead of those in /usr/local/bin.
func (u *terminal) here(line string) string { return strings.ReplaceAll(line, "/usr/local/bin", u.dir) }

// command returns a line as a program that has not been started.
func (u *terminal) command(ctx context.Context, line string) *exec.Cmd {
	c := exec.CommandContext(ctx, "bash", "-c", u.here(line))
	c.Dir, c.Env = u.dir, u.env
	return c
}

// enter runs a line, and returns its output, its error output and its exit code.
func (u *terminal) enter(line string) (out, errOut string, code int) {
	u.Helper()
	var o, e strings.Builder
	c := u.command(u.Context(), line)
	c.Stdout, c.Stderr = &o, &e
	if err := c.Run(); err != nil && c.ProcessState == nil {
		u.Fatal(err)
	}
	u.Logf("$ %s\n%s%s", line, o.String(), e.String())
	return o.String(), e.String(), c.ProcessState.ExitCode()
}

// succeeds runs a line that must succeed, and returns its standard output.
func (u *terminal) succeeds(line string) string {
	u.Helper()
	out, _, code := u.enter(line)
	if code != 0 {
		u.Fatalf("exit code %d: %s", code, line)
	}
	return out
}

// asks runs a line that may have to be run again until it shows what a test waits for. It logs nothing: a log of hundreds of tries
// hides everything else.
func (u *terminal) asks(ctx context.Context, line string) (string, error) {
	u.Helper()
	out, err := u.command(ctx, line).Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		err = fmt.Errorf("$ %s: %w: %s", line, err, failed.Stderr)
	}
	return string(out), err
}

var created = regexp.MustCompile(`(?m)^(job\.batch|scheduledjob\.jobstream\.dev)/(\S+) created$`)

// outcome waits until everything that a line reports as created has ended well, and returns what the Pods have printed.
func (u *terminal) outcome(printed string) (lines []string) {
	u.Helper()
	for _, c := range created.FindAllStringSubmatch(printed, -1) {
		name := c[2]
		if c[1] != "job.batch" {
			s := u.AwaitSchedule(name, timeout, "to have created its Job", func(s *v1alpha1.ScheduledJob) bool { return s.Status.LastScheduleTime != nil })
			for _, runs := range u.Runs(s.UID) {
				name = runs[0].Name
			}
		}
		if j := u.Job(name); j.Spec.Suspend != nil && *j.Spec.Suspend {
			continue // it waits for another Job
		}
		lines = append(lines, u.printed(u.AwaitEnd(name, batchv1.JobComplete, timeout))...)
	}
	return lines
}

// printed returns the lines of the Job's succeeded Pods, in the order of their indexes.
func (u *terminal) printed(j *batchv1.Job) (lines []string) {
	u.Helper()
	byIndex := map[int]string{}
	for _, pod := range u.Pods(j.Name) {
		if pod.Status.Phase != corev1.PodSucceeded {
			continue
		}
		index, _ := strconv.Atoi(pod.Annotations[batchv1.JobCompletionIndexAnnotation]) // 0 if it has none
		text, err := u.Client.CoreV1().Pods(u.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(u.Context())
		if err != nil {
			u.Fatal(err)
		}
		byIndex[index] = strings.TrimSuffix(string(text), "\n")
	}
	for _, index := range slices.Sorted(maps.Keys(byIndex)) {
		lines = append(lines, byIndex[index])
	}
	return lines
}

// proposal is a row of the table in docs/kubectl.md.
type proposal struct {
	lines, prints []string
}

var code = regexp.MustCompile("`([^`]+)`")

// proposals reads the table. "the same" stands for the output of the row before.
func proposals(t *testing.T) (rows []proposal) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(harness.Root, "docs", "kubectl.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## The proposals' command lines\n")
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.ReplaceAll(line, `\|`, "\x00"), " | ")
		if !strings.HasPrefix(line, "| `") || len(cells) != 3 {
			continue
		}
		var row proposal
		for _, c := range code.FindAllStringSubmatch(cells[1], -1) {
			if strings.Contains(c[1], " ") { // a line, not a name
				row.lines = append(row.lines, strings.ReplaceAll(c[1], "\x00", "|"))
			}
		}
		for _, c := range code.FindAllStringSubmatch(cells[2], -1) {
			row.prints = append(row.prints, c[1])
		}
		if strings.HasPrefix(cells[2], "the same") {
			row.prints = rows[len(rows)-1].prints
		}
		rows = append(rows, row)
	}
	if len(rows) != 12 {
		t.Fatalf("the table has %d rows, the proposals have 12 command lines", len(rows))
	}
	return rows
}

// Every command line of the proposals has one that works, and the Pods print what the proposals describe.
func TestKubectlProposals(t *testing.T) {
	for i, row := range proposals(t) {
		last := row.lines[len(row.lines)-1]
		name := strconv.Itoa(i+1) + " " + strings.Join(strings.Fields(last)[:4], " ")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := open(t)
			switch {
			case strings.Contains(last, `--runAt="0 14 21 7 *"`):
				u.everyJuly(last)
				return
			case len(row.lines) == 4: // the workflow
				begin(u.Space, u.chain())
			}
			printed := ""
			for _, line := range row.lines {
				printed += u.succeeds(line)
			}
			got := u.outcome(printed)
			if len(row.lines) == 4 {
				got = append(got, u.printed(u.AwaitEnd("merge-files", batchv1.JobComplete, timeout))...)
			}
			if !slices.Equal(got, row.prints) {
				t.Errorf("the Pods have printed\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(row.prints, "\n"))
			}
		})
	}
}

// chain runs examples/chain, which starts a Job after another.
func (u *terminal) chain() *harness.Process {
	u.Helper()
	made(u.Space, "chain", "job.finish.succeeded.>")
	e := example(u.Space, "chain", built(u.TB.(*testing.T), ".", "./examples/chain"), nil, []string{"KUBECONFIG=" + u.ControlPlane.Kubeconfig()})
	e.Env = append(e.Env, "NATS_URL="+u.NATS.URL, "NATS_API_PREFIX=$JS.API") // this bus has no accounts
	return e
}

// everyJuly does not wait for July: the ScheduledJob knows its time, and the same line with a past time runs. 200 digits replace
// the 2,000, which take Perl minutes on a busy machine.
func (u *terminal) everyJuly(line string) {
	u.Helper()
	u.succeeds(line)
	s := u.AwaitSchedule("pi", timeout, "to know its time", func(s *v1alpha1.ScheduledJob) bool { return s.Status.NextScheduleTime != nil })
	next := s.Status.NextScheduleTime.UTC()
	if at := next.Format("01-02 15:04:05"); at != "07-21 14:00:00" || !next.After(time.Now()) || next.After(time.Now().AddDate(1, 0, 1)) {
		u.Errorf("the next Job starts at %v", next)
	}
	now := strings.NewReplacer(`"0 14 21 7 *"`, "2015-07-21T14:00:00Z", "run pi ", "run pi-now ", "2000", "200").Replace(line)
	got := u.outcome(u.succeeds(now))
	want, err := exec.CommandContext(u.Context(), "perl", "-Mbignum=bpi", "-wle", "print bpi(200)").Output()
	if err != nil || len(want) < 200 {
		u.Fatalf("perl on this machine: %v: %q", err, want)
	}
	if len(got) != 1 || got[0] != strings.TrimSpace(string(want)) {
		u.Errorf("it has printed %q", got)
	}
}

// Each example of the help runs word for word.
func TestKubectlHelpExamples(t *testing.T) {
	t.Parallel()
	u := open(t)
	help := u.succeeds("kubectl jobstream run --help")
	_, examples, _ := strings.Cut(help, "\nExamples:\n")
	examples, _, _ = strings.Cut(examples, "\nFlags:\n")
	want := map[string][]string{
		"pi":            nil, // it is printed at once
		"process-files": {"a.dat", "b.dat", "c.dat"},
		"say-fruit":     {"Have a nice green apple", "Have a nice yellow banana", "Have a nice red cherry"},
		"squares":       {"1", "4", "9", "16", "25", "36", "49", "64", "81", "100", "121", "144", "169", "196", "225", "256", "289", "324", "361", "400"},
		"say-number":    {"My index is 0", "My index is 1", "My index is 2"},
		"once":          nil, "nightly": nil, // later
	}
	name := regexp.MustCompile(`kubectl jobstream run (\S+) `)
	seen := map[string]bool{}
	for line := range strings.Lines(examples) {
		match := name.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		printed, job := u.succeeds(strings.TrimSpace(line)), match[1]
		lines, known := want[job]
		seen[job] = true
		switch {
		case !known:
			t.Errorf("the test does not expect this example: %s", line)
		case strings.Contains(line, "--dry-run"):
			if !hasAll(printed, []string{"kind: ConfigMap", "kind: Job", "per-completion-env"}) {
				t.Errorf("it has printed\n%s", printed)
			}
		case job == "pi":
			if !strings.Contains(printed, "\n3.14159265358979") {
				t.Errorf("it has printed\n%s", printed)
			}
		case job == "once" || job == "nightly":
			u.AwaitSchedule(job, timeout, "to know its time", func(s *v1alpha1.ScheduledJob) bool {
				return s.Status.NextScheduleTime != nil && s.Status.NextScheduleTime.After(time.Now())
			})
		default:
			if got := u.outcome(printed); !slices.Equal(got, lines) {
				t.Errorf("the Pods of %s have printed %q, want %q", job, got, lines)
			}
		}
	}
	if len(seen) != len(want) {
		t.Errorf("the help has examples of %v", slices.Sorted(maps.Keys(seen)))
	}
}
