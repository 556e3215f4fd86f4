// Package cmd_test builds the trigger, the reconciler and jobstream, which contains both, and starts them as a user would, mostly
// with mistakes.
package cmd_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jobstream/jobstream/bus/embedded"
	_ "github.com/jobstream/jobstream/internal/app" // the programs' code: see TestMain
	"github.com/jobstream/jobstream/internal/app/apptest"
)

// soon is the deadline of every wait, generous because the machine may compile meanwhile.
const soon = time.Minute

// programs are the two that need a NATS server. All tests share one build of them and of jobstream.
var programs = []string{"trigger", "reconciler"}

var built string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "jobstream-cmd-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		built = dir
		for _, p := range append([]string{"jobstream"}, programs...) {
			// The go command caches the result of a test until a file changes that the test has read or imported. It does not know what
			// this test builds, so read its source.
			if _, err := os.ReadFile(filepath.Join(p, "main.go")); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
			// Without symbols the linker has a third less to do.
			if out, err := exec.Command("go", "build", "-ldflags=-s", "-o", path(p), "./"+p).CombinedOutput(); err != nil {
				fmt.Fprintf(os.Stderr, "build %s: %v\n%s", p, err, out)
				return 1
			}
		}
		return m.Run()
	}())
}

func path(program string) string {
	if program == "jobstream" {
		return filepath.Join(built, program)
	}
	return filepath.Join(built, "jobstream-"+program)
}

// start starts a program in an environment with only the given variables.
func start(t *testing.T, program string, env []string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	c := exec.CommandContext(t.Context(), path(program), args...)
	c.Env = append([]string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}, env...)
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	c.WaitDelay = soon
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c, &said
}

// end waits for the program and returns its exit code.
func end(t *testing.T, c *exec.Cmd) int {
	t.Helper()
	late := time.AfterFunc(soon, func() { _ = c.Process.Kill() })
	defer late.Stop()
	err := c.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode()
}

// nats starts a NATS server.
func nats(t *testing.T, c embedded.Config) string {
	t.Helper()
	c.StoreDir, c.Port = t.TempDir(), -1
	s, err := embedded.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	return s.URL()
}

// oldNATS plays an outdated NATS server: it reports its version, and supports no JetStream API level.
func oldNATS(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go speakNATS(c)
		}
	}()
	return "nats://" + l.Addr().String()
}

// speakNATS answers the handshake, and every request for account information as nats-server 2.10 does, which had no API levels.
func speakNATS(c net.Conn) {
	defer c.Close()
	fmt.Fprintf(c, "INFO {\"server_id\":\"OLD\",\"version\":\"2.10.29\",\"proto\":1,\"headers\":true,\"jetstream\":true,\"max_payload\":8388608}\r\n")
	var sid, seen string
	buf := make([]byte, 64<<10)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return
		}
		seen += string(buf[:n])
		for {
			line, rest, ok := strings.Cut(seen, "\r\n")
			if !ok {
				break
			}
			seen = rest
			words := strings.Fields(line)
			switch {
			case line == "PING":
				fmt.Fprint(c, "PONG\r\n")
			case len(words) >= 3 && words[0] == "SUB":
				sid = words[len(words)-1]
			case len(words) >= 3 && (words[0] == "PUB" || words[0] == "HPUB") && strings.HasSuffix(words[1], "API.INFO"):
				answer := `{"type":"io.nats.jetstream.api.v1.account_info_response","memory":0,"storage":0,"limits":{},"api":{"total":1,"errors":0}}`
				fmt.Fprintf(c, "MSG %s %s %d\r\n%s\r\n", words[2], sid, len(answer), answer)
			}
		}
	}
}

func TestBadStarts(t *testing.T) {
	api := apptest.Start(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	quiet := []string{"--metrics-bind-address=0", "--health-bind-address=0"}
	good := nats(t, embedded.Config{})
	for _, tt := range []struct {
		name string
		env  []string
		args []string
		code int
		says []string
	}{
		{"an unknown flag", nil, []string{"--what"}, 2, []string{"unknown flag: --what", "--help"}},
		{"an argument", nil, []string{"what"}, 2, []string{`"what"`, "--help"}},
		{"a bad value", nil, []string{"--nats-replicas=three"}, 2, []string{"--nats-replicas", "three"}},
		{"a bad twin", []string{"JOBSTREAM_NATS_REPLICAS=three"}, nil, 2, []string{"JOBSTREAM_NATS_REPLICAS", "three"}},
		{"a bad level", nil, []string{"--log-level=loud"}, 2, []string{"--log-level", "loud", "debug, info, warn or error"}},
		{"no kubeconfig and no cluster", nil, nil, 1, []string{"not a Pod of a cluster", "--kubeconfig", "KUBECONFIG"}},
		{"a kubeconfig that is missing", nil, []string{"--kubeconfig=/nowhere/config"}, 1, []string{"/nowhere/config", "no such file", "--kubeconfig"}},
		{"a kubeconfig of the environment that is missing", []string{"KUBECONFIG=/nowhere/env"}, nil, 1, []string{"/nowhere/env", "no such file"}},
		{"an API server that is away", nil, []string{"--kubeconfig=" + apptest.Kubeconfig(t, "http://127.0.0.1:1")}, 1, []string{"cannot reach the API server at 127.0.0.1:", "refused", "kubectl version"}},
		{"a bus that is away", nil, []string{"--kubeconfig=" + api.Kubeconfig, "--nats-connect-timeout=1s", "--nats-url=nats://127.0.0.1:1"}, 1, []string{"NATS at nats://127.0.0.1:", "cannot be reached", "--nats-url", "JOBSTREAM_NATS_URL"}},
		{"an old bus", nil, []string{"--kubeconfig=" + api.Kubeconfig, "--nats-url=" + oldNATS(t)}, 1, []string{"2.10.29", "too old", "2.12"}},
		{"a bus for small messages", nil, []string{"--kubeconfig=" + api.Kubeconfig, "--nats-url=" + nats(t, embedded.Config{MaxPayload: 1 << 20})}, 1, []string{"max_payload", "1048576", "8MB"}},
		{"a bus that wants credentials that are missing", nil, []string{"--kubeconfig=" + api.Kubeconfig, "--nats-url=" + good, "--nats-credentials=/nowhere/creds"}, 1, []string{"/nowhere/creds", "check the files"}},
		{"half a certificate", nil, []string{"--kubeconfig=" + api.Kubeconfig, "--nats-url=" + good, "--nats-cert=/nowhere/cert"}, 2, []string{"--nats-cert and --nats-key need each other"}},
		{"two kinds of credentials", []string{"JOBSTREAM_NATS_TOKEN_FILE=/nowhere/token"}, []string{"--nats-user-file=/nowhere/user", "--nats-password-file=/nowhere/password"}, 2, []string{"--nats-user-file and --nats-token-file both"}},
		{"a port that is taken", nil, []string{"--health-bind-address=" + taken.Addr().String()}, 1, []string{"in use", "--health-bind-address", "JOBSTREAM_HEALTH_BIND_ADDRESS"}},
	} {
		for _, program := range programs {
			t.Run(program+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				c, said := start(t, program, tt.env, append(quiet, tt.args...)...)
				if code := end(t, c); code != tt.code {
					t.Errorf("exit code %d, want %d", code, tt.code)
				}
				_, complaint, found := strings.Cut("\n"+said.String(), "\njobstream-"+program+": ")
				if lines := strings.Count(complaint, "\n"); !found || lines < 1 || lines > 2 {
					t.Errorf("the error has %d lines, want one for the cause and one for the remedy", lines)
				}
				for _, want := range tt.says {
					if !strings.Contains(complaint, want) {
						t.Errorf("it does not say %q", want)
					}
				}
				if t.Failed() {
					t.Log(said.String())
				}
			})
		}
	}
}

func TestReadyThenGracefulStop(t *testing.T) {
	api := apptest.Start(t)
	for _, program := range programs {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			health, metrics := apptest.FreeAddress(t), apptest.FreeAddress(t)
			c, said := start(t, program, []string{"JOBSTREAM_KUBECONFIG=" + api.Kubeconfig, "JOBSTREAM_NATS_URL=" + nats(t, embedded.Config{})},
				"--health-bind-address="+health, "--metrics-bind-address="+metrics, "--log-format=json")
			await(t, "http://"+health+"/readyz", "ready")
			await(t, "http://"+health+"/healthz", "ok")
			await(t, "http://"+metrics+"/metrics", "jobstream_bus_ready 1")
			if err := c.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if code := end(t, c); code != 0 {
				t.Errorf("exit code %d after SIGTERM:\n%s", code, said)
			}
			for line := range strings.Lines(said.String()) {
				if !strings.HasPrefix(line, "{") {
					t.Errorf("a line that is not JSON: %s", line)
				}
			}
		})
	}
}

// await polls until the address answers 200 with the text.
func await(t *testing.T, url, text string) {
	t.Helper()
	client := http.Client{Timeout: soon}
	late, again := time.After(soon), time.NewTicker(20*time.Millisecond)
	defer again.Stop()
	for {
		var last string
		if response, err := client.Get(url); err != nil {
			last = err.Error()
		} else {
			body, _ := io.ReadAll(response.Body)
			response.Body.Close()
			if last = string(body); response.StatusCode == http.StatusOK && strings.Contains(last, text) {
				return
			}
		}
		select {
		case <-again.C:
		case <-late:
			t.Fatalf("%s: %s", url, last)
		}
	}
}
