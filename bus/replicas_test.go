package bus

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/jobstream/jobstream/internal/engine"
)

// trio starts a cluster of three servers and returns them by name, with the URL of all.
func trio(t *testing.T) (map[string]*server.Server, string) {
	t.Helper()
	all := map[string]*server.Server{}
	var urls []string
	var routes []string
	for n := range 3 {
		o := &server.Options{
			ServerName: fmt.Sprintf("nats-%d", n), Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true,
			JetStream: true, StoreDir: t.TempDir(), MaxPayload: 8 << 20,
			Cluster: server.ClusterOpts{Name: "trio", Host: "127.0.0.1", Port: -1},
			Routes:  server.RoutesFromStr(strings.Join(routes, ",")),
		}
		s, err := server.NewServer(o)
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		until(t, "the routes' port is known", func() bool { return s.ClusterAddr() != nil })
		routes = append(routes, "nats://"+s.ClusterAddr().String())
		all[o.ServerName] = s
		urls = append(urls, s.ClientURL())
	}
	for _, s := range all {
		if !s.ReadyForConnections(soon) {
			t.Fatal("server is not ready")
		}
	}
	return all, strings.Join(urls, ",")
}

func leader(t *testing.T, b *Bus, stream string) string {
	t.Helper()
	s, err := b.js.Stream(t.Context(), stream)
	if err != nil || s.CachedInfo().Cluster == nil {
		return ""
	}
	return s.CachedInfo().Cluster.Leader
}

// Three replicas: conflicts are reported in both of the server's forms, and the death of a leader in the middle of everything
// loses nothing and signals no loss.
func TestThreeReplicas(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: elects leaders, which takes many seconds")
	}
	servers, url := trio(t)
	began := time.Now()
	open := func() *Bus { return ofThree(t, url) }
	var trigger, reconciler *Bus
	var both sync.WaitGroup // at once, so that they race to create the streams
	both.Go(func() { trigger = open() })
	both.Go(func() { reconciler = open() })
	both.Wait()
	if trigger == nil || reconciler == nil {
		t.FailNow()
	}
	t.Logf("connected after %v", time.Since(began))
	st := store(t, reconciler)
	conflicts := raceSaves(t, st)
	t.Logf("conflicts by the server's code: %v", conflicts)

	began = time.Now()
	e := listen(t, reconciler, allPartitions(), nil)
	until(t, "all partitions are consumed", func() bool { return consumers(t, reconciler) == 64 })
	t.Logf("64 consumers made in %v", time.Since(began))

	const facts = 3000
	published := make(chan error, 1)
	go func() {
		for n := range facts {
			if err := trigger.Publish(t.Context(), observation(keyOf(uid(n%100)), uint64(n+1))); err != nil {
				published <- err
				return
			}
			if n%10 == 0 {
				<-time.After(10 * time.Millisecond) // a pace, not a wait
			}
		}
		published <- trigger.Flush(t.Context())
	}()
	until(t, "facts flow", func() bool { return e.count(nil) > 100 })
	dead := leader(t, trigger, trigger.names.facts())
	began = time.Now()
	servers[dead].Shutdown()
	if err := <-published; err != nil {
		t.Errorf("published through the death of a leader: %v", err)
	}
	distinct := func() int {
		seen := map[uint64]bool{}
		for _, d := range e.all() {
			seen[versionOf(d.Event())] = true
		}
		return len(seen)
	}
	until(t, "every fact is received", func() bool { return distinct() == facts })
	t.Logf("leader %s died; all %d facts were received %v later, %d deliveries", dead, facts, time.Since(began), e.count(nil))
	if losses(trigger)+losses(reconciler) > 0 {
		t.Error("a loss was signalled, and nothing is lost")
	}
	until(t, "both are ready", func() bool { return trigger.Ready() == nil && reconciler.Ready() == nil })
	until(t, "an event is announced", func() bool { return reconciler.Announce(t.Context(), tick("shop", "nightly", 1)) == nil })
	until(t, "a timer is set", func() bool {
		return reconciler.Timers().Set(t.Context(), keyOf(uid(1)), "x", time.Now().Add(time.Second)) == nil
	})
	until(t, "a timer fires", func() bool { return e.count(isFired) > 0 })
}

// ofThree connects to three servers. It gives no fact up: the two that are left may split their votes, and wait for as long
// again.
func ofThree(t *testing.T, url string) *Bus {
	b := connect(t, nil, func(c *Config) { c.URL, c.Replicas, c.ConnectTimeout = url, 3, soon })
	b.pub.publishTimeout = soon
	return b
}

// raceSaves lets many save at the same revision, and counts the server's refusals by their form.
func raceSaves(t *testing.T, st *Store) map[jetstream.ErrorCode]int {
	t.Helper()
	var mu sync.Mutex
	codes := map[jetstream.ErrorCode]int{}
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 30 {
				_, rev, err := st.Load(t.Context(), keyOf(uid(1)))
				if err == nil {
					_, err = st.Save(t.Context(), keyOf(uid(1)), []byte("x"), rev, false)
				}
				if err == nil {
					continue
				}
				// a busy machine elects another leader meanwhile
				electing := comingUp(err) || errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrNoResponders)
				if !errors.Is(err, engine.ErrConflict) && !electing {
					t.Error(err)
				}
				mu.Lock()
				codes[code(err)]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return codes
}
