package kubectl

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// TestManifests: the output is all that "kubectl apply" needs, in that order, and no request is sent.
func TestManifests(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("HOME", t.TempDir())
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"lists", []string{"run", "fruits", "-n", "market", "--image=busybox", "--per-completion-env=FRUIT=apple kiwi", "--backoff-seconds=5", "--dry-run=client", "-o", "yaml", "--", "echo", "$(FRUIT)"}, `apiVersion: v1
data:
  FRUIT: |
    apple
    kiwi
immutable: true
kind: ConfigMap
metadata:
  name: fruits-env-x7k2p
  namespace: market
---
apiVersion: batch/v1
kind: Job
metadata:
  annotations:
    jobstream.dev/backoff-seconds: "5"
    jobstream.dev/per-completion-env: fruits-env-x7k2p
  name: fruits
  namespace: market
spec:
  completionMode: Indexed
  completions: 2
  managedBy: jobstream.dev/reconciler
  parallelism: 2
  template:
    metadata: {}
    spec:
      containers:
      - command:
        - echo
        - $(FRUIT)
        image: busybox
        name: main
        resources: {}
      restartPolicy: Never
status: {}
`},
		{"a time", []string{"run", "once", "--image=busybox", "--runAt=2026-12-24T18:00:00+01:00", "--dry-run=client", "-o", "yaml"}, `apiVersion: jobstream.dev/v1alpha1
kind: ScheduledJob
metadata:
  name: once
spec:
  jobTemplate:
    metadata: {}
    spec:
      managedBy: jobstream.dev/reconciler
      template:
        metadata: {}
        spec:
          containers:
          - image: busybox
            name: main
            resources: {}
          restartPolicy: OnFailure
  runAt: "2026-12-24T17:00:00Z"
status: {}
`},
		{"names only", []string{"run", "x", "--image=busybox", "--per-completion-env=F=a b", "--dry-run=client", "-o", "name"}, "configmap/x-env-x7k2p\njob.batch/x\n"},
		{"a sentence", []string{"run", "x", "--image=busybox", "--dry-run=client"}, "job.batch/x created (dry run)\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := call(t, "", tt.args); got.code != 0 || got.out != tt.want || got.err != "" {
				t.Errorf("want\n%s\ngot %s", tt.want, got)
			}
		})
	}
}

// TestHelp: every command has examples, and each can be pasted into a real shell without a usage error. There is no cluster, no
// file and no other program here; test/e2e shows that the examples work.
func TestHelp(t *testing.T) {
	if got := call(t, "", []string{"--help"}); got.code != 0 || !strings.Contains(got.out, "\n  kubectl jobstream COMMAND\n") || !strings.Contains(got.out, "\n  run ") {
		t.Errorf("the help is %s", got)
	}
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\nif [ \"$1\" != jobstream ]; then exit 0; fi\nshift\n'" + self + "' \"$@\"\necho $? >>'" + dir + "'/codes\n"
	if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	nowhere := "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"
	if err := os.WriteFile(filepath.Join(dir, "kubeconfig"), []byte(nowhere), 0o600); err != nil {
		t.Fatal(err)
	}
	root := newRoot(newTool(genericiooptions.NewTestIOStreamsDiscard()), "kubectl jobstream")
	for _, c := range append(root.Commands(), root) {
		if !c.IsAvailableCommand() || c.Name() == "help" {
			continue
		}
		examples := 0
		for line := range strings.Lines(c.Example) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "#") || !strings.Contains(line, "kubectl jobstream") {
				continue
			}
			examples++
			_ = os.Remove(filepath.Join(dir, "codes"))
			shell := exec.CommandContext(t.Context(), "sh", "-c", line)
			shell.Dir, shell.Env = dir, []string{"PATH=" + dir + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + dir, "KUBECONFIG=" + filepath.Join(dir, "kubeconfig"), asPlugin + "=1",
				"JOBSTREAM_NATS_URL=nats://127.0.0.1:1", "JOBSTREAM_NATS_CONNECT_TIMEOUT=10ms"}
			out, _ := shell.CombinedOutput() // other programs in the line may fail here
			codes, err := os.ReadFile(filepath.Join(dir, "codes"))
			if err != nil || strings.Contains(string(codes), strconv.Itoa(ExitUsage)) || strings.Contains(string(out), "note:") {
				t.Errorf("%s: exit codes %q, %v\n%s", line, codes, err, out)
			}
		}
		if examples == 0 || c.Short == "" {
			t.Errorf("%s has no examples", c.CommandPath())
		}
	}
}

// TestCalled: the usage shows the command as the user types it.
func TestCalled(t *testing.T) {
	for program, want := range map[string]string{"/usr/bin/kubectl-jobstream": "kubectl jobstream", "kubectl-my_jobs": "kubectl my-jobs", "./jobs": "jobs"} {
		if got := called(program); got != want {
			t.Errorf("%s is called %q, want %q", program, got, want)
		}
	}
}
