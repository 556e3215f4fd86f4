package bus

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jobstream/jobstream/internal/engine"
	"github.com/jobstream/jobstream/internal/partition"
)

// with changes a Config so that it uses the role's user of deploy/nats/accounts.conf.
func with(url string, role Role, j *journal) func(*Config) {
	return func(c *Config) { c.URL, c.Role = url, role; logged(j)(c) }
}

// A trigger and a reconciler, each with its user, do all that they do, in either order of start, and the server refuses nothing.
func TestRolesMayDoTheirWork(t *testing.T) {
	for name, order := range map[string][]Role{"the trigger is first": {Trigger, Reconciler}, "the reconciler is first": {Reconciler, Trigger}} {
		t.Run(name, func(t *testing.T) {
			as, j, by := guarded(t), &journal{}, map[Role]*Bus{}
			for _, role := range order {
				by[role] = connect(t, nil, patient, with(as(string(role)), role, j))
			}
			trigger, reconciler, key := by[Trigger], by[Reconciler], keyOf(uid(1))
			publish(t, trigger, observation(key, 1), observation(key, 2))
			e := listen(t, reconciler, allPartitions(), func(d engine.Delivery) {
				if versionOf(d.Event()) == 1 {
					d.Quarantine(errors.New("a test"))
					return
				}
				d.Ack()
			})
			var members heartbeats
			stop, err := reconciler.Members().Listen(members.receive)
			if err != nil {
				t.Fatal(err)
			}
			defer stop()
			st := store(t, reconciler)
			_, saved := st.Save(t.Context(), key, []byte("x"), 0, true)
			_, _, loaded := st.Load(t.Context(), key)
			for what, err := range map[string]error{
				"set a timer": reconciler.Timers().Set(t.Context(), key, "x", time.Now()), "announce": reconciler.Announce(t.Context(), tick("shop", "nightly", 0)),
				"send a heartbeat": reconciler.Members().Send(partition.Heartbeat{Member: "me"}), "save": saved, "load": loaded, "forget": st.Forget(t.Context(), key),
				"look at all streams": reconciler.top.mend(t.Context()), "glance at them": trigger.top.mend(t.Context()),
			} {
				if err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
			until(t, "facts and the timer are received", func() bool { return e.count(nil) == 3 })
			until(t, "the bus receives its own heartbeats", func() bool { return len(members.names()) == 1 })
			until(t, "one is set aside", func() bool { aside, err := reconciler.Quarantined(t.Context()); return err == nil && len(aside) == 1 })
			trigger.top.evicted(t.Context(), false)
			reconciler.top.evicted(t.Context(), false)
			until(t, "both are ready", func() bool { return trigger.Ready() == nil && reconciler.Ready() == nil })
			if _, ok := trigger.Backlog(); !ok {
				t.Error("the trigger does not see how full the stream of public events is")
			}
			if lines := j.lines("level=WARN", "ermission"); len(lines) > 0 {
				t.Error(strings.Join(lines, "\n"))
			}
		})
	}
}

// A trigger that sees another program recreate a stream of work knows that the cluster has to be listed again; a recreated stream
// that it only reads does not concern it.
func TestTriggerSeesLossesOfOthers(t *testing.T) {
	t.Parallel()
	s := serve(t)
	reconciler, trigger := connect(t, s, func(c *Config) { c.Role = Reconciler }), connect(t, s, func(c *Config) { c.Role = Trigger })
	see := func(what string, ok func() bool) {
		t.Helper()
		until(t, what, func() bool { trigger.top.look(); return ok() })
	}
	see("the trigger sees public events", func() bool { _, ok := trigger.Backlog(); return ok })
	js := subscriber(t, s)
	for _, stream := range []string{"jobstream_test_events", "jobstream_test_timers"} {
		remove(t, js, stream)
		reconciler.top.look()
		until(t, "it is recreated", func() bool { _, err := js.Stream(t.Context(), stream); return err == nil })
	}
	see("the loss is told", func() bool { return losses(trigger) > 0 })
	if lines, err := js.Stream(t.Context(), "jobstream_test_timers"); err != nil || lines.CachedInfo().State.Msgs > 0 {
		t.Error(err)
	}
}

// Each role is refused what only the other does, and both what neither does.
func TestRolesMayNothingElse(t *testing.T) {
	b, operator, as := guardedBus(t)
	store(t, b)
	before := everything(t, operator)
	key := keyOf(uid(1))
	facts, timers, quarantine, state := b.names.facts(), b.names.timers(), b.names.quarantine(), b.names.state("job")
	fact := "facts.test.job.default." + uid(1) + ".PodGone"
	neither := []string{
		b.names.firedTimer(key, "t"), "jobstream.other", "x", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.LIST", "$JS.API.ACCOUNT.PURGE.JOBSTREAM",
		"$SYS.REQ.SERVER.PING", "$SYS.REQ.ACCOUNT.JOBSTREAM.INFO", "$JS.SNAPSHOT.ACK." + state + ".x", "$JS.API.STREAM.CREATE.other", "$JS.API.STREAM.INFO.other",
		"$JS.ACK." + eventsStream + "." + otherConsumer + ".1.1.1.1.0",
		"$JS.ACK." + eventsStream + "." + otherConsumer + "." + facts + ".1.1.1.0", // not a subject of jobstream's, although it ends like one with a domain
	}
	for _, stream := range []string{eventsStream, facts, timers, quarantine, state} {
		for _, verb := range []string{"STREAM.DELETE", "STREAM.MSG.DELETE", "STREAM.SNAPSHOT", "STREAM.RESTORE", "STREAM.PEER.REMOVE", "STREAM.LEADER.STEPDOWN", "DIRECT.GET", "CONSUMER.NAMES"} {
			neither = append(neither, "$JS.API."+verb+"."+stream)
		}
		for _, verb := range []string{"CONSUMER.DURABLE.CREATE", "CONSUMER.DELETE", "CONSUMER.PAUSE", "CONSUMER.RESET", "CONSUMER.UNPIN", "CONSUMER.LEADER.STEPDOWN"} {
			neither = append(neither, "$JS.API."+verb+"."+stream+".job-00")
		}
	}
	for _, stream := range []string{eventsStream, quarantine, state} {
		for _, verb := range []string{"CONSUMER.CREATE", "CONSUMER.INFO", "CONSUMER.MSG.NEXT"} {
			neither = append(neither, "$JS.API."+verb+"."+stream+"."+otherConsumer)
		}
	}
	ofReconciler := []string{
		b.names.value(key), b.names.schedule(key, "t"), b.names.aside(key.Tokens()), b.names.members(), newEvent,
		"$JS.API.STREAM.MSG.GET." + state, "$JS.API.STREAM.PURGE." + state, "$JS.API.STREAM.PURGE." + timers, "$JS.API.STREAM.INFO." + state,
	}
	for _, stream := range []string{eventsStream, timers, quarantine, state} {
		ofReconciler = append(ofReconciler, "$JS.API.STREAM.CREATE."+stream, "$JS.API.STREAM.UPDATE."+stream)
	}
	for _, stream := range []string{facts, timers} {
		ofReconciler = append(ofReconciler, "$JS.API.STREAM.MSG.GET."+stream, "$JS.API.CONSUMER.CREATE."+stream+".job-00.x", "$JS.API.CONSUMER.INFO."+stream+".job-00",
			"$JS.API.CONSUMER.MSG.NEXT."+stream+".job-00", "$JS.ACK."+stream+".job-00.1.1.1.1.0")
	}
	subscribe := []string{">", "facts.>", "facts.test.>", "$KV.>", "timers.>", "fired.>", "quarantine.>", "$JS.>", "$JS.API.>", "$JS.EVENT.>", "$SYS.>", "jobstream.>", "jobstream.events.test.>", "_INBOX.>", "_INBOX_jobstream_test.>", "_R_.>"}
	for user, c := range map[string]struct{ publish, subscribe []string }{
		"trigger":    {append(ofReconciler, "$JS.API.CONSUMER.LIST."+timers), []string{"members.test", "_INBOX_jobstream_test_reconciler.>"}},
		"reconciler": {[]string{fact, "facts.test.0.job.default." + uid(1) + ".PodGone", "$JS.API.CONSUMER.LIST." + eventsStream}, []string{"_INBOX_jobstream_test_trigger.>"}},
	} {
		who := dialAs(t, as(user))
		publish, subscribe := slices.Concat(c.publish, neither), slices.Concat(c.subscribe, subscribe)
		for _, subject := range publish {
			if err := who.PublishRequest(subject, "_INBOX_jobstream_test_"+user+".x", []byte("{}")); err != nil {
				t.Fatal(err)
			}
			who.refused(t, "publish", subject)
		}
		for _, subject := range subscribe {
			if _, err := who.SubscribeSync(subject); err != nil {
				t.Fatal(err)
			}
			who.refused(t, "subscription", subject)
		}
		t.Logf("%s: %d subjects to publish to and %d to subscribe to are refused", user, len(publish), len(subscribe))
	}
	if after := everything(t, operator); after != before {
		t.Errorf("something has happened:\nbefore %s\nafter  %s", before, after)
	}
}

// Why a subscriber may not create its consumer, not even one with its own name on the stream of public events: the request names
// a subject that the server then writes to, in jobstream's account and with the server's own rights. Neither the name nor the
// filter, which the subject of the request repeats and a permission can pin, prevents that. Here the heartbeats of such a
// consumer overwrite the memory of a Job while a client watches it: nats-server 2.15 delivers only where a client has subscribed
// to exactly that subject, and nothing else prevents the attack. When a server refuses it, or a permission can require pull
// consumers, accounts.conf may let subscribers create theirs.
func TestMakingOneConsumerMeansWritingAnywhere(t *testing.T) {
	create := "$JS.API.CONSUMER.CREATE.jobstream_test_events.audit." + newEvent
	info := "JOBSTREAM.API.CONSUMER.INFO.jobstream_test_events.audit"
	b, operator, as := guardedBus(t,
		"    exports: [\n", "    exports: [\n      { service: \""+create+"\" }\n",
		"    imports: [\n", "    imports: [\n      { service: { account: JOBSTREAM, subject: \""+create+"\" }, to: \"make.mine\" }\n",
		`"`+info+`", "JOB`, `"make.mine", "`+info+`", "JOB`)
	if err := operator.js.DeleteConsumer(t.Context(), eventsStream, ownConsumer); err != nil {
		t.Fatal(err)
	}
	st, key := store(t, b), keyOf(uid(1))
	if _, err := st.Save(t.Context(), key, []byte("remembered"), 0, false); err != nil {
		t.Fatal(err)
	}
	audit := dialAs(t, as("audit"))
	m, err := audit.Request("make.mine", []byte(`{"stream_name":"`+eventsStream+`","config":{"durable_name":"audit","name":"audit","filter_subject":"`+newEvent+`",`+
		`"ack_policy":"none","deliver_policy":"new","deliver_subject":"`+b.names.value(key)+`","idle_heartbeat":100000000}}`), soon)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(m.Data), `"error"`) {
		t.Fatalf("the server refuses it, and accounts.conf may become more generous: %s", m.Data)
	}
	intercept(t, operator, b.names.value(key))
	until(t, "the memory of the Job is gone", func() bool {
		data, _, err := st.Load(t.Context(), key)
		return err == nil && len(data) == 0
	})
}
