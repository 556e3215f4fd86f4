package bus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/jobstream/jobstream/internal/finding"
)

const (
	eventsStream  = "jobstream_test_events"
	newEvent      = "jobstream.events.test.shop.schedule.tick.started.nightly"
	auditFilter   = "jobstream.events.test.shop.>"
	ownConsumer   = "audit"
	otherConsumer = "billing"
	apiPrefix     = "JOBSTREAM.API" // where the subscriber's account has what it imports
)

// guarded starts a server with deploy/nats/accounts.conf, for the cluster "test", and returns the URLs of its users. Every
// password is "s3cret". change holds pairs: a text in the file, and its replacement.
func guarded(t *testing.T, change ...string) (as func(user string) string) {
	t.Helper()
	text, err := os.ReadFile("../deploy/nats/accounts.conf")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for file, text := range map[string]string{
		"accounts.conf": strings.NewReplacer(change...).Replace(strings.ReplaceAll(string(text), "default", "test")),
		"users.conf":    "TRIGGER_PASSWORD: s3cret\nRECONCILER_PASSWORD: s3cret\nOPERATOR_PASSWORD: s3cret\nREADER_PASSWORD: s3cret\nAUDIT_PASSWORD: s3cret\n",
		"nats.conf":     "max_payload: 8MB\njetstream { store_dir: \"" + dir + "\" }\ninclude accounts.conf\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o, err := server.ProcessConfigFile(filepath.Join(dir, "nats.conf"))
	if err != nil {
		t.Fatal(err)
	}
	url := bare(t, *o)
	return func(user string) string { return strings.Replace(url, "nats://", "nats://"+user+":s3cret@", 1) }
}

// client is a user of the guarded server, with the errors that the server has sent to it.
type client struct {
	*nats.Conn
	js         jetstream.JetStream
	complaints chan error
}

// dialAs connects as a user. If a prefix is given, JetStream requests go there.
func dialAs(t *testing.T, url string, prefix ...string) *client {
	t.Helper()
	c := &client{complaints: make(chan error, 100)}
	var err error
	c.Conn, err = nats.Connect(url, nats.Timeout(soon), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { c.complaints <- err }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	c.js, err = jetstream.New(c.Conn, jetstream.WithDefaultTimeout(soon))
	for _, p := range prefix {
		c.js, err = jetstream.NewWithAPIPrefix(c.Conn, p, jetstream.WithDefaultTimeout(soon))
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// refused waits until the server has refused the operation on the subject.
func (c *client) refused(t *testing.T, what, subject string) {
	t.Helper()
	late := time.After(soon)
	for {
		select {
		case err := <-c.complaints:
			if errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(strings.ToLower(err.Error()), what) && containsQuoted(err.Error(), subject) {
				return
			}
		case <-late:
			t.Fatalf("%s %s was not refused within %v", what, subject, soon)
		}
	}
}

// guardedBus is a bus behind deploy/nats/accounts.conf with an event, a fact, a state and a timer, and two consumers.
func guardedBus(t *testing.T, change ...string) (b *Bus, operator *client, as func(user string) string) {
	t.Helper()
	as = guarded(t, change...)
	b = connect(t, nil, func(c *Config) { c.URL = as("operator") })
	announce(t, b, tick("shop", "nightly", 1))
	publish(t, b, observation(keyOf(uid(1)), 1))
	operator = dialAs(t, as("operator"))
	for _, name := range []string{ownConsumer, otherConsumer} {
		if _, err := operator.js.CreateConsumer(t.Context(), eventsStream, jetstream.ConsumerConfig{Durable: name,
			AckPolicy: jetstream.AckExplicitPolicy, FilterSubject: auditFilter}); err != nil {
			t.Fatal(err)
		}
	}
	return b, operator, as
}

// With the permissions of deploy/nats/accounts.conf trigger and reconciler can do all that they do: the doctor tries all of it,
// and finds no permission that they do not need.
func TestAccountsAreEnoughForJobstream(t *testing.T) {
	_, _, as := guardedBus(t)
	for user, role := range map[string]Role{"trigger": Trigger, "reconciler": Reconciler} {
		finds(t, inspect(t, as(user), func(c *Config) { c.Role = role }),
			about("nats permissions", finding.OK, "none is refused"), about("nats excess permissions", finding.OK, "all are refused"))
	}
}

// A subscriber reads through its consumer, acknowledges for good, reads its own progress, and receives new events.
func TestSubscriberMayRead(t *testing.T) {
	b, operator, as := guardedBus(t)
	audit := dialAs(t, as("audit"), apiPrefix)
	live, err := audit.SubscribeSync(auditFilter)
	if err != nil {
		t.Fatal(err)
	}
	if err := audit.Flush(); err != nil {
		t.Fatal(err)
	}
	announce(t, b, tick("shop", "nightly", 2))
	if m, err := live.NextMsg(soon); err != nil || m.Subject != newEvent {
		t.Fatalf("a plain subscription receives %v, %v", m, err)
	}
	c, err := audit.js.Consumer(t.Context(), eventsStream, ownConsumer)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 2 {
		m, err := c.Next(jetstream.FetchMaxWait(soon))
		if err != nil || m.Subject() != newEvent {
			t.Fatalf("event %d: %v, %v", n, m, err)
		}
		if err := m.DoubleAck(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := c.Info(t.Context()); err != nil || info.NumPending != 0 || info.NumAckPending != 0 {
		t.Errorf("when all is read: %+v, %v", info, err)
	}
	other, err := operator.js.Consumer(t.Context(), eventsStream, otherConsumer)
	if err != nil || other.CachedInfo().NumPending != 2 {
		t.Errorf("another's consumer: %+v, %v", other.CachedInfo(), err)
	}
	select {
	case err := <-audit.complaints:
		t.Errorf("the server complains about what a subscriber does: %v", err)
	default:
	}
}

// Whatever else a subscriber tries is refused, and has no effect.
func TestSubscriberMayNothingElse(t *testing.T) {
	b, operator, as := guardedBus(t)
	audit := dialAs(t, as("audit"), apiPrefix)
	before := everything(t, operator)
	key := keyOf(uid(1))
	facts, timers, quarantine, state := b.names.facts(), b.names.timers(), b.names.quarantine(), b.names.state("job")
	publish := []string{
		newEvent, // an event
		"facts.test.job.default." + uid(1) + ".PodGone", // a fact, as published and as stored
		"facts.test.0.job.default." + uid(1) + ".PodGone",
		b.names.value(key), b.names.schedule(key, "t"), b.names.firedTimer(key, "t"), b.names.aside(key.Tokens()), b.names.members(),
		"$JS.API.INFO", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.LIST", "$JS.API.ACCOUNT.PURGE.JOBSTREAM",
		"$JS.API.CONSUMER.INFO." + eventsStream + "." + ownConsumer, // not the name under which it is imported
		apiPrefix + ".CONSUMER.MSG.NEXT." + eventsStream + "." + otherConsumer, apiPrefix + ".CONSUMER.INFO." + facts + ".job-00",
		apiPrefix + ".STREAM.INFO." + eventsStream, apiPrefix + ".CONSUMER.CREATE." + eventsStream + "." + ownConsumer,
		"$JS.API.CONSUMER.MSG.NEXT." + facts + ".job-00", "$JS.ACK." + facts + ".job-00.1.1.1.1.0",
		"$JS.API.CONSUMER.MSG.NEXT." + eventsStream + "." + otherConsumer, // another subscriber's
		"$JS.API.CONSUMER.INFO." + eventsStream + "." + otherConsumer,
		"$JS.ACK." + eventsStream + "." + otherConsumer + ".1.1.1.1.0",
		"$JS.SNAPSHOT.ACK." + eventsStream + ".x", "$SYS.REQ.SERVER.PING", "$SYS.REQ.ACCOUNT.JOBSTREAM.INFO", "jobstream.other", "_R_.x",
	}
	for _, stream := range []string{eventsStream, facts, timers, quarantine, state} {
		for _, verb := range []string{"STREAM.INFO", "STREAM.CREATE", "STREAM.UPDATE", "STREAM.DELETE", "STREAM.PURGE", "STREAM.MSG.GET", "STREAM.MSG.DELETE",
			"STREAM.SNAPSHOT", "STREAM.RESTORE", "STREAM.PEER.REMOVE", "STREAM.LEADER.STEPDOWN", "DIRECT.GET", "CONSUMER.NAMES", "CONSUMER.LIST", "CONSUMER.CREATE"} {
			publish = append(publish, "$JS.API."+verb+"."+stream)
		}
		for _, consumer := range []string{ownConsumer, otherConsumer, "job-00"} {
			for _, verb := range []string{"CONSUMER.CREATE", "CONSUMER.DURABLE.CREATE", "CONSUMER.DELETE", "CONSUMER.PAUSE", "CONSUMER.RESET", "CONSUMER.UNPIN", "CONSUMER.LEADER.STEPDOWN"} {
				publish = append(publish, "$JS.API."+verb+"."+stream+"."+consumer)
			}
		}
	}
	for _, subject := range publish {
		if err := audit.PublishRequest(subject, audit.NewInbox(), []byte("{}")); err != nil {
			t.Fatal(err)
		}
		audit.refused(t, "publish", subject)
	}
	subscribe := []string{">", "facts.>", "facts.test.>", "$KV.>", "timers.>", "fired.>", "quarantine.>", "members.test", "$JS.>", "$JS.API.>", "$JS.EVENT.>", "$SYS.>", "jobstream.>",
		"jobstream.events.other.>", "_INBOX_jobstream_test.>"}
	for _, subject := range subscribe {
		if _, err := audit.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
		audit.refused(t, "subscription", subject)
	}
	if after := everything(t, operator); after != before {
		t.Errorf("something has happened:\nbefore %s\nafter  %s", before, after)
	}
	t.Logf("%d subjects to publish to and %d to subscribe to are refused", len(publish), len(subscribe))
}

// A server sends its answer to the subject that the request names. A subscriber's answers stay in its account, so it cannot make
// the server write for it through the requests that it may send.
func TestSubscriberCannotHaveTheServerWrite(t *testing.T) {
	b, operator, as := guardedBus(t)
	audit := dialAs(t, as("audit"), apiPrefix)
	before := everything(t, operator)
	targets := []string{newEvent, "facts.test.job.default." + uid(1) + ".PodGone", b.names.value(keyOf(uid(1))), b.names.members(),
		b.names.schedule(keyOf(uid(1)), "t"), "$JS.API.CONSUMER.MSG.NEXT." + eventsStream + "." + otherConsumer, "$JS.API.STREAM.DELETE." + eventsStream,
		"$JS.API.STREAM.PURGE." + eventsStream}
	for _, target := range targets {
		for _, ask := range []struct{ subject, text string }{
			{apiPrefix + ".CONSUMER.INFO." + eventsStream + "." + ownConsumer, ""},
			{apiPrefix + ".CONSUMER.MSG.NEXT." + eventsStream + "." + ownConsumer, `{"batch":1,"no_wait":true}`},
			{"$JS.ACK." + eventsStream + "." + ownConsumer + ".1.1.1.1.0", "+NXT"}, // acknowledges, and asks for the next one
			{"$JS.ACK." + eventsStream + "." + ownConsumer + ".1.1.1.1.0", "+ACK"}, // asks for a confirmation
		} {
			received := intercept(t, operator, target)
			if err := audit.PublishRequest(ask.subject, target, []byte(ask.text)); err != nil {
				t.Fatal(err)
			}
			// Requests are answered in order: after this one, the server has processed the one above.
			m, err := audit.Request(apiPrefix+".CONSUMER.INFO."+eventsStream+"."+ownConsumer, nil, soon)
			if err != nil || !strings.Contains(string(m.Data), `"stream_name"`) {
				t.Fatalf("its own consumer: %v", err)
			}
			if m, err := received.NextMsg(time.Millisecond); err == nil {
				t.Errorf("%v with the reply %s: a client in jobstream's account receives %q", ask, target, m.Data)
			}
		}
	}
	if after := everything(t, operator); after != before {
		t.Errorf("something has happened:\nbefore %s\nafter  %s", before, after)
	}
}

// Why each subscriber has an account of its own: in jobstream's account, permission to send any request is permission to write.
// If a server refuses that one day, accounts.conf may become simpler.
func TestPermissionsAloneDoNotKeepASubscriberFromWriting(t *testing.T) {
	info := "$JS.API.CONSUMER.INFO." + eventsStream + "." + ownConsumer
	url := bare(t, server.Options{JetStream: true, MaxPayload: 8 << 20, Users: []*server.User{
		{Username: "operator", Password: "s3cret"},
		{Username: "audit", Password: "s3cret", Permissions: &server.Permissions{Publish: &server.SubjectPermission{Allow: []string{info}}}},
	}})
	as := func(user string) string { return strings.Replace(url, "nats://", "nats://"+user+":s3cret@", 1) }
	b := connect(t, nil, func(c *Config) { c.URL = as("operator") })
	announce(t, b, tick("shop", "nightly", 1))
	if _, err := b.js.CreateConsumer(t.Context(), eventsStream, jetstream.ConsumerConfig{Durable: ownConsumer, AckPolicy: jetstream.AckExplicitPolicy}); err != nil {
		t.Fatal(err)
	}
	audit := dialAs(t, as("audit"))
	if err := audit.PublishRequest(info, "facts.test.job.default."+uid(1)+".PodGone", nil); err != nil {
		t.Fatal(err)
	}
	until(t, "an answer lies among the facts", func() bool { return messages(t, b, b.names.facts()) > 0 })
}

// intercept subscribes in jobstream's own account.
func intercept(t *testing.T, operator *client, subject string) *nats.Subscription {
	t.Helper()
	sub, err := operator.SubscribeSync(subject)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sub.Unsubscribe() })
	if err := operator.Flush(); err != nil {
		t.Fatal(err)
	}
	return sub
}

// everything returns the contents of jobstream's account: streams with their settings and ends, and consumers; not the progress
// of the subscriber's own consumer.
func everything(t *testing.T, operator *client) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	var all []string
	streams := operator.js.ListStreams(ctx)
	for s := range streams.Info() {
		all = append(all, fmt.Sprintf("%s: %d messages, the last %d, %d bytes, %v", s.Config.Name, s.State.Msgs, s.State.LastSeq, s.Config.MaxBytes, s.Config.Subjects))
		stream, err := operator.js.Stream(ctx, s.Config.Name)
		if err != nil {
			t.Fatal(err)
		}
		consumers := stream.ListConsumers(ctx)
		for c := range consumers.Info() {
			line := s.Config.Name + " " + c.Name + fmt.Sprint(c.Config.FilterSubjects, c.Config.FilterSubject, c.Paused)
			if c.Name != ownConsumer {
				line += fmt.Sprint(c.Delivered.Consumer, c.NumPending, c.NumAckPending)
			}
			all = append(all, line)
		}
		if err := consumers.Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := streams.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}
