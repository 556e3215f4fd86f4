package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

// A newer version of both programs joins in the middle of a run, in either order, and is rolled back in either: no count is
// wrong and no message is quarantined. Neither reconciler can decode the facts of the other's trigger, which costs inventories.
func TestVersionsMayBeMixedInAnyOrder(t *testing.T) {
	t.Parallel()
	s := own(t, harness.Config{})
	next := buildNextVersion(t)
	trigger := pair{s.Triggers[0], s.Program("trigger-next", next.Trigger)}
	reconciler := pair{s.Reconcilers[0], s.Program("reconciler-next", next.Reconciler)}
	t.Cleanup(func() { stop(t, trigger.new); stop(t, reconciler.new) })
	tests := []struct {
		name   string
		stages []func(t *testing.T)
	}{
		{"ReconcilersFirstUpTriggersFirstDown", []func(*testing.T){reconciler.up, trigger.up, trigger.down, reconciler.down}},
		{"TriggersFirstUpReconcilersFirstDown", []func(*testing.T){trigger.up, reconciler.up, reconciler.down, trigger.down}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			const share = 40 // Pods that succeed between two changes
			said := [2]int{len(since(t, reconciler.old, 0)), len(since(t, reconciler.new, 0))}
			b := startBatch(t, s, share*(len(test.stages)+1), 20, false)
			for i, change := range test.stages {
				b.awaitDone(share*i + share/2)
				if !b.runs() {
					t.Error("the Job had ended before: this run proves nothing")
				}
				t.Logf("change %d of %d when the Job is %s", i+1, len(test.stages), harness.Brief(b.Job(b.job.Name).Status))
				change(t)
			}
			b.finish(t)
			log := since(t, reconciler.old, said[0]) + since(t, reconciler.new, said[1])
			if !strings.Contains(log, "a fact cannot be read; inventory is taken instead") {
				t.Error("all facts could be read: were there two versions at all?")
			}
			if strings.Contains(log, "message set aside") {
				t.Error("messages were set aside")
			}
		})
	}
	for _, p := range []*harness.Process{trigger.old, reconciler.old} {
		if !p.Running() {
			t.Errorf("%s has ended: %s", p.Name, harness.Tail(p.Printed(), 5))
		}
	}
}

// pair is a program in two versions, of which one runs.
type pair struct{ old, new *harness.Process }

func (p pair) up(t *testing.T)   { replace(t, p.old, p.new) }
func (p pair) down(t *testing.T) { replace(t, p.new, p.old) }

// replace starts one program and then stops the other, as a Deployment does.
func replace(t *testing.T, what, by *harness.Process) {
	t.Helper()
	if err := by.Start(); err != nil {
		t.Fatal(err)
	}
	if err := harness.Ready(t.Context(), by); err != nil {
		t.Fatal(err)
	}
	stop(t, what)
}

func stop(t *testing.T, p *harness.Process) {
	t.Helper()
	if !p.Running() {
		return
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
}

// since returns what the program has printed, in all its lives, beyond the given length of its log.
func since(t *testing.T, p *harness.Process, length int) string {
	t.Helper()
	text, err := os.ReadFile(p.LogFile)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text[length:])
}

// nextVersion are changes that a next version might have: a state with one more field, and renamed facts. Each is a file, the
// text in it, and its replacement.
var nextVersion = []struct{ file, old, new string }{
	{"functions/job/job.go", `Version: +\d+,`, "Version: 1000,"},
	{"functions/job/state.go", `type State struct \{`, "type State struct {\n\tNext2 []string\n"},
	{"events/codec.go", `func \(t Type\) Version\(\) int \{`, "func (t Type) Version() int {\nif t == TypeJobObserved || t == TypeJobListed || t == TypePodObserved { return 1000 }\n"},
}

// buildNextVersion builds both programs with these changes; the source stays as it is.
func buildNextVersion(t *testing.T) (p harness.Programs) {
	t.Helper()
	dir := t.TempDir()
	root, err := filepath.Abs(harness.Root)
	if err != nil {
		t.Fatal(err)
	}
	overlay := map[string]map[string]string{"Replace": {}}
	for _, c := range nextVersion {
		path := filepath.Join(root, c.file)
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		was := regexp.MustCompile(c.old)
		if n := len(was.FindAll(source, -1)); n != 1 {
			t.Fatalf("%s has %d places that read %s, want one", c.file, n, c.old)
		}
		changed := filepath.Join(dir, strings.ReplaceAll(c.file, "/", "_"))
		if err := os.WriteFile(changed, was.ReplaceAll(source, []byte(c.new)), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay["Replace"][path] = changed
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, list, 0o600); err != nil {
		t.Fatal(err)
	}
	p.Trigger, p.Reconciler = filepath.Join(dir, "trigger"), filepath.Join(dir, "reconciler")
	for path, pkg := range map[string]string{p.Trigger: "./cmd/trigger", p.Reconciler: "./cmd/reconciler"} {
		build := exec.CommandContext(t.Context(), "go", "build", "-overlay", file, "-o", path, pkg)
		build.Dir = root
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	return p
}
