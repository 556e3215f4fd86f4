package bus

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/jobstream/jobstream/internal/dev/port"
)

// serverEnv makes the test's own binary a NATS server: a separate process, which can be killed without warning.
const serverEnv = "BUS_TEST_SERVER"

func TestMain(m *testing.M) {
	if config := os.Getenv(serverEnv); config != "" {
		if err := beServer(config); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// node is one of three servers, or one alone.
type node struct {
	Name        string
	Config      string // a configuration file, which then has all that follows
	Dir         string
	Disk        int64 // its storage limit; 0 for three quarters of what is free
	Port        int   // for clients
	ClusterPort int   // 0 for one alone
	Routes      string

	log   *journal // what it logs, if it has a configuration file
	mu    sync.Mutex
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
}

// Requests that a server process answers with a line.
const (
	leading      = "leading"       // whether it leads the cluster
	storing      = "storing"       // whether JetStream is on
	reload       = "reload"        // reads its configuration file again; whether that has worked
	stopStoring  = "stop storing"  // turns JetStream off, as when it cannot write; whether that has worked
	whereMonitor = "where monitor" // address of its monitoring
)

func answer(s *server.Server, request string) string {
	switch request {
	case leading:
		return strconv.FormatBool(s.JetStreamIsLeader())
	case storing:
		return strconv.FormatBool(s.JetStreamEnabled())
	case reload:
		return strconv.FormatBool(s.Reload() == nil)
	case stopStoring:
		return strconv.FormatBool(s.DisableJetStream() == nil)
	case whereMonitor:
		return s.MonitorAddr().String()
	}
	return "unknown request"
}

func (n *node) options() (*server.Options, error) {
	if n.Config != "" {
		o, err := server.ProcessConfigFile(n.Config)
		if err == nil {
			o.NoSigs = true
		}
		return o, err
	}
	o := &server.Options{
		ServerName: n.Name, Host: "127.0.0.1", Port: n.Port, NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: n.Dir, JetStreamMaxStore: n.Disk, MaxPayload: 8 << 20,
	}
	if n.ClusterPort != 0 {
		o.Cluster = server.ClusterOpts{Name: "trio", Host: "127.0.0.1", Port: n.ClusterPort}
		o.Routes = server.RoutesFromStr(n.Routes)
	}
	return o, nil
}

// beServer serves until standard input ends, and so never outlives the test. Each line of input is a request.
func beServer(config string) error {
	var n node
	if err := json.Unmarshal([]byte(config), &n); err != nil {
		return err
	}
	o, err := n.options()
	if err != nil {
		return err
	}
	s, err := server.NewServer(o)
	if err != nil {
		return err
	}
	s.ConfigureLogger() // which ends the process if there is no address to listen on
	s.Start()
	if !s.ReadyForConnections(soon) {
		return fmt.Errorf("%s is not ready", n.Name)
	}
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		fmt.Println(answer(s, in.Text()))
	}
	s.Shutdown()
	s.WaitForShutdown()
	return nil
}

// start starts the process. Another process may have the port for a moment: then start tries again.
func (n *node) start(t *testing.T) {
	t.Helper()
	config, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	until(t, n.Name+" starts", func() bool {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), serverEnv+"="+string(config))
		if n.log != nil {
			cmd.Stderr = n.log
		}
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		n.cmd, n.stdin, n.lines = cmd, in, bufio.NewScanner(out)
		defer n.limit().Stop()
		if n.lines.Scan() && n.lines.Text() == "ready" {
			return true
		}
		n.end()
		return false
	})
}

// limit kills the process unless the timer is stopped soon: one that does not answer would keep n locked for ever.
func (n *node) limit() *time.Timer {
	p := n.cmd.Process
	return time.AfterFunc(soon, func() { _ = p.Kill() })
}

// signal sends a signal to the process.
func (n *node) signal(t *testing.T, s os.Signal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.cmd.Process.Signal(s); err != nil {
		t.Error(err)
	}
}

// stop lets the server end in good order.
func (n *node) stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd != nil {
		defer n.limit().Stop()
		_ = n.stdin.Close()
		_ = n.cmd.Wait() // unlike a kill, also for what it logs
		n.cmd = nil
	}
}

// kill sends SIGKILL.
func (n *node) kill() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.end()
}

func (n *node) end() {
	if n.cmd != nil {
		_ = n.cmd.Process.Kill()
		_ = n.cmd.Wait()
		n.cmd = nil
	}
}

// leads reports whether the node leads the cluster: the leader places streams.
func (n *node) leads() bool { return n.is(leading) }

// is reports whether the node answers a request with yes.
func (n *node) is(request string) bool { return n.ask(request) == "true" }

// ask returns the node's answer, "" if it does not run.
func (n *node) ask(request string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd == nil {
		return ""
	}
	defer n.limit().Stop()
	if _, err := fmt.Fprintln(n.stdin, request); err != nil || !n.lines.Scan() {
		return ""
	}
	return n.lines.Text()
}

// processes starts a cluster of three servers, each a process, and returns them by name, with the URL of all.
func processes(t *testing.T, change ...func(*node)) (map[string]*node, string) {
	t.Helper()
	var all []*node
	var urls, routes []string
	for i := range 3 {
		n := &node{Name: fmt.Sprintf("nats-%d", i), Dir: t.TempDir(), Port: freePort(t), ClusterPort: freePort(t)}
		for _, f := range change {
			f(n)
		}
		all = append(all, n)
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", n.Port))
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", n.ClusterPort))
	}
	byName := map[string]*node{}
	for _, n := range all {
		n.Routes = strings.Join(routes, ",")
		byName[n.Name] = n
		t.Cleanup(n.kill)
		n.start(t)
	}
	return byName, strings.Join(urls, ",")
}

func freePort(t testing.TB) int {
	t.Helper()
	p, err := port.Free()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// beats are the times of confirmations.
type beats struct {
	mu  sync.Mutex
	all []time.Time
}

func (b *beats) beat() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, time.Now())
}

// since returns the number of confirmations after the moment.
func (b *beats) since(moment time.Time) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	at, _ := slices.BinarySearchFunc(b.all, moment, time.Time.Compare)
	return len(b.all) - at
}

// gap returns the longest time without a confirmation, from the last one before the moment to the end.
func (b *beats) gap(moment time.Time) (longest time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at, _ := slices.BinarySearchFunc(b.all, moment, time.Time.Compare)
	for i := max(at, 1); i < len(b.all); i++ {
		longest = max(longest, b.all[i].Sub(b.all[i-1]))
	}
	return longest
}
