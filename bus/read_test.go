package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jobstream/jobstream/events"
)

// reader connects as a program that only looks.
func reader(t testing.TB, url string) *Inspector {
	t.Helper()
	v, err := Inspect(t.Context(), Config{URL: url, Cluster: "test", ConnectTimeout: soon, Role: Reader})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	return v
}

// TestReadWhatIsStored: facts remain after they were acknowledged, and those of one key come alone and in order, whatever lies between.
func TestReadWhatIsStored(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, readInOne, readInOne + 1, 1000} {
		t.Run(fmt.Sprintf("%d facts", n), func(t *testing.T) {
			t.Parallel()
			s := serve(t)
			b := connect(t, s, patient)
			store(t, b)
			var facts []events.Fact
			for i := range n {
				facts = append(facts, observation(keyOf(uid(1)), uint64(i+1)), observation(keyOf(uid(2)), uint64(i+1)))
			}
			publish(t, b, facts...)
			e := listen(t, b, allPartitions(), nil)
			until(t, "all are acknowledged", func() bool { return e.count(nil) >= 2*n })
			v := reader(t, s.URL())
			all, err := v.Facts(t.Context(), keyOf(uid(1)))
			if err != nil || len(all) != n {
				t.Fatalf("%d of %d facts: %v", len(all), n, err)
			}
			for i, stored := range all {
				f, err := events.Decode(stored.Payload)
				if err != nil || f.Key != keyOf(uid(1)) || versionOf(f.Event) != uint64(i+1) || stored.Stored.IsZero() {
					t.Fatalf("fact %d: %+v, %v", i, f, err)
				}
			}
			held, err := v.Retained(t.Context(), keyOf(uid(1)))
			if err != nil || held.Of != uint64(n) || held.MaxAge != factsAge || held.MaxBytes != 1<<30 || held.Oldest.IsZero() != (n == 0) {
				t.Errorf("%+v, %v", held, err)
			}
		})
	}
}

// TestReadState: the newest one, with its revision; none where the key has none or was forgotten.
func TestReadState(t *testing.T) {
	t.Parallel()
	s := serve(t)
	st := store(t, connect(t, s))
	v, key := reader(t, s.URL()), keyOf(uid(1))
	if state, ok, err := v.State(t.Context(), key); ok || err != nil {
		t.Errorf("%+v, %v", state, err)
	}
	revision, err := st.Save(t.Context(), key, []byte("one"), 0, false)
	if err != nil {
		t.Fatal(err)
	}
	if state, ok, err := v.State(t.Context(), key); !ok || err != nil || string(state.Data) != "one" || state.Revision != revision || state.Stored.IsZero() {
		t.Errorf("%+v, %v", state, err)
	}
	if err := st.Forget(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if state, ok, err := v.State(t.Context(), key); ok || err != nil {
		t.Errorf("%+v, %v", state, err)
	}
}

// TestReadEvents: the selection, and the order in which they were stored.
func TestReadEvents(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := connect(t, s)
	job := events.Reference{Namespace: "shop", Name: "pi", UID: "uid-pi"}
	started := events.JobStarted{Job: job, Start: time.Unix(1000, 0)}
	announce(t, b, started, tick("shop", "nightly", 1))
	between := time.Now()
	announce(t, b, events.JobFinished{Job: job, Result: events.JobFailed, End: time.Unix(2000, 0)}, tick("office", "nightly", 2))
	v := reader(t, s.URL())
	for name, tt := range map[string]struct {
		want Wanted
		ids  int
		are  string
	}{
		"all":                    {Wanted{}, 4, "JobStart Started JobFinish Started"},
		"of a namespace":         {Wanted{Namespace: "shop"}, 3, "JobStart Started JobFinish"},
		"of a kind":              {Wanted{Kinds: []string{"job.finish"}}, 1, "JobFinish"},
		"of two kinds":           {Wanted{Kinds: []string{"job.finish", "job.start"}}, 2, "JobStart JobFinish"},
		"since a time":           {Wanted{Since: between}, 2, "JobFinish Started"},
		"of a time to come":      {Wanted{Since: time.Now().Add(time.Hour)}, 0, ""},
		"of an absent namespace": {Wanted{Namespace: "no.where *"}, 0, ""},
		"of a wild namespace":    {Wanted{Namespace: ">"}, 0, ""},
		"of a star":              {Wanted{Namespace: "*"}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var are []string
			err := v.Events(t.Context(), tt.want, func(e StoredEvent) error {
				p, err := events.FromCloudEvent(e.CloudEvent)
				if err != nil || e.Err != nil {
					return errors.Join(err, e.Err)
				}
				are = append(are, strings.Fields(p.String())[0])
				return nil
			})
			if got := strings.Join(are, " "); err != nil || got != tt.are {
				t.Errorf("%q, want %q: %v", got, tt.are, err)
			}
		})
	}
	enough := errors.New("enough")
	n := 0
	if err := v.Events(t.Context(), Wanted{}, func(StoredEvent) error { n++; return enough }); !errors.Is(err, enough) || n != 1 {
		t.Errorf("%d events, %v", n, err)
	}
	if last, ok, err := v.Announced(t.Context(), "shop", "job.start", "pi"); !ok || err != nil || last.CloudEvent.ID() != events.PublicID(started) {
		t.Errorf("%+v %v", last, err)
	}
	if last, ok, err := v.Announced(t.Context(), "shop", "job.start", "*"); ok || err != nil {
		t.Errorf("a name with a wildcard finds %+v, %v", last, err)
	}
}

// TestFollowEvents: each stored event is shown once and at once, also when it is announced twice, and after the server was away and the
// stream was made anew.
func TestFollowEvents(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serveIn(t, dir, freePort(t))
	b := connect(t, s)
	announce(t, b, tick("shop", "nightly", 1))
	v := reader(t, s.URL())
	seen, away := make(chan string, 100), make(chan error, 100)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- v.Events(ctx, Wanted{Follow: true, Away: func(err error) { away <- err }}, func(e StoredEvent) error {
			seen <- e.CloudEvent.ID()
			return nil
		})
	}()
	next := func(n int) {
		t.Helper()
		select {
		case id := <-seen:
			if want := events.PublicID(tick("shop", "nightly", n)); id != want {
				t.Fatalf("%s, want %s", id, want)
			}
		case <-time.After(soon):
			t.Fatalf("event %d is not shown", n)
		}
	}
	next(1)
	announce(t, b, tick("shop", "nightly", 2), tick("shop", "nightly", 2), tick("shop", "nightly", 1), tick("shop", "nightly", 3))
	next(2)
	next(3)
	port := portOf(t, s)
	s.Shutdown()
	serveIn(t, dir, port)
	until(t, "the bus is back", func() bool { return b.Announce(t.Context(), tick("shop", "nightly", 4)) == nil })
	next(4)
	remove(t, b.js, b.names.events())
	b.top.look()
	until(t, "the stream is made anew", func() bool { return b.Announce(t.Context(), tick("shop", "nightly", 5)) == nil })
	next(5)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if len(seen) > 0 {
		t.Errorf("shown again: %s", <-seen)
	}
}

// TestReadNothing: what is missing is named, with the remedy.
func TestReadNothing(t *testing.T) {
	t.Parallel()
	s := serve(t)
	v := reader(t, s.URL())
	_, facts := v.Facts(t.Context(), keyOf(uid(1)))
	_, _, state := v.State(t.Context(), keyOf(uid(1)))
	for stream, err := range map[string]error{"test_facts": facts, "test_state_job": state, "test_events": v.Events(t.Context(), Wanted{Follow: true}, nil)} {
		if err == nil || !strings.Contains(err.Error(), "there is no stream ") || !strings.Contains(err.Error(), stream) || !strings.Contains(err.Error(), "--cluster-name") {
			t.Errorf("%s: %v", stream, err)
		}
	}
	if _, err := Connect(t.Context(), Config{URL: s.URL(), Cluster: "test", Role: Reader}); err == nil || !strings.Contains(err.Error(), "use Inspect") {
		t.Errorf("a reader made a bus: %v", err)
	}
}

// TestReaderMayLookAndNothingElse: with the shipped permissions a reader sees what it needs. It is refused everything else, and its
// requests cannot have the server write: answers stay in its account.
func TestReaderMayLookAndNothingElse(t *testing.T) {
	b, operator, as := guardedBus(t)
	st, key := store(t, b), keyOf(uid(1))
	if _, err := st.Save(t.Context(), key, []byte("state"), 0, false); err != nil {
		t.Fatal(err)
	}
	before := everything(t, operator)
	v := reader(t, as("reader"))
	facts, err := v.Facts(t.Context(), key)
	if err != nil || len(facts) != 1 {
		t.Errorf("%d facts: %v", len(facts), err)
	}
	if state, ok, err := v.State(t.Context(), key); !ok || err != nil || string(state.Data) != "state" {
		t.Errorf("%+v, %v", state, err)
	}
	n := 0
	if err := v.Events(t.Context(), Wanted{Since: time.Now().Add(-time.Hour)}, func(StoredEvent) error { n++; return nil }); err != nil || n != 1 {
		t.Errorf("%d events: %v", n, err)
	}
	if err := v.bus.problems.err(); err != nil {
		t.Errorf("the server refuses what a reader does: %v", err)
	}
	who := dialAs(t, as("reader"))
	for _, subject := range []string{
		"facts.test.job.default." + uid(1) + ".PodGone", b.names.value(key), b.names.schedule(key, "t"), b.names.members(), newEvent,
		"$JS.API.STREAM.DELETE." + eventsStream, "$JS.API.STREAM.PURGE." + b.names.facts(), "$JS.API.STREAM.MSG.DELETE." + b.names.facts(),
		"$JS.API.STREAM.MSG.GET." + b.names.timers(), "$JS.API.STREAM.INFO." + b.names.quarantine(), "$JS.API.CONSUMER.CREATE." + eventsStream + ".x",
		"$JS.API.CONSUMER.MSG.NEXT." + eventsStream + "." + ownConsumer, "$JS.API.STREAM.UPDATE." + eventsStream, "$JS.API.STREAM.NAMES",
	} {
		if err := who.PublishRequest(subject, "_INBOX_jobstream_test_reader.x", []byte("{}")); err != nil {
			t.Fatal(err)
		}
		who.refused(t, "publish", subject)
	}
	for _, subject := range []string{">", "facts.>", "$KV.>", "members.test", "_INBOX.>", "_INBOX_jobstream_test_reconciler.>"} {
		if _, err := who.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
		who.refused(t, "subscription", subject)
	}
	for _, target := range []string{newEvent, "facts.test.job.default." + uid(1) + ".PodGone", b.names.value(key), b.names.members()} {
		received := intercept(t, operator, target)
		if err := who.PublishRequest("$JS.API.STREAM.MSG.GET."+b.names.facts(), target, []byte(`{"seq":1,"next_by_subj":"facts.>"}`)); err != nil {
			t.Fatal(err)
		}
		if _, err := v.Facts(t.Context(), key); err != nil { // answered after the request above
			t.Fatal(err)
		}
		if m, err := received.NextMsg(time.Millisecond); err == nil {
			t.Errorf("with the reply %s: a client in jobstream's account receives %q", target, m.Data)
		}
	}
	if after := everything(t, operator); after != before {
		t.Errorf("something has happened:\nbefore %s\nafter  %s", before, after)
	}
}

// TestReaderWithoutPermission: the error names the subject that the server refuses.
func TestReaderWithoutPermission(t *testing.T) {
	t.Parallel()
	as := guarded(t)
	connect(t, nil, func(c *Config) { c.URL = as("operator") })
	v, err := Inspect(t.Context(), Config{URL: as("trigger"), Cluster: "test", ConnectTimeout: soon, Role: Trigger})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if _, err := v.Facts(t.Context(), keyOf(uid(1))); err == nil || !strings.Contains(err.Error(), "$JS.API.STREAM.MSG.GET.jobstream_test_facts") {
		t.Logf("with no facts nothing is read: %v", err)
	}
	if _, _, err := v.State(t.Context(), keyOf(uid(1))); err == nil || !strings.Contains(err.Error(), "$JS.API.STREAM.INFO.KV_jobstream_test_state_job") {
		t.Errorf("%v", err)
	}
}
