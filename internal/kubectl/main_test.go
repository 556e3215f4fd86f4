package kubectl

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
)

// asPlugin in the environment makes the test binary act as the plugin, for shells that call it.
const asPlugin = "JOBSTREAM_TEST_AS_PLUGIN"

func TestMain(m *testing.M) {
	if os.Getenv(asPlugin) != "" {
		name := "kubectl-jobstream"
		if filepath.Base(os.Args[0]) == completer {
			name = completer
		}
		os.Exit(Main(append([]string{name}, os.Args[1:]...), os.Stdin, os.Stdout, os.Stderr))
	}
	klog.SetSlogLogger(slog.New(slog.DiscardHandler)) // as Main does
	code := m.Run()
	for _, p := range []*plane{&shared, &bare} {
		if p.cp == nil {
			continue
		}
		if err := p.cp.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the control plane:", err)
		}
	}
	os.Exit(code)
}

// session is what a user sees of one call.
type session struct {
	code     int
	out, err string
}

func (s session) String() string {
	return fmt.Sprintf("exit code %d\n-- out --\n%s-- err --\n%s", s.code, s.out, s.err)
}

// call runs the plugin within the test's process.
func call(t *testing.T, stdin string, args []string, change ...func(*tool)) session {
	t.Helper()
	var out, err bytes.Buffer
	p := newTool(genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &out, ErrOut: &err})
	p.suffix, p.takeUpTimeout, p.completionTime = func() string { return "x7k2p" }, time.Millisecond, time.Minute
	for _, f := range change {
		f(p)
	}
	code := execute(t.Context(), p, "kubectl jobstream", args)
	return session{code, out.String(), err.String()}
}

// TestWrongCommandLines: a wrong command line yields one line with what to type instead, before any request: there is no API
// server here. The files are in testdata/lists.
func TestWrongCommandLines(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("HOME", t.TempDir())
	t.Chdir("testdata/lists")
	good := []string{"run", "x", "--image=busybox"}
	with := func(more ...string) []string { return append(good[:len(good):len(good)], more...) }
	for _, tt := range []struct {
		name string
		args []string
		says string
	}{
		{"an unknown command", []string{"frobnicate"}, `there is no command "frobnicate": write `},
		{"an unknown output of the overview", []string{"-o", "toml"}, `--output=toml is none: write one of wide, json, yaml, name, jsonpath=TEMPLATE, go-template=TEMPLATE`},
		{"a misspelt command", []string{"rnu"}, `there is no command "rnu": do you mean "run"?`},
		{"the proposal's workflows", []string{"create-workflow", "process-and-merge"}, `there is no command "create-workflow": examples/chain starts one Job after another`},
		{"no name", []string{"run", "--image=busybox", "--", "true"}, `there is no name: write it first, as in: run NAME --image=busybox`},
		{"no image", []string{"run", "x", "--", "true"}, `there is no image: add --image=IMAGE, as in --image=busybox`},
		{"an image with a blank", []string{"run", "x", "--image=busy box"}, `--image="busy box" has a blank in it`},
		{"a name that cannot be one", []string{"run", "My_Job", "--image=busybox"}, `"My_Job" cannot be a name: write small letters, digits and -`},
		{"a name that is too long", []string{"run", strings.Repeat("n", 64), "--image=busybox"}, `has 64 characters, and may have 63: a Job's name becomes a label; choose a shorter one`},
		{"a name that is too long with its indexes", []string{"run", strings.Repeat("n", 62), "--image=busybox", "--completions=11"}, `has 62 characters, and may have 60: name and index form a host name`},
		{"a name that is too long for a schedule", []string{"run", strings.Repeat("n", 53), "--image=busybox", "--run-at=@daily"}, `has 53 characters, and may have 52: the names of its Jobs are longer`},
		{"a dot in the name of a Job with indexes", []string{"run", "a.b", "--image=busybox", "--completions=2"}, `"a.b" cannot be the name of a Job with completions`},
		{"a command without --", with("echo", "hello"), `"echo hello": write -- before the command, as in: run x --image=busybox -- echo hello`},
		{"nothing behind --", with("--"), `nothing follows --: write the command there, as in -- echo hello, or leave out --`},
		{"an empty command", with("--", ""), `the command is empty: write the program after --`},
		{"a command line in one word", with("--", `eval "$COMMAND_LINE"`), `no program has that name: write -- sh -c 'eval "$COMMAND_LINE"', where the image has a shell`},
		{"the proposal's --asTemplate", with("--asTemplate"), `there is no flag --asTemplate: write --dry-run=client -o yaml`},
		{"a flag of kubectl run", with("--command"), `there is no flag --command: leave it out: what stands behind -- is the command`},
		{"an unknown flag", with("--colour=red"), `unknown flag: --colour`},
		{"a number that is none", with("--completions=many"), `invalid argument "many" for "--completions"`},
		{"no completions", with("--completions=0"), `--completions=0 is none: write 1 or more: how many Pods must succeed`},
		{"no parallelism", with("--parallelism=-1"), `--parallelism=-1 is none: write 1 or more: how many Pods run at once`},
		{"a negative backoff limit", with("--backoff-limit=-1"), `--backoff-limit=-1 is none: write 0 or more`},
		{"a backoff that is too long", with("--backoff-seconds=601"), `--backoff-seconds=601 is none: write 1 to 600 seconds`},
		{"too many failed Pods", with("--failed-pods-limit=1001"), `--failed-pods-limit=1001 is none: write 0 to 1000`},
		{"--restart=Always", with("--restart=Always"), `--restart=Always is for programs that never end, and a Job's Pods end: write --restart=OnFailure or --restart=Never`},
		{"a restart policy in small letters", with("--restart=never"), `--restart=never is none: write --restart=Never`},
		{"an unknown restart policy", with("--restart=Sometimes"), `--restart=Sometimes is no policy: write --restart=OnFailure`},
		{"failed Pods under OnFailure", with("--restart=OnFailure", "--backoff-seconds=5"), `--backoff-seconds is about failed Pods`},
		{"a limit of failed Pods under OnFailure", with("--restart=OnFailure", "--failed-pods-limit=5"), `--failed-pods-limit is about failed Pods, and with --restart=OnFailure containers are restarted in their Pods: write --restart=Never`},
		{"a list without a variable", with("--per-completion-env=a b c"), `--per-completion-env="a b c" names no variable: write KEY="a b c" or KEY=@FILE`},
		{"a list for what is no variable", with("--per-completion-env=1F=a b"), `"1F" cannot be the name of a variable`},
		{"an empty list", with("--per-completion-env=F="), `the list F is empty: write --per-completion-env=F="a b c" or --per-completion-env=F=@FILE`},
		{"an empty file", with("--per-completion-env=F=@empty.txt"), `the list F is empty: the file empty.txt has no values; write one on each line`},
		{"a file that is missing", with("--per-completion-env=F=@nowhere.txt"), `--per-completion-env=F: cannot read the list: open nowhere.txt: no such file or directory; the word after @ is the name of a file`},
		{"an empty line", with("--per-completion-env=F=@hole.txt"), `the list F: line 2 of hole.txt is empty: remove it, or write "" for an empty value`},
		{"a line that is not UTF-8", with("--per-completion-env=F=@latin1.txt"), `the list F: line 3 of latin1.txt is not UTF-8: save the file as UTF-8`},
		{"a line with a control character", with("--per-completion-env=F=@control.txt"), `the list F: line 1 of control.txt has a control character: "a\x00b"`},
		{"lists of different length", with("--per-completion-env=FRUIT=apple banana cherry", "--per-completion-env=COLOR=green yellow"), `the lists differ in length: FRUIT has 3 values, COLOR has 2 values`},
		{"one list twice", with("--per-completion-env=F=a b", "--per-completion-env=F=c d"), `--per-completion-env=F=… is given twice`},
		{"two lists from standard input", with("--per-completion-env=F=@-", "--per-completion-env=G=@-"), `F and G both read standard input: put one of the lists into a file`},
		{"completions that contradict a list", with("--completions=4", "--per-completion-env=F=a b c"), `--completions=4, but the list F has 3 values: leave out --completions, which the list implies`},
		{"an index without completions", with("--completion-index-var-name=I"), `--completion-index-var-name=I, but the Job has no indexes: add --completions=N, or a --per-completion-env`},
		{"an index in what is no variable", with("--completions=2", "--completion-index-var-name=my index"), `--completion-index-var-name: "my index" cannot be the name of a variable`},
		{"a variable without a value", with("--env=WORD"), `--env="WORD" has no value: write --env=NAME=VALUE`},
		{"a variable that two flags define", with("--per-completion-env=F=a b", "--env=F=c"), `--per-completion-env and --env both define the variable F`},
		{"an unknown variable", with("--per-completion-env=SR=0 16", "--per-completion-env=ER=15 31", "--", "echo", "$(RS)"), `no variable is called RS, which the command names in "$(RS)": there is ER, SR; write one of them, or $$(RS) where you mean the text`},
		{"an unknown variable where there are none", with("--", "echo", "$(F)"), `no variable is called F, which the command names in "$(F)": add --per-completion-env=F=… or --env=F=…`},
		{"a time without an offset", with("--run-at=2026-12-24T18:00:00"), `is no time of whole seconds with an offset: write it as in 2026-12-24T18:00:00Z`},
		{"a fraction of a second", with("--run-at=2026-12-24T18:00:00.5Z"), `is no time of whole seconds with an offset`},
		{"a date alone", with("--run-at=2026-12-24"), `is no time of whole seconds with an offset`},
		{"what is neither a time nor a schedule", with("--run-at=tomorrow"), `--run-at="tomorrow" is neither a time, such as 2026-12-24T18:00:00Z, nor a schedule`},
		{"an hour that does not exist", with("--run-at=0 25 * * *"), `--run-at="0 25 * * *" is neither a time`},
		{"a day that never comes", with("--run-at=0 0 30 2 *"), `--run-at="0 0 30 2 *" is neither a time`},
		{"an unknown zone", with("--run-at=@daily", "--time-zone=Berlin"), `--time-zone: "Berlin" is no time zone: use a name of the IANA database, such as Europe/Berlin`},
		{"a zone without a schedule", with("--time-zone=Europe/Berlin"), `--time-zone=Europe/Berlin belongs to a schedule: add --run-at="30 2 * * *", or leave it out`},
		{"a zone for one time", with("--run-at=2026-12-24T18:00:00Z", "--time-zone=Europe/Berlin"), `--time-zone belongs to a schedule, and a time has an offset of its own`},
		{"an unknown dry run", with("--dry-run=yes"), `--dry-run=yes is none: write --dry-run=client or --dry-run=server`},
		{"an unknown output", with("--dry-run=client", "-o", "toml"), `--output=toml is none: write one of json, yaml, name, jsonpath=TEMPLATE, go-template=TEMPLATE`},
		{"a template that is none", with("--dry-run=client", "-o", "jsonpath={.a"), `--output=jsonpath={.a: error parsing jsonpath {.a, unclosed action`},
		{"a name where all are listed", []string{"list", "nightly"}, `nightly: list shows all ScheduledJobs of the namespace: leave the name out; for one ScheduledJob write: kubectl jobstream history nightly`},
		{"an unknown output of the list", []string{"list", "-o", "toml"}, `--output=toml is none: write one of wide, json, yaml, name, jsonpath=TEMPLATE, go-template=TEMPLATE`},
		{"the history of nothing", []string{"history"}, `history shows one ScheduledJob: write its name, as in: kubectl jobstream history nightly; "kubectl jobstream list" has the names`},
		{"the history of a Job", []string{"history", "job/pi"}, `job/pi: write scheduledjob/NAME`},
		{"names of times", []string{"next", "--schedule=@daily", "-o", "name"}, `--output=name is none: write one of json, yaml, jsonpath=TEMPLATE`},
		{"a table of what is waited for", []string{"wait", "pi", "-o", "wide"}, `--output=wide is none: write one of json, yaml, name, `},
		{"a table of what is converted", []string{"convert", "-A", "-o", "wide"}, `--output=wide is none: write one of yaml, json, name, `},
		{"objects of what is applied", []string{"convert", "-A", "--apply", "--suspend-originals", "-o", "json"}, `--output=json is for what is printed, and --apply makes it in the cluster: leave one of them out`},
		{"objects and logs in one stream", with("--logs", "-o", "json"), `--logs and --output=json both write to standard output: leave one of them out`},
		{"waiting for a dry run", with("--dry-run=client", "--wait"), `--dry-run=client makes no Job to wait for: leave out --wait and --logs`},
		{"waiting for a schedule", with("--run-at=@daily", "--logs"), `--wait and --logs are for a Job that runs now: leave them out, and follow the ScheduledJob with: kubectl describe scheduledjob x`},
		{"a timeout of nothing", with("--timeout=5s"), `--timeout is how long to wait: add --wait or --logs`},
		{"events of nowhere", []string{"events"}, "this command asks NATS, and --nats-url (JOBSTREAM_NATS_URL) does not name a server: write, for example, --nats-url=tls://127.0.0.1:4222 after: kubectl -n jobstream port-forward nats-0 4222"},
		{"events of one Job", []string{"events", "pi"}, "pi: events shows those of a whole namespace: leave the name out"},
		{"events of no type", []string{"events", "--type=JobEnd"}, "--type=JobEnd is none: write JobStart, JobFinish, PodFinish, TickDecided"},
		{"events of the future", []string{"events", "--since=-1h"}, "--since=-1h0m0s is in the future: write a time such as 15m"},
		{"events of no time", []string{"events", "--since=0s"}, "--since=0s shows nothing without -f"},
		{"events in a table", []string{"events", "-o", "wide"}, "--output=wide: write text or json"},
		{"half a user of NATS", []string{"events", "--nats-url=nats://127.0.0.1:1", "--nats-user-file=user"}, "--nats-password-file"},
		{"decisions about nothing", []string{"decisions"}, "decisions is about one object: write the name of a Job or a ScheduledJob, or job/NAME"},
		{"decisions about two", []string{"decisions", "a", "b"}, "decisions is about one object"},
		{"decisions about a Pod", []string{"decisions", "pod/x"}, "pod/x: write scheduledjob/NAME or job/NAME"},
		{"fewer decisions than none", []string{"decisions", "x", "--last=-1"}, "--last=-1 is none: write 0 for all, or how many"},
		{"decisions in a table", []string{"decisions", "x", "-o", "yaml"}, "--output=yaml: write text or json"},
		{"replay of nothing", []string{"replay"}, "replay is about one object"},
		{"replay of a name and a file", []string{"replay", "pi", "-f", "pi.json"}, "pi and --filename at once: leave one of them out"},
		{"a timeout in the past", with("--wait", "--timeout=-5s"), `--timeout=-5s is in the past: write a time such as 5m`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := call(t, "a\nb\n", tt.args)
			complaint, rest, _ := strings.Cut(got.err, "\n")
			if got.code != ExitUsage || got.out != "" || !strings.HasPrefix(complaint, "error: ") || !strings.Contains(complaint, tt.says) {
				t.Errorf("want exit code %d and %q, got %s", ExitUsage, tt.says, got)
			}
			if !strings.HasPrefix(rest, "See 'kubectl jobstream") || strings.Count(rest, "\n") != 1 {
				t.Errorf("want one line, and then where the help is, got %s", got)
			}
		})
	}
}

// TestListsThatAreTooLarge: the API server accepts one MiB per ConfigMap, and the annotation names a single one.
func TestListsThatAreTooLarge(t *testing.T) {
	file := filepath.Join(t.TempDir(), "large.txt")
	for _, tt := range []struct {
		name string
		size int // of all lines
		code int
	}{{"as much as fits", 1 << 20, 0}, {"a line more", 1<<20 + 16, ExitUsage}} {
		t.Run(tt.name, func(t *testing.T) {
			if err := os.WriteFile(file, bytes.Repeat([]byte("fifteen letters\n"), tt.size/16), 0o600); err != nil {
				t.Fatal(err)
			}
			got := call(t, "", []string{"run", "x", "--image=busybox", "--per-completion-env=F=@" + file, "--dry-run=client"})
			if got.code != tt.code {
				t.Errorf("got %s", got)
			}
			if want := "the lists have 1048592 bytes, and a ConfigMap holds 1048576: run 2 Jobs with a part of the lists each"; tt.code != 0 && !strings.Contains(got.err, want) {
				t.Errorf("want %q, got %s", want, got)
			}
		})
	}
}

// TestBadKubeconfig: the error names what is wrong with the kubeconfig.
func TestBadKubeconfig(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("apiVersion: v1\nkind: Config\ncurrent-context: nowhere\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, flag, says string }{
		{"a file that is missing", "--kubeconfig=/nowhere/config", "cannot use the kubeconfig: stat /nowhere/config: no such file or directory: --kubeconfig or KUBECONFIG name another file"},
		{"a context that is missing", "--kubeconfig=" + broken, `cannot use the kubeconfig: `},
		{"an API server that is away", "--server=https://127.0.0.1:1", `cannot create the Job x: cannot reach the API server at https://127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused: try "kubectl version"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", "")
			t.Setenv("HOME", t.TempDir())
			if got := call(t, "", []string{"run", "x", "--image=busybox", tt.flag}); got.code != ExitFailed || !strings.Contains(got.err, tt.says) {
				t.Errorf("want %q, got %s", tt.says, got)
			}
		})
	}
}
