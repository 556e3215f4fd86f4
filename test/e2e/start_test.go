package e2e

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jobstream/jobstream/internal/dev/natsrelease"
	"github.com/jobstream/jobstream/internal/dev/port"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// oldNATS is the last release of a line without message schedules.
const oldNATS = "v2.10.29"

// A program that cannot work ends within seconds, with an exit code, the cause and the remedy. cmd/start_test.go has many more
// cases against imitated servers; here the servers are real.
func TestProgramsThatCannotWorkSayWhyAndEnd(t *testing.T) {
	t.Parallel()
	s := shared(t)
	kubeconfig := "--kubeconfig=" + s.ControlPlane.Kubeconfig()
	small := func(t *testing.T) string { return startNATS(t, "-max-payload", "1048576") }
	for _, tt := range []struct {
		name string
		args func(t *testing.T) []string
		says []string // the cause first, then the remedy
	}{
		{"kubeconfig that is missing", func(*testing.T) []string { return []string{"--kubeconfig=/nowhere/config", "--nats-url=" + s.NATS.URL} },
			[]string{"/nowhere/config", "no such file", "--kubeconfig", "JOBSTREAM_KUBECONFIG"}},
		{"bus that cannot be reached", func(t *testing.T) []string {
			return []string{kubeconfig, "--nats-url=nats://" + unusedAddress(t), "--nats-connect-timeout=2s"}
		},
			[]string{"NATS at nats://127.0.0.1:", "cannot be reached", "--nats-url", "JOBSTREAM_NATS_URL"}},
		{"bus for small messages", func(t *testing.T) []string { return []string{kubeconfig, "--nats-url=" + small(t)} },
			[]string{"max_payload", "1048576", "set max_payload: 8MB"}},
		{"old bus", func(t *testing.T) []string { return []string{kubeconfig, "--nats-url=" + startOldNATS(t)} },
			[]string{strings.TrimPrefix(oldNATS, "v"), "too old", "use nats-server 2.12"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := tt.args(t)
			for name, path := range map[string]string{"jobstream-trigger": programs(t).Trigger, "jobstream-reconciler": programs(t).Reconciler} {
				p := &harness.Process{Name: name, Path: path, LogFile: filepath.Join(t.TempDir(), "log"),
					Args: append(args, "--health-bind-address=0", "--metrics-bind-address=0"),
					Env:  []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}}
				if err := p.Start(); err != nil {
					t.Fatal(err)
				}
				code, err := p.Exit(seconds)
				if err != nil {
					t.Fatal(err, p.Kill())
				}
				_, complaint, found := strings.Cut("\n"+p.Printed(), "\n"+name+": ")
				if code == 0 || !found || !hasAll(complaint, tt.says) {
					t.Errorf("%s ended with %d, want %q in its output:\n%s", name, code, tt.says, p.Printed())
				}
			}
		})
	}
}

// unusedAddress returns an address on loopback on which no program listens.
func unusedAddress(t *testing.T) string {
	t.Helper()
	free, err := port.Free()
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(free))
}

// startNATS starts a server that is stopped with the test.
func startNATS(t *testing.T, args ...string) (url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	n, err := harness.StartNATS(ctx, programs(t).NATS, t.TempDir(), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Kill() })
	return n.URL
}

// startOldNATS starts a real server of the old release. If it cannot be installed, the test is skipped with the reason.
func startOldNATS(t *testing.T) (url string) {
	t.Helper()
	path, err := natsrelease.Build(t.Context(), oldNATS)
	if err != nil {
		t.Skipf("skipped, there is no old NATS server: %v", err)
	}
	address := unusedAddress(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	p := &harness.Process{Name: "old nats-server", Path: path, LogFile: filepath.Join(t.TempDir(), "log"),
		Args: []string{"-js", "-a", "127.0.0.1", "-p", port, "-sd", t.TempDir()}}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() })
	harness.Until(t, timeout, "the old NATS server to listen", func(context.Context) error {
		c, err := net.Dial("tcp", address)
		if err == nil {
			err = c.Close()
		}
		return err
	})
	return "nats://" + address
}
