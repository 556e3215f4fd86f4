package bus

import (
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jobstream/jobstream/bus/embedded"
	"github.com/jobstream/jobstream/internal/engine"
)

// A server that restarts with its disk loses nothing, and no loss is signalled.
func TestRestartKeepsEverything(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serveIn(t, dir, freePort(t))
	port := portOf(t, s)
	b := connect(t, s)
	st := store(t, b)
	key := keyOf(uid(1))
	rev, err := st.Save(t.Context(), key, []byte("x"), 0, false)
	if err != nil {
		t.Fatal(err)
	}
	publish(t, b, observation(key, 1))
	s.Shutdown()
	sent := make(chan error, 1)
	go func() { sent <- b.Publish(t.Context(), observation(key, 2)) }() // while no reconciler runs
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	serveIn(t, dir, port)
	if err := b.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	e := listen(t, b, allPartitions(), nil)
	until(t, "both facts are received", func() bool { return slices.Equal(e.versions(key), []uint64{1, 2}) })
	until(t, "the bus is ready", func() bool { return b.Ready() == nil })
	if data, have, err := st.Load(t.Context(), key); err != nil || string(data) != "x" || have != rev {
		t.Errorf("%q %d %v", data, have, err)
	}
	if losses(b) != 0 {
		t.Error("a loss was signalled, and nothing is lost")
	}
}

// A disk that lost confirmed messages, as after a power failure, is a loss although every stream is there.
func TestConfirmedAndGone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serveIn(t, dir, freePort(t))
	port := portOf(t, s)
	b := connect(t, s)
	key := keyOf(uid(1))
	publish(t, b, observation(key, 1))
	s.Shutdown()
	backup := t.TempDir()
	if err := os.CopyFS(backup, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	s = serveIn(t, dir, port)
	until(t, "the bus is found again", func() bool { return b.Ready() == nil })
	publish(t, b, observation(key, 2), observation(key, 3))
	s.Shutdown()
	serveIn(t, backup, port) // the disk as it was before the last two facts
	signalled(t, b)
	publish(t, b, observation(key, 4))
	if losses(b) != 0 {
		t.Error("one loss was announced twice")
	}
}

// The server restarts again and again under load; every published fact is delivered.
func TestRestartsUnderLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serveIn(t, dir, freePort(t))
	port := portOf(t, s)
	trigger, reconciler := connect(t, s), connect(t, s, patient) // otherwise a busy machine redelivers faster than the facts are saved, one by one
	st := store(t, reconciler)
	e := listen(t, reconciler, allPartitions(), func(d engine.Delivery) {
		_, rev, err := st.Load(t.Context(), d.Key())
		if err == nil {
			_, err = st.Save(t.Context(), d.Key(), []byte("x"), rev, false)
		}
		if err != nil {
			d.Nak(50 * time.Millisecond)
			return
		}
		d.Ack()
	})
	sent := uint64(0)
	send := func(n int) {
		for range n {
			sent++
			if err := trigger.Publish(t.Context(), observation(keyOf(uid(int(sent%30))), sent)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 3 {
		send(300)
		s.Shutdown()
		var start sync.WaitGroup
		start.Go(func() { // concurrently, since Publish blocks when too many facts are unconfirmed
			var err error
			if s, err = embedded.Start(embedded.Config{StoreDir: dir, Port: port}); err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(s.Shutdown)
		})
		t.Cleanup(start.Wait) // a send that fails ends the test
		send(100)
		if start.Wait(); t.Failed() {
			t.FailNow()
		}
	}
	if err := trigger.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen, looked := map[uint64]bool{}, 0
	within(t, 2*time.Minute, "every fact is received", func() bool {
		all := e.all()
		for _, d := range all[looked:] { // to decode all of them each time would take the processor from the server
			seen[versionOf(d.Event())] = true
		}
		looked = len(all)
		return uint64(len(seen)) == sent
	})
	if losses(trigger)+losses(reconciler) > 0 {
		t.Error("a loss was signalled, and nothing is lost")
	}
}
