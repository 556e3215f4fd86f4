package bus

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// configured is a NATS server with a configuration file, as operators run it. It is a process of its own because nats-server's reload
// races with the requests that it serves, in its own memory, and the race detector would blame the tests that run at that moment.
type configured struct {
	process *node
	log     *journal // of the process that was started last
	dir     string
	listen  string
	disk    string // where it stores, and how much it may
}

// configure starts a server with the given settings in addition to those that a bus needs.
func configure(t *testing.T, settings string) *configured {
	t.Helper()
	c := &configured{dir: t.TempDir(), listen: fmt.Sprintf("127.0.0.1:%d", freePort(t)), disk: "store_dir: \"" + t.TempDir() + "\""}
	c.start(t, settings)
	return c
}

func (c *configured) start(t *testing.T, settings string) {
	t.Helper()
	c.write(t, settings)
	c.log = &journal{}
	c.process = &node{Name: "configured", Config: c.file(), log: c.log}
	c.process.start(t)
	t.Cleanup(c.process.stop)
}

func (c *configured) file() string { return filepath.Join(c.dir, "nats.conf") }

func (c *configured) write(t *testing.T, settings string) {
	t.Helper()
	put(t, c.file(), fmt.Sprintf("listen: \"%s\"\nmax_payload: 8MB\njetstream { %s }\n%s\n", c.listen, c.disk, settings))
}

// reload changes the settings of the running server.
func (c *configured) reload(t *testing.T, settings string) {
	t.Helper()
	c.write(t, settings)
	if !c.process.is(reload) {
		t.Fatalf("the server does not reload its configuration:\n%s", c.log)
	}
}

// restart stops the server and starts it again, with the same address and disk.
func (c *configured) restart(t *testing.T, settings string) {
	t.Helper()
	c.process.stop()
	c.start(t, settings)
}

// put replaces a file atomically, as a kubelet replaces those of a Secret.
func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// journal is a log that tests can read.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// count returns how often the text occurs.
func (j *journal) count(what string) int { return strings.Count(j.String(), what) }

// lines returns the lines that contain all the words.
func (j *journal) lines(words ...string) (found []string) {
	for line := range strings.SplitSeq(j.String(), "\n") {
		if holds(line, words...) {
			found = append(found, line)
		}
	}
	return found
}

func holds(text string, words ...string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// logged changes a Config so that it writes a journal.
func logged(j *journal) func(*Config) {
	return func(c *Config) { c.Log = slog.New(slog.NewTextHandler(j, nil)) }
}

// unready waits until Ready's error contains all the words, and then until exactly one log line does.
func unready(t *testing.T, b *Bus, j *journal, words ...string) {
	t.Helper()
	var last error
	until(t, fmt.Sprintf("not ready, for %q", words), func() bool {
		last = b.Ready()
		return last != nil && holds(last.Error(), words...)
	})
	if n := len(j.lines(append(words, "level=WARN", "remedy=")...)); n != 1 {
		t.Errorf("%d lines of the log hold %q, want one:\n%s", n, words, j)
	}
	if strings.Contains(j.String()+last.Error(), "s3cret") {
		t.Errorf("a secret is told: %v\n%s", last, j)
	}
}

// recovers waits until the bus is ready and accepts a fact.
func recovers(t *testing.T, b *Bus, version uint64) {
	t.Helper()
	try := func() error {
		err := b.Ready()
		if err == nil {
			err = b.Publish(t.Context(), observation(keyOf(uid(1)), version))
		}
		if err == nil {
			err = b.Flush(t.Context())
		}
		return err
	}
	deadline := time.Now().Add(soon)
	for last := try(); last != nil; last = try() {
		if time.Now().After(deadline) {
			t.Fatalf("not ready within %v: %v", soon, last)
		}
		<-time.After(5 * time.Millisecond)
	}
}
