package e2e

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

// typedLine is a line that a user types, and its outcome.
type typedLine struct {
	line string
	// out and err are regular expressions for its output: for all of out and for a part of err. {ns} is the namespace.
	out, err string
	code     int
	// interrupted lines run until Ctrl-C, which comes as soon as they have printed out.
	interrupted bool
}

// examples are those in the help of each command but "run" and "trigger", which have tests of their own; one namespace each,
// and, before them, the lines that create what they need.
var examples = map[string][]typedLine{
	"overview": {
		{line: `kubectl jobstream`, out: `(?s)no Jobs.*kubectl jobstream run.*`},
		{line: `kubectl jobstream run pi --image=busybox --wait -o name -- true`, out: "job.batch/pi\n"},
		{line: `kubectl jobstream run nightly --image=busybox --run-at="0 0 1 1 *" -o name -- true`, out: "scheduledjob.jobstream.dev/nightly\n"},
		{line: `kubectl label scheduledjob/nightly app=shop`, out: `.*labeled\n`},
		{line: `kubectl jobstream`, out: `(?s)Jobs: 0 unfinished, 1 complete.*nightly +0 0 1 1 \* +UTC .*`},
		{line: `kubectl jobstream -A`, out: `(?s).*{ns} +nightly +0 0 1 1 \* .*`},
		{line: `kubectl jobstream -l app=shop -o wide`, out: `(?s)[^/]*nightly +0 0 1 1 \* +UTC .*`},
	},
	"backfill": {
		{line: `kubectl jobstream run nightly --image=busybox --run-at="30 2 * * *" --time-zone=Europe/Berlin -o name -- true`, out: "scheduledjob.jobstream.dev/nightly\n"},
		{line: `kubectl jobstream backfill nightly --from=2026-11-01 --to=2026-11-14 --dry-run`, out: `(?s)NOMINAL TIME.*(\n2026-11-\d\dT02:30:00\+01:00 +nightly-\w+ +unknown +create){14}\n`},
		{line: `kubectl jobstream backfill nightly --from=2026-11-01 --parallelism=3 --keep-going`, out: `(?s).*2026-11-14T02:30:00\+01:00  job.batch/nightly-\w+ complete in .*`, err: `\d+ nominal times: \d+ complete\n$`},
	},
	"next": {
		{line: `kubectl jobstream run nightly --image=busybox --run-at="30 2 * * *" --time-zone=Europe/Berlin -o name -- true`, out: "scheduledjob.jobstream.dev/nightly\n"},
		{line: `kubectl jobstream next nightly`, out: `SCHEDULEDJOB +TIME +IN +NOTE\n(nightly +\d{4}-\d\d-\d\dT0[23]:[03]0:00\+0[12]:00 +\w+.*\n){10}`},
		{line: `kubectl jobstream next --schedule="30 2 * * *" --time-zone=Europe/Berlin --count=3`, out: `TIME +IN +NOTE\n(\d{4}-\d\d-\d\dT0[23]:[03]0:00\+0[12]:00 +\w+.*\n){3}`},
		{line: `kubectl jobstream next nightly --count=1 -o jsonpath='{.items[0].time}'`, out: `\d{4}-\d\d-\d\dT0[23]:[03]0:00\+0[12]:00\n?`},
	},
	"list": {
		{line: `kubectl jobstream run nightly --image=busybox --run-at="30 2 * * *" -o name -- true`, out: "scheduledjob.jobstream.dev/nightly\n"},
		{line: `kubectl label scheduledjob/nightly app=shop`, out: `.*labeled\n`},
		{line: `kubectl jobstream run paused --image=busybox --run-at="0 0 1 1 *" -o name -- true && kubectl jobstream suspend paused`, out: `(?s).*suspended\n`},
		{line: `until kubectl get scheduledjob nightly -o jsonpath={.status.nextScheduleTime} | grep -q .; do sleep 0.2; done`},
		{line: `kubectl jobstream list`, out: `NAME +SCHEDULE +NEXT +LAST +ACTIVE +MISSED +REASON\nnightly +30 2 \* \* \* +in \w+ +0 +0\npaused +0 0 1 1 \* +suspended +0 +0\n`},
		{line: `kubectl jobstream list -A -o wide`, out: `(?s)NAMESPACE +NAME .*\n{ns} +nightly +30 2 .* UTC +20\d\d-\d\d-\d\d 02:30\n.*`},
		{line: `kubectl jobstream list -l app=shop -o name`, out: "scheduledjob.jobstream.dev/nightly\n"},
	},
	"history": {
		{line: `kubectl jobstream run nightly --image=busybox --run-at="*/2 * * * * *" -o name -- true`, out: "scheduledjob.jobstream.dev/nightly\n"},
		{line: `kubectl patch scheduledjob nightly --type=merge -p '{"spec":{"catchUp":"All"}}'`, out: `.*patched\n`}, // a slow machine would miss a time
		{line: `until kubectl get scheduledjob nightly -o jsonpath={.status.successful} | grep -q .; do sleep 0.2; done; kubectl jobstream suspend nightly`, out: `(?s).*suspended\n`, err: `(?s).*`},
		{line: `kubectl jobstream history nightly`, out: `(?s)nightly: \d+ times? since .* \(UTC\)\n\n  20\S+ \S+ [^\n]*#[^\n]*\n  # \d+ complete.*\n\nTIME +VERDICT .*\n20\S+ \S+ +Started +Complete [^\n]*nightly-\w+\n.*`, err: `(?s).*`},
		{line: `kubectl jobstream history nightly --since=72h`, out: `(?s)nightly: \d+ times? since .*`, err: `(?s).*`},
		{line: `kubectl jobstream history nightly --failed --since=24h`, err: `\d+ verdicts are known, and none of them is what the flags ask for`},
		{line: `kubectl jobstream history nightly -o jsonpath='{range .items[*]}{.time} {.job.durationSeconds}{"\n"}{end}'`, out: `(20\S+Z \d*\n)+`, err: `(?s).*`},
	},
	"why": {
		{line: `kubectl jobstream run render --image=busybox --restart=Never --backoff-limit=0 -o name -- sh -c 'exit 3'`, out: "job.batch/render\n"},
		{line: `kubectl jobstream wait render`, out: `(?s).*`, err: `(?s).*`, code: 1},
		{line: `kubectl jobstream run nightly --image=busybox --run-at="0 0 1 1 *" -o name -- true && kubectl jobstream suspend nightly`, out: `(?s).*suspended\n`},
		{line: `until kubectl get scheduledjob nightly -o jsonpath={.status.conditions[*].type} | grep -q Suspended; do sleep 0.2; done`},
		{line: `kubectl jobstream why render`, out: `(?s)job/render: Failed .*exit code 3.*`},
		{line: `kubectl jobstream why scheduledjob/nightly`, out: `(?s)scheduledjob/nightly: .*1\. suspended: .*resume.*`},
		{line: `kubectl jobstream why render -o jsonpath='{.findings[0].check}'`, out: `\S.*`},
	},
	"suspend": {
		{line: `kubectl jobstream run pi --image=busybox -o name -- sleep 600`, out: "job.batch/pi\n"},
		{line: `kubectl jobstream run nightly --image=busybox --run-at="0 0 1 1 *" -o name -- true`, out: "scheduledjob.jobstream.dev/nightly\n"},
		{line: `kubectl label job/pi scheduledjob/nightly app=shop`, out: `(?s).*`},
		{line: `kubectl jobstream suspend job/pi`, out: "job.batch/pi suspended\n"},
		{line: `kubectl jobstream suspend scheduledjob/nightly`, out: "scheduledjob.jobstream.dev/nightly suspended\n"},
		{line: `kubectl jobstream resume job/pi`, out: "job.batch/pi resumed\n"},
		{line: `kubectl jobstream suspend -l app=shop`, out: `(?s)(.*nightly.*already.*\n)?job.batch/pi suspended\n(.*nightly.*already.*\n)?`},
		{line: `kubectl jobstream resume -l app=shop`, out: `(?s)(scheduledjob.jobstream.dev/nightly resumed\n|job.batch/pi resumed\n){2}`, err: `(?s).*`},
		{line: `kubectl jobstream suspend scheduledjobs -A --dry-run=server`, out: `(?s).*scheduledjob.jobstream.dev/nightly in {ns} suspended \(server dry run\)\n.*`, err: `(?s).*`},
		{line: `kubectl patch scheduledjob nightly --type=merge -p '{"metadata":{"labels":{"jobstream.dev/suspended-by":"drain"}},"spec":{"suspend":true}}'`, out: `.*patched\n`},
		{line: `kubectl jobstream resume scheduledjobs -A -l jobstream.dev/suspended-by=drain --force`, out: "scheduledjob.jobstream.dev/nightly in {ns} resumed\n", err: `(?s).*`},
	},
	"watch": {
		{line: `kubectl jobstream run render --image=busybox --completions=10 --backoff-seconds=1 -o name -- sh -c 'sleep 2; test $JOB_COMPLETION_INDEX = 8 && mkdir '$PWD'/once8 2>/dev/null && exit 1; true'`, out: "job.batch/render\n"},
		{line: `kubectl label job/render app=render`, out: `.*labeled\n`},
		{line: `kubectl jobstream watch render`, out: `(?s)(.*\n)?render state=Complete succeeded=10/10 active=0 failed=1 .*`},
		{line: `kubectl jobstream run encode --image=busybox -o name -- sleep 600`, out: "job.batch/encode\n"},
		{line: `kubectl label job/encode app=render`, out: `.*labeled\n`},
		{line: `kubectl jobstream watch`, out: `(?s)(.*\n)?encode state=Running succeeded=0/1 active=1 failed=0 .*`, err: `(?s).*`, interrupted: true},
		{line: `kubectl jobstream watch -l app=render`, out: `(?s)(.*\n)?encode state=Running succeeded=0/1 active=1 failed=0 .*`, err: `(?s).*`, interrupted: true},
		{line: `kubectl jobstream run third --image=busybox -o name -- sleep 600`, out: "job.batch/third\n"},
		{line: `kubectl jobstream watch -A`, out: `(?s)(.*\n)?({ns}/)?third state=Running .*`, err: `(?s).*`, interrupted: true},
	},
	"wait": {
		{line: `kubectl jobstream run render --image=busybox --completions=3 -o name -- sleep 1`, out: "job.batch/render\n"},
		{line: `kubectl jobstream run encode --image=busybox --restart=Never --backoff-limit=0 -o name -- false`, out: "job.batch/encode\n"},
		{line: `kubectl label job/render app=render`, out: `.*labeled\n`},
		{line: `kubectl jobstream wait render`, out: `job.batch/render is complete: 3 succeeded, 0 failed, in .*\n`},
		{line: `kubectl jobstream wait render encode --timeout=1h`, out: `(?s)(job.batch/render is complete.*\n|job.batch/encode has failed: BackoffLimitExceeded.*\n){2}`, err: `(?s).*`, code: 1},
		{line: `kubectl jobstream wait -l app=render`, out: `job.batch/render is complete: .*\n`},
	},
	"logs": {
		{line: `kubectl jobstream run render --image=busybox --completions=10 -o name -- sh -c 'test $JOB_COMPLETION_INDEX = 3 && mkdir ` + `'$PWD'/once3 2>/dev/null && echo spoilt && exit 1; echo page $JOB_COMPLETION_INDEX'`, out: "job.batch/render\n"},
		{line: `kubectl jobstream logs render -f`, out: `(?s)(\[\d\] (page \d|spoilt)\n){11}`, err: `(?s).*`},
		{line: `kubectl jobstream logs render`, out: `(\[\d\] page \d\n){10}`},
		{line: `kubectl jobstream logs render --index=3,7-9`, out: `\[3\] page 3\n\[7\] page 7\n\[8\] page 8\n\[9\] page 9\n`},
		{line: `kubectl jobstream logs render --failed`, out: `(\[3\] )?page 3\n`},
		{line: `kubectl jobstream logs render --index=3 --previous`, out: `(\[3\] )?spoilt\n`},
	},
	"rerun": {
		{line: halfDone("render", "managedBy: jobstream.dev/reconciler"), out: `.*created\n`},
		{line: halfDone("encode", "parallelism: 4"), out: `.*created\n`},
		{line: `kubectl jobstream wait render encode`, out: `(?s)(job.batch/(render|encode) has failed: FailedIndexes.*\n){2}`, err: `(?s).*`, code: 1},
		{line: `touch all`},
		{line: `kubectl jobstream rerun render`, out: `job.batch/render-rerun-\w{5} created\n`},
		{line: `kubectl jobstream rerun render --failed-indexes --logs`, out: `(?s).*job.batch/render-rerun-\w{5} created\n.*(\[\d\] index [13]\n){2}`, err: `2 succeeded, 0 failed`},
		{line: `kubectl jobstream rerun encode --failed-indexes --managed-by=jobstream.dev/reconciler`, out: `(?s).*job.batch/encode-rerun-\w{5} created\n.*`, err: `(?s).*`},
		{line: `kubectl jobstream rerun render --failed-indexes --name=render-2 --dry-run=client -o yaml`, out: `(?s).*name: render-2\n.*completions: 2\n.*`, err: `(?s).*`},
	},
	"stop": {
		{line: `kubectl jobstream run render --image=busybox -o name -- sleep 600`, out: "job.batch/render\n"},
		{line: `kubectl jobstream run encode --image=busybox -o name -- sleep 600`, out: "job.batch/encode\n"},
		{line: `kubectl label job/encode app=shop`, out: `.*labeled\n`},
		{line: `kubectl jobstream stop -l app=shop --dry-run=server`, out: `job.batch/encode stopped \(server dry run\)\n`},
		{line: `kubectl jobstream stop render`, out: `job.batch/render stopped\n`, err: `(?s).*`},
		{line: `kubectl jobstream stop render encode --wait`, out: `(?s)(job.batch/render .*\n)?job.batch/encode stopped\n.*`, err: `(?s).*`},
		{line: `kubectl get job encode -o jsonpath='{.status.conditions[*].type} {.status.conditions[0].reason}'`, out: `FailureTarget Failed ManuallyTerminated`},
	},
	"events": {
		{line: `kubectl jobstream run pi --image=busybox --restart=Never --backoff-limit=0 -o name -- false`, out: "job.batch/pi\n"},
		{line: `kubectl jobstream wait pi`, out: `(?s).*`, err: `(?s).*`, code: 1},
		{line: `kubectl jobstream events --type=JobFinish -f`, out: `\S+  JobFinish    {ns}/pi  Failed\(BackoffLimitExceeded\): 0 succeeded, 1 failed in \d+s; last failure: Pod pi-\w+ \(container \S+, exit code 1, \w+\) on \S+\n`, interrupted: true},
		{line: `kubectl jobstream events -A --since=24h -o json`, out: `(?s).*"type":"dev.jobstream.job.finish.v1".*"namespace":"{ns}".*`},
	},
	"decisions": {
		{line: `kubectl jobstream run pi --image=busybox -o name -- sleep 600`, out: "job.batch/pi\n"},
		{line: `kubectl wait job/pi --for=jsonpath='{.status.ready}'=1 --timeout=1m`, out: `(?s).*`},
		{line: `kubectl jobstream decisions pi`, out: `(?s)Job {ns}/pi, UID .*\nstate: revision \d+, \d+ bytes, written .* ago\n.*now it waits .*> CreatePod pi-.*> Announce JobStart .*`},
		{line: `kubectl jobstream decisions pi -o json > pi.json`},
		{line: `kubectl jobstream replay pi`, out: `(?s)# Job {ns}/pi, .*\njob completions=1 parallelism=1 backoffLimit=6 on-failure\n----\nTakeInventory\nCreatePod pi-.*\npod 0 runs\n----\n.*`},
		{line: `env -u JOBSTREAM_NATS_URL KUBECONFIG=/nowhere kubectl-jobstream replay -f pi.json`, out: `(?s)# Job {ns}/pi, .*\nCreatePod pi-.*`},
		{line: `kubectl jobstream replay -f pi.json`, out: `(?s)# Job {ns}/pi, .*\nCreatePod pi-.*`},
	},
	"doctor": {
		{line: `kubectl jobstream doctor`, out: `(?s).*`, err: `NATS and the programs are not visible with a kubeconfig`},
		{line: `kubectl jobstream doctor -A -o json`, out: `(?s)\[.*\]\n`, err: `(?s).*`},
	},
	"convert": {
		{line: `kubectl create cronjob hourly --image=busybox --schedule="7 * * * *" --dry-run=client -o yaml -- true > cronjobs.yaml`},
		{line: `kubectl jobstream convert -f cronjobs.yaml > scheduledjobs.yaml`, err: `(?s)hourly`},
		{line: `kubectl apply -f scheduledjobs.yaml`, out: "scheduledjob.jobstream.dev/hourly created\n"},
		// Helm is not available: this prints what it has rendered of a chart.
		{line: `mkdir bin chart && (echo '#!/bin/sh'; echo 'cat "$3"/rendered.yaml') > bin/helm && chmod +x bin/helm && sed 's/hourly/report/' cronjobs.yaml > chart/rendered.yaml`},
		{line: `helm template shop ./chart | kubectl jobstream convert -f - | kubectl apply -f -`, out: "scheduledjob.jobstream.dev/report created\n", err: `(?s).*`},
		{line: `kubectl create cronjob daily --image=busybox --schedule="0 0 1 1 *" -- true && kubectl label cronjob daily app=shop`, out: `(?s).*`},
		{line: `kubectl jobstream convert -A > /dev/null`, err: `daily`},
		{line: `kubectl jobstream convert --selector=app=shop --apply --suspend-originals`, out: `(?s).*`, err: `(?s).*`},
		{line: `kubectl get cronjob/daily -o jsonpath={.spec.suspend} && kubectl get scheduledjob/daily -o jsonpath={.spec.suspend}`, out: `true(false)?`},
		{line: `kubectl jobstream convert --selector=app=shop --to=CronJob --apply --suspend-originals`, out: `(?s).*`, err: `(?s).*`},
		{line: `kubectl get cronjob/daily -o jsonpath={.spec.suspend} && kubectl get scheduledjob/daily -o jsonpath={.spec.suspend}`, out: `falsetrue`},
	},
}

// halfDone applies an Indexed Job, two of whose four indexes fail as long as the file "all" does not exist.
func halfDone(name, more string) string {
	return `sed "s|DIR|$PWD|" <<'EOF' | kubectl apply -f -
apiVersion: batch/v1
kind: Job
metadata: {name: ` + name + `}
spec:
  ` + more + `
  completionMode: Indexed
  completions: 4
  backoffLimitPerIndex: 0
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: main
        image: busybox
        command: [sh, -c, 'echo index $JOB_COMPLETION_INDEX; test -e DIR/all || test $((JOB_COMPLETION_INDEX % 2)) = 0']
EOF`
}

// Each example of the help runs word for word, and prints what the table above requires. None is left out.
func TestKubectlExamplesOfEveryCommand(t *testing.T) {
	t.Parallel()
	system := own(t, harness.Config{})
	help := exampleLines(t)
	for _, lines := range examples {
		for _, l := range lines {
			delete(help, l.line)
		}
	}
	for line := range help {
		t.Errorf("the help has an example that is not in the table: %s", line)
	}
	for command, lines := range examples {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			u := openIn(t, system)
			u.env = append(u.env, "PATH="+filepath.Join(u.dir, "bin")+string(os.PathListSeparator)+strings.TrimPrefix(u.env[len(u.env)-1], "PATH="))
			u.env = append(u.env, "JOBSTREAM_NATS_URL="+system.NATS.URL, "JOBSTREAM_CLUSTER_NAME="+harness.ClusterName)
			for _, l := range lines {
				if !u.types(l) {
					return // the next line depends on this one
				}
			}
		})
	}
}

// types types a line, and reports whether its outcome is right.
func (u *terminal) types(l typedLine) bool {
	u.Helper()
	in := strings.NewReplacer("{ns}", regexp.QuoteMeta(u.Namespace)).Replace
	whole := regexp.MustCompile(`^(?:` + in(l.out) + `)$`)
	line, enter := l.line, u.enter
	if l.interrupted {
		enter = func(line string) (string, string, int) { return u.interrupt(line, whole) }
	}
	out, errOut, code := enter(line)
	if code != l.code || !whole.MatchString(out) || !regexp.MustCompile(in(l.err)).MatchString(errOut) {
		u.Errorf("$ %s\nexit code %d, want %d; it has printed\n%s%swant %q and %q", line, code, l.code, out, errOut, l.out, l.err)
		return false
	}
	return true
}

// interrupt runs a line until its output matches, types Ctrl-C, and returns as enter does.
func (u *terminal) interrupt(line string, until *regexp.Regexp) (out, errOut string, code int) {
	u.Helper()
	files := [2]*os.File{}
	for i := range files {
		f, err := os.CreateTemp(u.dir, "printed")
		if err != nil {
			u.Fatal(err)
		}
		defer f.Close()
		files[i] = f
	}
	printed := func(i int) string {
		text, err := os.ReadFile(files[i].Name())
		if err != nil {
			u.Fatal(err)
		}
		return string(text)
	}
	c := u.command(u.Context(), "exec "+line)
	c.Stdout, c.Stderr = files[0], files[1]
	if err := c.Start(); err != nil {
		u.Fatal(err)
	}
	within, cancel := context.WithTimeout(u.Context(), timeout)
	defer cancel()
	_ = harness.Poll(within, func(context.Context) error { // what is missing is found by the caller
		if until.MatchString(printed(0)) {
			return nil
		}
		return errors.New("not yet")
	})
	if err := c.Process.Signal(os.Interrupt); err != nil {
		u.Error(err)
	}
	_ = c.Wait() // its exit code is the outcome
	u.Logf("$ %s\n%s%s", line, printed(0), printed(1))
	return printed(0), printed(1), c.ProcessState.ExitCode()
}

// exampleLines returns the examples of all commands that have no test of their own.
func exampleLines(t *testing.T) map[string]bool {
	t.Helper()
	bin, err := plugin()
	if err != nil {
		t.Fatal(err)
	}
	read := func(args ...string) string {
		out, err := exec.Command(filepath.Join(bin, "kubectl-jobstream"), append(args, "--help")...).Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	lines := map[string]bool{}
	root := read()
	_, commands, _ := strings.Cut(root, "\nCommands:\n")
	names := [][]string{nil}
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z]+) `).FindAllStringSubmatch(commands, -1) {
		if m[1] != "run" && m[1] != "trigger" && m[1] != "help" {
			names = append(names, m[1:])
		}
	}
	for _, name := range names {
		_, text, _ := strings.Cut(read(name...), "\nExamples:\n")
		text, _, _ = strings.Cut(text, "\n\n"+map[bool]string{true: "Commands:", false: "Flags:"}[name == nil])
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); strings.Contains(line, "kubectl jobstream") && !strings.HasPrefix(line, "#") {
				lines[line] = true
			}
		}
	}
	return lines
}
