package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/engine"
)

func store(t testing.TB, b *Bus) *Store {
	t.Helper()
	s, err := b.Store("job")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// saved stores the key's first state and returns its revision. What the server did not confirm in time is sent again; if it is there by
// then, the first one has arrived.
func saved(t testing.TB, st *Store, key events.Key, data []byte) (revision uint64) {
	t.Helper()
	sent := 0
	until(t, fmt.Sprintf("%d bytes are saved", len(data)), func() bool {
		at, err := st.Save(t.Context(), key, data, 0, false)
		sent++
		switch {
		case err == nil:
			revision = at
			return true
		case errors.Is(err, context.DeadlineExceeded):
			return false
		case sent == 1 || !errors.Is(err, engine.ErrConflict):
			t.Fatal(err)
		}
		have, at, err := st.Load(t.Context(), key)
		if err == nil && !bytes.Equal(have, data) {
			t.Fatalf("%d other bytes at revision %d", len(have), at)
		}
		revision = at
		return err == nil
	})
	return revision
}

func TestStoreComparesAndSets(t *testing.T) {
	t.Parallel()
	st := store(t, connect(t, serve(t)))
	ctx, key := t.Context(), keyOf(uid(1))
	if data, rev, err := st.Load(ctx, key); data != nil || rev != 0 || err != nil {
		t.Fatalf("an unknown key: %q %d %v", data, rev, err)
	}
	one, err := st.Save(ctx, key, []byte("one"), 0, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Save(ctx, key, []byte("other"), 0, false); !errors.Is(err, engine.ErrConflict) || !strings.Contains(err.Error(), key.String()) {
		t.Errorf("created twice: %v", err)
	}
	two, err := st.Save(ctx, key, []byte("two"), one, false)
	if err != nil || two <= one {
		t.Fatal(two, err)
	}
	if _, err := st.Save(ctx, key, []byte("stale"), one, true); !errors.Is(err, engine.ErrConflict) {
		t.Errorf("a stale save: %v", err)
	}
	if data, rev, err := st.Load(ctx, key); string(data) != "two" || rev != two || err != nil {
		t.Errorf("loaded %q %d %v", data, rev, err)
	}
	if err := st.Forget(ctx, key); err != nil {
		t.Fatal(err)
	}
	if data, rev, err := st.Load(ctx, key); data != nil || rev != 0 || err != nil {
		t.Errorf("a forgotten key: %q %d %v", data, rev, err)
	}
	if _, err := st.Save(ctx, key, []byte("late"), two, false); !errors.Is(err, engine.ErrConflict) {
		t.Errorf("a save over a forgotten key: %v", err)
	}
	if _, err := st.Save(ctx, key, []byte("new"), 0, false); err != nil {
		t.Error(err)
	}
}

// Of many that save at the same revision one wins, and all others get a conflict.
func TestStoreHasOneWinner(t *testing.T) {
	t.Parallel()
	s := serve(t)
	key := keyOf(uid(1))
	var wins, conflicts atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		st := store(t, connect(t, s))
		all.Go(func() {
			for range 50 {
				_, rev, err := st.Load(t.Context(), key)
				if err != nil {
					t.Error(err)
					return
				}
				switch _, err = st.Save(t.Context(), key, []byte("x"), rev, false); {
				case err == nil:
					wins.Add(1)
				case errors.Is(err, engine.ErrConflict):
					conflicts.Add(1)
				default:
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	st := store(t, connect(t, s))
	_, rev, err := st.Load(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if info := st.stream.CachedInfo(); rev-info.Config.FirstSeq+1 != uint64(wins.Load()) || wins.Load()+conflicts.Load() != 400 {
		t.Errorf("%d writes, %d wins, %d conflicts", rev-info.Config.FirstSeq+1, wins.Load(), conflicts.Load())
	}
}

func TestRestingStatesAreForgotten(t *testing.T) {
	t.Parallel()
	b := connect(t, serve(t))
	st := store(t, b)
	key := keyOf(uid(1))
	rev, err := st.Save(t.Context(), key, []byte("asleep"), 0, true)
	if err != nil {
		t.Fatal(err)
	}
	ttl := func(seq uint64) string {
		m, err := st.stream.GetMsg(t.Context(), seq)
		if err != nil {
			t.Fatal(err)
		}
		return m.Header.Get(jetstream.MsgTTLHeader)
	}
	if got := ttl(rev); got != restTTL.String() {
		t.Errorf("TTL %q, want %v", got, restTTL)
	}
	if rev, err = st.Save(t.Context(), key, []byte("awake"), rev, false); err != nil {
		t.Fatal(err)
	}
	if got := ttl(rev); got != liveTTL.String() {
		t.Errorf("TTL %q of a state that does not rest, want %v", got, liveTTL)
	}
	// The server expires the state, and the key is then as if it had never existed.
	if _, err := b.js.Publish(t.Context(), b.names.value(key), []byte("brief"), jetstream.WithMsgTTL(1e9)); err != nil {
		t.Fatal(err)
	}
	until(t, "the state is forgotten", func() bool {
		data, rev, err := st.Load(t.Context(), key)
		return data == nil && rev == 0 && err == nil
	})
	if _, err := st.Save(t.Context(), key, []byte("again"), 0, false); err != nil {
		t.Error(err)
	}
}

// The marker that `nats kv del` leaves is no state, and its revision can be saved over.
func TestDeletedByHand(t *testing.T) {
	t.Parallel()
	b := connect(t, serve(t))
	st := store(t, b)
	key := keyOf(uid(1))
	if _, err := st.Save(t.Context(), key, []byte("x"), 0, false); err != nil {
		t.Fatal(err)
	}
	kv, err := b.js.KeyValue(t.Context(), b.names.bucket("job"))
	if err != nil {
		t.Fatal(err)
	}
	if err := kv.Delete(t.Context(), events.Token(key.Namespace)+"."+events.Token(string(key.UID))); err != nil {
		t.Fatal(err)
	}
	data, rev, err := st.Load(t.Context(), key)
	if err != nil || data != nil {
		t.Fatalf("%q %d %v", data, rev, err)
	}
	if _, err := st.Save(t.Context(), key, []byte("y"), rev, false); err != nil {
		t.Error(err)
	}
}

func TestStateThatIsTooLarge(t *testing.T) {
	t.Parallel()
	st := store(t, connect(t, serve(t)))
	key := keyOf(uid(1))
	saved(t, st, key, make([]byte, 7<<20))
	_, err := st.Save(t.Context(), keyOf(uid(2)), make([]byte, 9<<20), 0, false)
	if err == nil || !strings.Contains(err.Error(), "max_payload") || errors.Is(err, engine.ErrConflict) {
		t.Errorf("9 MiB: %v", err)
	}
}

func TestStoreIsOneFunctions(t *testing.T) {
	t.Parallel()
	b := connect(t, serve(t))
	st := store(t, b)
	key := events.Key{Function: "scheduledjob", Namespace: "default", UID: "u"}
	if _, err := st.Save(t.Context(), key, []byte("x"), 0, false); err == nil {
		t.Error("another function's state was saved")
	}
	if _, _, err := st.Load(t.Context(), events.Key{Function: "job"}); err == nil {
		t.Error("a key without a UID was loaded")
	}
	info := st.stream.CachedInfo().Config
	if info.AllowDirect {
		t.Error("reads may come from a replica")
	}
}

// TestAStateThatIsTooLargeIsRefusedForGood: the bus rejects it before the server would close the connection; the error reports that
// it never fits, and names the remedy.
func TestAStateThatIsTooLargeIsRefusedForGood(t *testing.T) {
	t.Parallel()
	b := connect(t, serve(t))
	st, key := store(t, b), keyOf(uid(1))
	_, err := st.Save(t.Context(), key, make([]byte, b.nc.MaxPayload()), 0, false)
	var permanent interface{ Permanent() bool }
	if !errors.As(err, &permanent) || !permanent.Permanent() || errors.Is(err, engine.ErrConflict) ||
		!strings.Contains(err.Error(), key.String()) || !strings.Contains(err.Error(), "raise max_payload") {
		t.Errorf("too large: %v", err)
	}
	if _, err := st.Save(t.Context(), key, []byte("less"), 0, false); err != nil {
		t.Errorf("less: %v", err)
	}
}

// TestStoreRepeatsAnUnansweredRequest: a server that answers nothing for longer than one request waits, as a stream without a leader
// does, is asked again until ConnectTimeout is over. A reconciler that starts then serves, instead of ending.
func TestStoreRepeatsAnUnansweredRequest(t *testing.T) {
	t.Parallel()
	n := &node{Name: "nats", Dir: t.TempDir(), Port: freePort(t)}
	t.Cleanup(n.kill)
	n.start(t)
	b := connect(t, nil, func(c *Config) { c.URL = fmt.Sprintf("nats://127.0.0.1:%d", n.Port) })
	n.signal(t, syscall.SIGSTOP)
	until(t, "the server answers nothing", func() bool { return b.nc.FlushTimeout(100*time.Millisecond) != nil })
	resume := time.AfterFunc(askTimeout+askTimeout/2, func() { n.signal(t, syscall.SIGCONT) })
	defer resume.Stop()
	if _, err := b.Store("job"); err != nil {
		t.Error(err)
	}
}
