package cmd_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/jobstream/jobstream/internal/app/apptest"
)

// aside returns the flags of a jobstream whose ports collide with no other program's.
func aside(t *testing.T) []string {
	return []string{"--nats-port=0", "--metrics-bind-address=0", "--health-bind-address=0", "--dir=" + filepath.Join(t.TempDir(), "bus")}
}

func TestJobstreamBadStarts(t *testing.T) {
	api := apptest.Start(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	_, port, err := net.SplitHostPort(taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	good := "--kubeconfig=" + api.Kubeconfig
	old := "--kubeconfig=" + apptest.StartVersion(t, 34).Kubeconfig
	away := "--kubeconfig=" + apptest.Kubeconfig(t, "http://127.0.0.1:1")
	for _, tt := range []struct {
		name string
		env  []string
		args []string
		code int
		says []string // parts of the cause and the remedy
	}{
		{"no kubeconfig", nil, nil, 1, []string{"no kubeconfig was named", "--kubeconfig", "~/.kube/config"}},
		{"a kubeconfig that is missing", nil, []string{"--kubeconfig=/nowhere/config"}, 1, []string{"/nowhere/config", "no such file", "--kubeconfig"}},
		{"a context that is missing", nil, []string{good, "--context=west"}, 1, []string{`"west"`, "--context"}},
		{"a cluster that is away", nil, []string{away}, 1, []string{"cannot reach the API server at 127.0.0.1:", "refused", "kubectl version"}},
		{"an old cluster", nil, []string{old}, 1, []string{"v1.34.3", "Kubernetes 1.35 or newer is needed", "upgrade the cluster"}},
		{"a NATS server of one's own", nil, []string{good, "--nats-url=nats://127.0.0.1:4222"}, 2, []string{"has a NATS server of its own", "jobstream-trigger and jobstream-reconciler"}},
		{"the same, left in the environment", []string{"JOBSTREAM_NATS_URL=nats://127.0.0.1:4222"}, []string{good}, 2, []string{"JOBSTREAM_NATS_URL", "leave it out"}},
		{"NATS' port is taken", nil, []string{good, "--nats-port=" + port}, 1, []string{"cannot start NATS", "in use", "--nats-port", "JOBSTREAM_NATS_PORT"}},
		{"a port that is none", nil, []string{good, "--nats-port=70000"}, 2, []string{"--nats-port 70000", "65535"}},
		{"a health port that is taken", nil, []string{good, "--health-bind-address=" + taken.Addr().String()}, 1, []string{"in use", "--health-bind-address"}},
		{"a folder that cannot be made", nil, []string{good, "--dir=" + filepath.Join(file, "bus")}, 1, []string{"cannot use the folder", file, "not a directory", "--dir", "JOBSTREAM_DIR"}},
		{"streams that the disk has no room for", nil, []string{good, "--nats-facts-bytes=1000000000000000"}, 1, []string{"--nats-facts-bytes", "--dir"}},
		{"a bad interval", nil, []string{good, "--relist-interval=-1s"}, 2, []string{"--relist-interval -1s"}},
		{"a doctor without NATS", nil, []string{"doctor", good, "--nats-port=0"}, 2, []string{"nothing to look at"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			args := tt.args
			if len(args) == 0 || args[0] != "doctor" { // doctor serves no ports
				args = append(aside(t), args...)
			}
			c, said := start(t, "jobstream", tt.env, args...)
			if code := end(t, c); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			_, complaint, found := strings.Cut("\n"+said.String(), "\njobstream: ")
			if lines := strings.Count(complaint, "\n"); !found || lines != 2 {
				t.Errorf("the error has %d lines, want one for the cause and one for the remedy", lines)
			}
			for _, want := range tt.says {
				if !strings.Contains(said.String(), want) {
					t.Errorf("it does not say %q", want)
				}
			}
			if t.Failed() {
				t.Log(said.String())
			}
		})
	}
}

// The test does not apply to root, who may write everywhere.
func TestJobstreamInAFolderOfOthers(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("skipped: root may write everywhere")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	c, said := start(t, "jobstream", nil, append(aside(t), "--kubeconfig="+apptest.Start(t).Kubeconfig, "--dir="+dir)...)
	if code := end(t, c); code != 1 || !strings.Contains(said.String(), "permission denied") || !strings.Contains(said.String(), "--dir") {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// jobstream finds the kubeconfig as kubectl does, keeps its data in a folder, lets only clients with the token use NATS, and ends
// cleanly. Other tests cover its output, and a real cluster.
func TestJobstreamAtHome(t *testing.T) {
	home := t.TempDir()
	api := apptest.Start(t)
	if err := os.Mkdir(filepath.Join(home, ".kube"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(api.Kubeconfig, filepath.Join(home, ".kube", "config")); err != nil {
		t.Fatal(err)
	}
	health, bus := apptest.FreeAddress(t), apptest.FreeAddress(t)
	_, port, _ := net.SplitHostPort(bus)
	c, said := start(t, "jobstream", []string{"HOME=" + home}, "--log-format=json", "--health-bind-address="+health, "--metrics-bind-address=0", "--nats-port="+port)
	await(t, "http://"+health+"/readyz", "[+]lists ok\n[+]cluster ok\n[+]bus ok\n[+]partitions ok\nready")

	folder := filepath.Join(home, ".local", "state", "jobstream", strings.ReplaceAll(strings.TrimPrefix(api.URL, "http://"), ":", "_"))
	info, err := os.Stat(filepath.Join(folder, "token"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the token: %v, %v", info, err)
	}
	token, err := os.ReadFile(filepath.Join(folder, "token"))
	if err != nil {
		t.Fatal(err)
	}
	if nc, err := natsgo.Connect("nats://" + bus); err == nil {
		nc.Close()
		t.Error("NATS accepts a client without the token")
	}
	nc, err := natsgo.Connect("nats://"+bus, natsgo.Token(strings.TrimSpace(string(token))), natsgo.Timeout(time.Minute))
	if err != nil {
		t.Errorf("NATS rejects a client with the token: %v", err)
	} else {
		nc.Close()
	}

	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := end(t, c); code != 0 {
		t.Errorf("exit code %d after SIGINT", code)
	}
	for line := range strings.Lines(said.String()) {
		slow := strings.Contains(line, "deadline exceeded") || strings.Contains(line, "nats: timeout")
		if strings.HasPrefix(line, "{") && !slow && // an answer that takes seconds on a busy machine is no fault
			!strings.Contains(line, "authentication error") {
			t.Errorf("an unexpected warning: %s", line)
		}
	}
	if strings.Contains(said.String(), strings.TrimSpace(string(token))) {
		t.Error("the token was printed")
	}
}
