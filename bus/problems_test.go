package bus

import (
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/jobstream/jobstream/internal/partition"
)

// allowed returns the settings of a server with a user "me" that may publish and subscribe to all but some subjects.
func allowed(publish, subscribe string) string {
	deny := func(subject string) string {
		if subject == "" {
			return ""
		}
		return `, deny: "` + subject + `"`
	}
	return `authorization { users: [
		{ user: me, password: s3cret, permissions: { publish: { allow: ">"` + deny(publish) + ` }, subscribe: { allow: ">"` + deny(subscribe) + ` } } }
		{ user: root, password: s3cret } ] }`
}

// by authenticates with files.
func by(t *testing.T, s *configured, user string) func(*Config) {
	dir := t.TempDir()
	put(t, dir+"/user", user)
	put(t, dir+"/password", "s3cret")
	return func(c *Config) {
		c.URL, c.UserFile, c.PasswordFile = "nats://"+s.listen, dir+"/user", dir+"/password"
	}
}

// A server refuses a subject at run time that the bus needs: a log line names it and the permission to grant, readiness is false
// meanwhile, and when it is allowed again, work goes on without a restart.
func TestRefusedSubject(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		publish, subscribe string // what is refused
		do                 func(*testing.T, *Bus)
		words              []string
	}{
		"facts": {publish: "facts.test.>", words: []string{"publish to facts.test.job.default.", "allow this program's user to publish to facts.test.>"},
			do: func(t *testing.T, b *Bus) { _ = b.Publish(t.Context(), observation(keyOf(uid(1)), 2)) }},
		"states": {publish: "$KV.>", words: []string{"publish to $KV.jobstream_test_state_job.", "allow this program's user to publish to $KV.jobstream_test_state_job.>"},
			do: func(t *testing.T, b *Bus) { _, _ = store(t, b).Save(t.Context(), keyOf(uid(1)), []byte("x"), 0, false) }},
		"events": {publish: "jobstream.events.>", words: []string{"publish to jobstream.events.test.shop.", "allow this program's user to publish to jobstream.events.test.>"},
			do: func(t *testing.T, b *Bus) { _ = b.Announce(t.Context(), tick("shop", "nightly", 1)) }},
		"questions": {publish: "$JS.API.STREAM.INFO.>", words: []string{"publish to $JS.API.STREAM.INFO.jobstream_test_facts", "allow this program's user"},
			do: func(*testing.T, *Bus) {}},
		"heartbeats": {publish: "members.test", words: []string{"publish to members.test", "allow this program's user to publish to members.test"},
			do: func(_ *testing.T, b *Bus) { _ = b.Members().Send(partition.Heartbeat{Member: "me"}) }},
		"answers": {subscribe: "_INBOX_jobstream_test.>", words: []string{"subscribe to _INBOX_jobstream_test.", "allow this program's user to subscribe to _INBOX_jobstream_test.>"},
			do: func(*testing.T, *Bus) {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, j := configure(t, allowed("", "")), &journal{}
			b := connect(t, nil, logged(j), by(t, s, "me"))
			store(t, b)
			recovers(t, b, 1)
			s.reload(t, allowed(c.publish, c.subscribe))
			c.do(t, b)
			b.top.look()
			unready(t, b, j, append(c.words, "does not let this program's user")...)
			s.reload(t, allowed("", ""))
			recovers(t, b, 3)
			if len(j.lines("lets jobstream work again")) == 0 {
				t.Errorf("no line reports that it is over:\n%s", j)
			}
		})
	}
}

// The disk of a server is full, or its limits are reached: a log line names cause and remedy, readiness is false, and when there
// is room again, work goes on without a restart.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	const little = 2 << 20
	of := func(limit string) string {
		return "accounts { APP { jetstream: { " + limit + " }, users: [ { user: me, password: s3cret }, { user: root, password: s3cret } ] } }"
	}
	for name, c := range map[string]struct {
		full  func(*testing.T, *configured)
		words []string
	}{
		"of the server": {
			func(t *testing.T, s *configured) {
				s.disk += fmt.Sprintf(", max_file_store: %d", little)
				s.restart(t, of("max_file: -1"))
			}, []string{"insufficient resources", "raise max_file_store"},
		},
		"of the account": {
			func(t *testing.T, s *configured) { s.reload(t, of(fmt.Sprintf("max_file: %d", little))) },
			[]string{"resource limits exceeded", "raise max_file in"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, j := configure(t, of("max_file: -1")), &journal{}
			b := connect(t, nil, logged(j), by(t, s, "me"))
			recovers(t, b, 1)
			foreign := fill(t, s, little)
			c.full(t, s)
			until(t, "the bus is found again", func() bool { return b.nc.IsConnected() })
			if err := b.Publish(t.Context(), observation(keyOf(uid(1)), 2)); err != nil {
				t.Fatal(err)
			}
			unready(t, b, j, append(c.words, "no room", "jobstream_test_facts")...)
			remove(t, foreign, "filler")
			recovers(t, b, 3)
			if len(j.lines("lets jobstream work again")) != 1 {
				t.Errorf("no line reports that it is over:\n%s", j)
			}
		})
	}
}

// fill stores a little more than the given number of bytes, in a foreign stream.
func fill(t *testing.T, s *configured, bytes int) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect("nats://root:s3cret@"+s.listen, nats.Timeout(soon))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(soon))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "filler", Subjects: []string{"filler"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "filler", make([]byte, bytes)); err != nil {
		t.Fatal(err)
	}
	return js
}

// A server turns JetStream off, as it does when it cannot write to its disk: the bus reports that with the remedy, and once the
// server was restarted on a disk with room, work goes on.
func TestJetStreamTurnedOff(t *testing.T) {
	t.Parallel()
	s, j := configure(t, ""), &journal{}
	b := connect(t, nil, logged(j), func(c *Config) { c.URL = "nats://" + s.listen })
	recovers(t, b, 1)
	if !s.process.is(stopStoring) {
		t.Fatalf("the server does not turn JetStream off:\n%s", s.log)
	}
	b.top.look()
	words := []string{"run out of disk", "must be restarted"}
	until(t, "not ready, and the disk is named", func() bool {
		last := b.Ready()
		return last != nil && holds(last.Error(), words...) && len(j.lines(words...)) > 0
	})
	s.restart(t, "")
	recovers(t, b, 2)
}
