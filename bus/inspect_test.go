package bus

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/engine"
	"github.com/jobstream/jobstream/internal/finding"
	"github.com/jobstream/jobstream/internal/partition"
)

func streamsOf(t *testing.T, js jetstream.JetStream) (names []string) {
	t.Helper()
	l := js.StreamNames(t.Context())
	for n := range l.Name() {
		names = append(names, n)
	}
	if l.Err() != nil {
		t.Fatal(l.Err())
	}
	return names
}

// An inspector of an empty server reports everything missing, and leaves it as empty as it was.
func TestInspectorMakesNothing(t *testing.T) {
	t.Parallel()
	v := inspect(t, serve(t).URL())
	finds(t, v,
		about("stream jobstream_test_facts", finding.Warn, "is not there"),
		about("stream KV_jobstream_test_state_job", finding.Warn, "is not there"),
		about("nats permissions", finding.OK),
		about("nats jetstream", finding.OK, "API level"),
		about("clock of nats server jobstream-embedded", finding.OK))
	if aside, err := v.Quarantined(t.Context()); err != nil || len(aside) > 0 {
		t.Errorf("%v, %v", aside, err)
	}
	if names := streamsOf(t, v.bus.js); len(names) > 0 {
		t.Errorf("an inspector made %q", names)
	}
}

// An inspector of a working bus reports no fault, and its probes leave no trace: no message, no consumer, no setting.
func TestInspectorTouchesNothing(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := connect(t, s)
	st := store(t, b)
	if _, err := st.Save(t.Context(), keyOf(uid(1)), []byte("x"), 0, false); err != nil {
		t.Fatal(err)
	}
	e := listen(t, b, allPartitions(), nil)
	defer beatAs(t, b, partition.Heartbeat{Member: "us", Versions: map[string]int{"job": 1}, Holds: map[string]partition.Set{"job": partition.All}, Serves: true})()
	publish(t, b, observation(keyOf(uid(1)), 1))
	until(t, "the fact is received", func() bool { return e.count(nil) == 1 })
	until(t, "all partitions are consumed", func() bool { return consumers(t, b) == 64 })
	portrait := func() map[string]jetstream.StreamState {
		all := map[string]jetstream.StreamState{}
		for _, name := range streamsOf(t, b.js) {
			s, err := b.js.Stream(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			all[name] = s.CachedInfo().State
		}
		return all
	}
	until(t, "the floor of each partition is stored, and no other follows", func() bool {
		at, err := floor{bus: b, stream: b.names.state("job"), subject: b.names.floor("job", keyOf(uid(1)).Partition())}.load(t.Context())
		return err == nil && at == beginning{sequence: sequence(t, b, 1) + 1} && portrait()[b.names.state("job")].Msgs == 1+events.Partitions
	})
	before := portrait()
	until(t, "no fault is found", func() bool { // the pull request of a consumer may still be on its way when the consumer exists
		for check, f := range findings(t, inspect(t, s.URL())) {
			if f.Level != finding.OK && check != "nats credentials" { // this server requires no authentication
				t.Logf("%s: %s: %s", check, f.Level, f.Found)
				return false
			}
		}
		return true
	})
	if after := portrait(); !maps.EqualFunc(before, after, func(a, b jetstream.StreamState) bool {
		return a.Msgs == b.Msgs && a.LastSeq == b.LastSeq && a.FirstSeq == b.FirstSeq && a.NumDeleted == b.NumDeleted && a.Consumers == b.Consumers
	}) {
		t.Errorf("the visit changed\n%+v to\n%+v", before, after)
	}
	if n := consumers(t, b); n != 64 {
		t.Errorf("%d consumers after the visit", n)
	}
}

// A bus with every kind of fault: the inspector names each.
func TestFindingsNameWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := connect(t, s)
	store(t, b)
	key := keyOf(uid(1))
	publish(t, b, observation(key, 1))
	e := listen(t, b, []int{key.Partition()}, func(engine.Delivery) {}) // takes a message and never answers
	until(t, "the fact is taken", func() bool { return e.count(nil) > 0 })
	e.end(t)
	if _, err := b.js.Publish(t.Context(), b.names.aside("job.default.x"), []byte("poison")); err != nil {
		t.Fatal(err)
	}
	facts := b.factsStream()
	facts.MaxAge = time.Hour
	if _, err := b.js.UpdateStream(t.Context(), facts); err != nil {
		t.Fatal(err)
	}
	finds(t, inspect(t, s.URL()),
		about("stream jobstream_test_facts", finding.Warn, "max_age"),
		about("quarantine", finding.Warn, "1 messages", "jobstream-reconciler quarantine"),
		about("facts for job", finding.Warn, "31 of 32 partitions have no consumer"))
	if err := b.js.DeleteStream(t.Context(), b.names.facts()); err != nil {
		t.Fatal(err)
	}
	memory := b.factsStream()
	memory.Storage = jetstream.MemoryStorage
	if _, err := b.js.CreateStream(t.Context(), memory); err == nil { // otherwise the bus was faster, and there is nothing to see
		finds(t, inspect(t, s.URL()), about("stream jobstream_test_facts", finding.Warn, "memory"))
	}
}

// The inspector distinguishes partitions with and without a listening reconciler.
func TestFindingsSeeWhoListens(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := connect(t, s)
	e := listen(t, b, allPartitions(), nil)
	until(t, "all partitions are consumed", func() bool { return consumers(t, b) == 64 })
	v := inspect(t, s.URL())
	until(t, "all listen", func() bool { return findings(t, v)["facts for job"].Level == finding.OK })
	e.end(t)
	b.Close()
	until(t, "no reconciler listens", func() bool {
		return strings.Contains(findings(t, v)["facts for job"].Found, "no reconciler listens to 32 of 32 partitions")
	})
}

// An inspector can inspect the servers that a reconciler rejects, and reports what is wrong with them.
func TestFindingsAboutServers(t *testing.T) {
	t.Parallel()
	t.Run("small messages", func(t *testing.T) {
		finds(t, inspect(t, bare(t, server.Options{JetStream: true})), about("nats max_payload", finding.Fail, "1048576", "max_payload: 8MB"))
	})
	t.Run("no JetStream", func(t *testing.T) {
		finds(t, inspect(t, bare(t, server.Options{MaxPayload: 8 << 20})), about("nats jetstream", finding.Fail, "JetStream is off", "-js"))
	})
	t.Run("replicas of one server", func(t *testing.T) {
		finds(t, inspect(t, serve(t).URL(), func(c *Config) { c.Replicas = 3 }), about("nats cluster", finding.Fail, "3 replicas are asked for, and the server is alone"))
	})
	t.Run("a clock that is wrong", func(t *testing.T) {
		v := inspect(t, serve(t).URL())
		for ahead, want := range map[time.Duration]finding.Level{5 * time.Second: finding.Warn, -time.Hour: finding.Fail} {
			var f finding.Finding
			until(t, "the server tells its time", func() bool { // a busy machine may take longer than the inspector waits
				all := map[string]finding.Finding{}
				for _, f := range v.Findings(t.Context(), nil, func() time.Time { return time.Now().Add(ahead) }) {
					all[f.Check] = f
				}
				f = all["clock of nats server jobstream-embedded"]
				return f.Found != ""
			})
			if f.Level != want {
				t.Errorf("this clock is %v ahead, and the finding is %+v", ahead, f)
			}
		}
	})
}

// A user lacks one permission at a time: the inspector names the subject, and the permission to grant.
func TestFindingsNameMissingPermissions(t *testing.T) {
	t.Parallel()
	publish := []string{"facts.test.>", "timers.test.>", "fired.test.>", "quarantine.test.>", "jobstream.events.test.>", "$KV.jobstream_test_state_job.>", "$JS.API.>", "$JS.ACK.>", "members.test"}
	inbox := "_INBOX_jobstream_test.>"
	users := []*server.User{}
	add := func(name string, may []string, subscribes ...string) {
		users = append(users, &server.User{Username: name, Password: "s3cret", Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Allow: may}, Subscribe: &server.SubjectPermission{Allow: subscribes}}})
	}
	add("all", publish, inbox, "members.test")
	for n := range publish {
		add("without"+string(rune('a'+n)), slices.Delete(slices.Clone(publish), n, n+1), inbox, "members.test")
	}
	add("deaf", slices.Delete(slices.Clone(publish), 0, 1), "nothing")
	add("alone", publish, inbox)
	url := bare(t, server.Options{JetStream: true, MaxPayload: 8 << 20, Users: users})
	as := func(name string) *Inspector {
		return inspect(t, strings.Replace(url, "nats://", "nats://"+name+":s3cret@", 1))
	}
	finds(t, as("all"), about("nats permissions", finding.OK))
	for n, subject := range publish {
		level := finding.Fail
		if subject == "fired.test.>" { // only requeue needs it
			level = finding.Warn
		}
		remedy := "to publish to " + subject
		if strings.HasPrefix(subject, "$JS.") { // no role needs all of those
			remedy = "to publish to those subjects below " + strings.TrimSuffix(subject, ">") + " that deploy/nats/accounts.conf names"
		}
		all := finds(t, as("without"+string(rune('a'+n))), about("nats permissions", level, "may not publish to "+strings.TrimSuffix(subject, ">"), remedy))
		for check, f := range all {
			if strings.Contains(f.Found+f.Advice, "s3cret") {
				t.Errorf("%s holds a password: %s", check, f.Found)
			}
		}
	}
	finds(t, as("deaf"), about("nats permissions", finding.Fail, "may not subscribe to", inbox))
	finds(t, as("alone"), about("nats permissions", finding.Fail, "may not subscribe to members.test"))
}

// If the account imports the servers' VARZ, the inspector reads how often they sync.
func TestFindingsSeeSyncWhereAllowed(t *testing.T) {
	t.Parallel()
	for sync, want := range map[string]string{"always": "each syncs every write", "30s": "syncs every 30s"} {
		dir := t.TempDir()
		path := filepath.Join(dir, "nats.conf")
		if err := os.WriteFile(path, []byte(`
			max_payload: 8MB
			jetstream { store_dir: "`+dir+`", sync_interval: `+sync+` }
			system_account: SYS
			accounts {
				SYS { users: [{user: sys, password: s3cret}], exports: [{service: "$SYS.REQ.SERVER.PING.VARZ", response_type: stream}] }
				APP { jetstream: enabled, users: [{user: me, password: s3cret}], imports: [{service: {account: SYS, subject: "$SYS.REQ.SERVER.PING.VARZ"}}] }
			}`), 0o600); err != nil {
			t.Fatal(err)
		}
		o, err := server.ProcessConfigFile(path)
		if err != nil {
			t.Fatal(err)
		}
		v := inspect(t, strings.Replace(bare(t, *o), "nats://", "nats://me:s3cret@", 1))
		// The inspector waits half a second for servers: one that starts on a busy machine may be late.
		until(t, want, func() bool {
			f := v.bus.inspectSync(t.Context())
			return f.Level == finding.OK && strings.Contains(f.Found, want)
		})
	}
	finds(t, inspect(t, serve(t).URL()), about("nats fsync", finding.OK, "not visible", "sync_interval: always"))
}

// The inspector reports account limits that are too low before a stream cannot be created.
func TestFindingsAboutAccounts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "nats.conf")
	if err := os.WriteFile(path, []byte(`
		max_payload: 8MB
		jetstream { store_dir: "`+dir+`" }
		accounts { APP { jetstream: {max_streams: 3, max_consumers: 10, max_file: 1GB}, users: [{user: me, password: s3cret}] } }`), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := server.ProcessConfigFile(path)
	if err != nil {
		t.Fatal(err)
	}
	finds(t, inspect(t, strings.Replace(bare(t, *o), "nats://", "nats://me:s3cret@", 1)),
		about("nats account", finding.Fail, "streams is 3, and jobstream needs 5", "consumers is 10, and jobstream needs 64", "may store 1.0 GiB"))
}
