package bus

import (
	"maps"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/finding"
)

// Headers that make a server reject what it would otherwise do: an expected stream that cannot exist, since its name has a dot,
// and an API level that no server will have. With them a subject can be tried on live streams.
const (
	headerRequiredLevel = "Nats-Required-Api-Level"
	impossibleStream    = "jobstream.doctor.never"
	impossibleLevel     = "1000000"
)

// probe is a message that the server rejects, for want of permission or because of its headers, or that has no meaning.
type probe struct {
	subject string
	allow   string // the permission that covers it, as doc.go names it
	header  nats.Header
	data    string
}

// inspectPermissions tries one subject of each kind that this role publishes to, and the inbox. A server reports a missing
// permission only asynchronously, and a caller that waits for an answer waits in vain.
func (b *Bus) inspectPermissions(functions []string) []finding.Finding {
	const check = "nats permissions"
	inbox := b.nc.NewInbox()
	deaf, denied, tried, err := b.tryAll(inbox, b.probes(functions))
	if err != nil {
		return []finding.Finding{finding.Worry(check, finding.Fail, "try again", "they cannot be tried: %v", err)}
	}
	var all []finding.Finding
	if deafTo, err := b.cannotSubscribe(b.names.members()); err == nil && deafTo && b.cfg.Role != Trigger {
		all = append(all, finding.Worry(check, finding.Fail, "allow this program's user to subscribe to "+b.names.members(), "may not subscribe to %s", b.names.members()))
	}
	if deaf {
		all = append(all, finding.Worry(check, finding.Fail, "allow this program's user to subscribe to "+b.names.inbox()+".>", "may not subscribe to %s", inbox))
	}
	for _, of := range slices.Sorted(maps.Keys(denied)) {
		subjects, level, advice := denied[of], finding.Fail, "allow this program's user to publish to "+of
		switch {
		case of == b.names.family("fired"):
			level, advice = finding.Warn, advice+", where requeue shall put back fired timers, too"
		case strings.HasPrefix(of, "$JS."):
			advice = "allow this program's user to publish to those subjects below " + strings.TrimSuffix(of, ">") + " that deploy/nats/accounts.conf names"
		}
		all = append(all, finding.Worry(check, level, advice, "may not publish to %s (%d subjects tried, %d refused)", subjects[0], tried[of], len(subjects)))
	}
	if len(all) == 0 {
		n := 0
		for _, of := range tried {
			n += of
		}
		all = append(all, finding.Good(check, "%d subjects tried, none is refused", n))
	}
	return all
}

// cannotSubscribe reports whether the server refuses a subscription to the subject.
func (b *Bus) cannotSubscribe(subject string) (deaf bool, err error) {
	sub, err := b.nc.SubscribeSync(subject)
	if err != nil {
		return false, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := b.nc.FlushTimeout(requestTimeout); err != nil {
		return false, err
	}
	return violated(b.nc, subject), nil
}

// tryAll sends the probes. It returns whether the inbox is denied, and by the permission that would allow them, which subjects
// are denied and how many were tried. nats.go keeps only the server's last error, so each probe is checked before the next is
// sent.
func (b *Bus) tryAll(inbox string, probes []probe) (deaf bool, denied map[string][]string, tried map[string]int, err error) {
	sub, err := b.nc.SubscribeSync(inbox)
	if err != nil {
		return false, nil, nil, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := b.nc.FlushTimeout(requestTimeout); err != nil {
		return false, nil, nil, err
	}
	deaf = violated(b.nc, inbox)
	denied, tried = map[string][]string{}, map[string]int{}
	for _, p := range probes {
		m := &nats.Msg{Subject: p.subject, Reply: inbox, Header: p.header, Data: []byte(p.data)}
		if err := b.nc.PublishMsg(m); err != nil {
			return deaf, nil, nil, err
		}
		if err := b.nc.FlushTimeout(requestTimeout); err != nil {
			return deaf, nil, nil, err
		}
		tried[p.allow]++
		if violated(b.nc, p.subject) {
			denied[p.allow] = append(denied[p.allow], p.subject)
		}
	}
	return deaf, denied, tried, nil
}

// probes returns one message for each kind of subject that the role needs.
func (b *Bus) probes(functions []string) (all []probe) {
	if b.cfg.Role != Reconciler {
		all = append(all, b.probesOfTrigger()...)
	}
	if b.cfg.Role != Trigger {
		all = append(all, b.probesOfReconciler(functions)...)
	}
	if b.cfg.Role == Everything {
		all = append(all, b.tryStore(b.names.family("fired"), b.names.firedTimer(doctor, "doctor")), // requeue
			b.tryAPI("STREAM.MSG.DELETE."+b.names.quarantine()))
	}
	return all
}

// doctor is a key that no object has.
var doctor = events.Key{Function: "doctor", Namespace: "doctor", UID: "doctor"}

// tryStore returns a probe that publishes to a stream.
func (b *Bus) tryStore(allow, subject string) probe {
	return probe{subject: subject, allow: allow, header: nats.Header{jetstream.ExpectedStreamHeader: {impossibleStream}}}
}

// tryAPI returns a probe that requests the JetStream API.
func (b *Bus) tryAPI(subject string) probe {
	return probe{"$JS.API." + subject, "$JS.API.>", nats.Header{headerRequiredLevel: {impossibleLevel}}, "no JSON: the doctor asks for nothing"}
}

func (b *Bus) probesOfTrigger() []probe {
	all := []probe{
		b.tryStore(b.names.family("facts"), events.Fact{Cluster: b.cfg.Cluster, Key: doctor, Event: events.TimerFired{}}.Subject()),
		b.tryAPI("CONSUMER.LIST." + b.names.facts()),
	}
	for _, verb := range []string{"STREAM.CREATE", "STREAM.UPDATE"} {
		all = append(all, b.tryAPI(verb+"."+b.names.facts()))
	}
	for _, s := range b.streams() {
		all = append(all, b.tryAPI("STREAM.INFO."+s.Name))
	}
	return all
}

func (b *Bus) probesOfReconciler(functions []string) []probe {
	all := []probe{
		{subject: b.names.members(), allow: b.names.members()},
		b.tryStore(b.names.family("timers"), b.names.schedule(doctor, "doctor")),
		b.tryStore(b.names.family("quarantine"), b.names.aside(doctor.Tokens())),
		b.tryStore(b.names.announced(), strings.TrimSuffix(b.names.announced(), ">")+"doctor"),
		b.tryAPI("STREAM.PURGE." + b.names.timers()),
		b.tryAPI("STREAM.MSG.GET." + b.names.quarantine()),
	}
	states := b.states(functions)
	for _, s := range states {
		all = append(all, b.tryStore(s.Subjects[0], strings.TrimSuffix(s.Subjects[0], ">")+"doctor"),
			b.tryAPI("STREAM.MSG.GET."+s.Name), b.tryAPI("STREAM.PURGE."+s.Name))
	}
	for _, s := range append(b.streams(), states...) {
		for _, verb := range []string{"STREAM.INFO", "STREAM.CREATE", "STREAM.UPDATE"} {
			all = append(all, b.tryAPI(verb+"."+s.Name))
		}
	}
	for _, stream := range []string{b.names.facts(), b.names.timers()} {
		of := stream + "." + factsConsumer("doctor", 0) // a consumer that does not exist
		all = append(all, b.tryAPI("STREAM.MSG.GET."+stream), b.tryAPI("CONSUMER.LIST."+stream),
			b.tryAPI("CONSUMER.INFO."+of), b.tryAPI("CONSUMER.CREATE."+of+".doctor"), b.tryAPI("CONSUMER.MSG.NEXT."+of),
			probe{"$JS.ACK." + of + ".1.1.1.1.0", "$JS.ACK.>", nil, "+WPI"})
	}
	return all
}

// containsQuoted reports whether the server's message quotes exactly this subject: it quotes what it refuses.
func containsQuoted(words, subject string) bool {
	return strings.Contains(strings.ToLower(words), `"`+strings.ToLower(subject)+`"`)
}
