package bus

import (
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/jobstream/jobstream/internal/testvolume"
)

// What nats-server 2.15.2 does if only a part of the first message of a file's block fits on the disk: it records all sequences
// up to the stream's last as lost, one by one and in memory, which takes all memory that there is, since jobstream's streams
// begin to count at the time in microseconds. An operator who bounds the server's memory has it killed and restarted; with room
// on the disk, everything confirmed is there. If this test fails because nothing grows, docs/operations.md has one warning less
// to give.
func TestFullVolumeAtTheStartOfABlock(t *testing.T) {
	t.Parallel()
	const growth, page = 256 << 20, 4 << 10
	v := testvolume.New(t, volumeBytes)
	n := &node{Name: "alone", Dir: v.Dir, Disk: 1 << 40, Port: freePort(t)}
	n.start(t)
	t.Cleanup(n.kill)
	j := &journal{}
	b := connect(t, nil, logged(j), func(c *Config) { c.URL = fmt.Sprintf("nats://127.0.0.1:%d", n.Port) })
	states := store(t, b)
	recovers(t, b, 1)
	v.Fill(t)
	v.Leave(t, page)
	before := resident(t, n)
	save := func() error {
		_, err := states.Save(t.Context(), keyOf(uid(1)), make([]byte, 4*page), 0, false)
		return err
	}
	saved := make(chan error, 1)
	go func() { saved <- save() }()
	until(t, "the server takes more and more memory", func() bool { return resident(t, n) > before+growth })
	n.kill()
	if err := <-saved; err == nil {
		t.Error("saved, on a full disk")
	}
	v.Free(t)
	n.start(t)
	recovers(t, b, 2)
	until(t, "the state is saved", func() bool { return save() == nil })
	if got := messages(t, b, b.names.facts()); got != 2 {
		t.Errorf("%d facts, of 2 that were confirmed", got)
	}
}

// resident returns the memory of the process, in bytes.
func resident(t *testing.T, n *node) (bytes uint64) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", n.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	var size, pages uint64
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * uint64(os.Getpagesize())
}

// The disk of one of three servers is full: it turns its own JetStream off, the other two take over, and work goes on. With room
// on the disk, and after a restart, it is one of three again.
func TestFullVolumeOfOneOfThree(t *testing.T) {
	t.Parallel()
	const name = "nats-0"
	v := testvolume.New(t, 4*volumeBytes)
	nodes, url := processes(t, func(n *node) {
		if n.Name == name {
			n.Dir, n.Disk = v.Dir, 1<<40
		}
	})
	full := nodes[name]
	var b *Bus
	until(t, "the cluster has a leader", func() (ok bool) {
		var err error
		b, err = Connect(t.Context(), Config{Cluster: "test", URL: url, Replicas: 3, ConnectTimeout: soon, Log: slog.New(slog.DiscardHandler)})
		return err == nil
	})
	t.Cleanup(b.Close)
	states := store(t, b)
	var revision uint64
	saved := 0
	save := func() bool {
		now, err := states.Save(t.Context(), keyOf(uid(1)), make([]byte, 64<<10), revision, false)
		if err != nil { // it may have been saved
			_, revision, _ = states.Load(t.Context(), keyOf(uid(1)))
			return false
		}
		revision = now
		saved++
		return true
	}
	until(t, "a state is saved", save)
	v.Fill(t)
	filled := time.Now()
	// At once if it follows. If it leads, each write waits for an answer in vain, and this takes half a minute.
	within(t, 2*time.Minute, "the server has turned JetStream off", func() bool { save(); return !full.is(storing) })
	t.Logf("it was off %v after the disk was full", time.Since(filled).Round(time.Millisecond))
	for range 10 {
		within(t, 2*time.Minute, "a state is saved by the other two", save) // they may elect a leader first
	}
	until(t, "the bus is ready", func() bool { return b.Ready() == nil })
	v.Free(t)
	full.kill()
	full.start(t)
	until(t, "the server stores again", func() bool { return full.is(storing) })
	until(t, "a state is saved by the three", save)
	until(t, "all three are up to date", func() bool {
		s, err := b.js.Stream(t.Context(), states.stream.CachedInfo().Config.Name)
		if err != nil || s.CachedInfo().Cluster == nil || s.CachedInfo().Cluster.Leader == "" {
			return false
		}
		current := 1
		for _, r := range s.CachedInfo().Cluster.Replicas {
			if r.Current && !r.Offline {
				current++
			}
		}
		return current == 3
	})
	t.Logf("%d states were confirmed", saved)
}
