package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// askAgain is how often a refused subject is tried again, to notice when the server allows it.
	askAgain = 2 * time.Second
	// fullFor is how long a stream counts as full after the last message that it did not store, if no further writes come. It is
	// longer than the pause of any writer that will write again.
	fullFor = 3 * time.Minute
)

// problems are conditions that the operator has to set right outside of this program while the connection stands. Each is logged
// once when it begins and once when it is over, and is a part of Ready's error in between.
type problems struct {
	log  *slog.Logger
	mu   sync.Mutex
	open map[string]*problem
}

// problem is one such condition.
type problem struct {
	words   string // the cause
	remedy  string
	denied  *denial               // what to try again; nil for a full stream
	again   func(context.Context) // sends what the full stream did not store; nil where another part of the program does so
	since   time.Time
	last    time.Time // the last occurrence
	tried   time.Time // the last attempt
	attempt int
}

// denial is a permission that the server denies.
type denial struct {
	subject   string
	subscribe bool // else publish
}

// note records an occurrence of the problem and logs the first.
func (t *problems) note(key string, of problem) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if have := t.open[key]; have != nil {
		have.last = now
		return
	}
	of.since, of.last = now, now
	if t.open == nil {
		t.open = map[string]*problem{}
	}
	t.open[key] = &of
	t.log.Warn("NATS keeps jobstream from its work", "cause", of.words, "remedy", of.remedy)
}

// over records that the problem is solved.
func (t *problems) over(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if have := t.open[key]; have != nil {
		delete(t.open, key)
		t.log.Info("NATS lets jobstream work again", "it was", have.words, "for", time.Since(have.since).Round(time.Second))
	}
}

// keep sets how the problem is retried until it is over; no effect if it is over already.
func (t *problems) keep(key string, again func(context.Context)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if have := t.open[key]; have != nil {
		have.again = again
	}
}

// kept reports whether keep has set a retry for the problem.
func (t *problems) kept(key string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open[key] != nil && t.open[key].again != nil
}

// any reports whether there is a problem whose key has the prefix.
func (t *problems) any(prefix string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key := range t.open {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// err returns nil while there is no problem, and all causes and remedies otherwise.
func (t *problems) err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []error
	for _, key := range slices.Sorted(maps.Keys(t.open)) {
		have := t.open[key]
		all = append(all, fmt.Errorf("bus: since %s %s: %s", have.since.UTC().Format(time.RFC3339), have.words, have.remedy))
	}
	return errors.Join(all...)
}

// due returns the problems to look at again.
func (t *problems) due(now time.Time) (retry []problem, gone []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, have := range t.open {
		switch {
		case have.denied == nil && have.again == nil:
			if now.Sub(have.last) > fullFor {
				gone = append(gone, key)
			}
		case now.Sub(have.tried) < askAgain:
		case have.denied != nil && have.attempt > 0 && have.last.Before(have.tried): // the last try was not refused
			gone = append(gone, key)
		default:
			have.tried, have.attempt = now, have.attempt+1
			retry = append(retry, *have)
		}
	}
	return retry, gone
}

// lookAfterProblems retries refused subjects and full streams, and looks for the reason of a lost connection, until the context
// ends.
func (b *Bus) lookAfterProblems(ctx context.Context) {
	tick := time.NewTicker(askAgain / 4)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !b.nc.IsConnected() {
			b.outage.record(b.nc.LastError())
			continue
		}
		retry, gone := b.problems.due(time.Now())
		for _, t := range retry {
			if t.again != nil {
				t.again(ctx)
			} else {
				b.attempt(*t.denied)
			}
		}
		for _, key := range gone {
			b.problems.over(key)
			if strings.HasPrefix(key, keySubscribe) {
				_ = b.nc.ForceReconnect() // the server has dropped the subscription, and only a reconnect makes nats.go repeat it
			}
		}
	}
}

// attempt retries what was refused, in a way that has no effect where it is allowed. If the server refuses it again, asyncError
// receives the error before the next round.
func (b *Bus) attempt(d denial) {
	if d.subscribe {
		if sub, err := b.nc.SubscribeSync(d.subject); err == nil {
			_ = b.nc.FlushTimeout(askTimeout)
			_ = sub.Unsubscribe()
		}
		return
	}
	p := harmlessProbe(d.subject)
	_ = b.nc.PublishMsg(&nats.Msg{Subject: p.subject, Header: p.header, Data: []byte(p.data)})
	_ = b.nc.FlushTimeout(askTimeout)
}

// harmlessProbe returns a message to the subject that changes nothing: see probe.
func harmlessProbe(subject string) probe {
	switch {
	case strings.HasPrefix(subject, "$JS.ACK."):
		return probe{subject: subject, data: "+WPI"}
	case strings.HasPrefix(subject, "$JS.API."):
		return probe{subject: subject, header: nats.Header{headerRequiredLevel: {impossibleLevel}}, data: "no JSON: a check of permissions"}
	case strings.HasPrefix(subject, "members."):
		return probe{subject: subject}
	case strings.HasPrefix(subject, "jobstream.events."): // must not match the filters of subscribers
		if t := strings.Split(subject, "."); len(t) > 4 {
			subject = strings.Join(t[:4], ".") + ".doctor"
		}
	}
	return probe{subject: subject, header: nats.Header{jetstream.ExpectedStreamHeader: {impossibleStream}}}
}

// Prefixes of the keys of problems.
const (
	keySubscribe = "subscribe "
	keyPublish   = "publish "
	keyFull      = "full "
)

// violation matches how a server names what it refuses.
var violation = regexp.MustCompile(`(?i)permissions violation for (publish|subscription) to "([^"]+)"`)

// asyncError receives the errors that nats.go reports asynchronously.
func (b *Bus) asyncError(err error) {
	if m := violation.FindStringSubmatch(err.Error()); m != nil && errors.Is(err, nats.ErrPermissionViolation) {
		d := denial{subject: m[2], subscribe: strings.EqualFold(m[1], "subscription")}
		verb, key := "publish", keyPublish
		if d.subscribe {
			verb, key = "subscribe", keySubscribe
		}
		b.problems.note(key+b.covers(d.subject), problem{
			words:  fmt.Sprintf("the server does not let this program's user %s to %s", verb, d.subject),
			remedy: fmt.Sprintf("allow this program's user to %s to %s, as deploy/nats/accounts.conf does; \"jobstream-reconciler doctor\" tries all subjects", verb, b.covers(d.subject)),
			denied: &d,
		})
		return
	}
	if _, final := b.cfg.refusal(err); final {
		b.outage.record(err)
		return
	}
	b.throttled.warn("the bus reports an error", "err", err)
}

// covers returns the permission to grant for the subject.
func (b *Bus) covers(subject string) string {
	if strings.HasPrefix(subject, "_INBOX_") {
		return b.names.inbox() + ".>"
	}
	t := strings.Split(subject, ".")
	switch {
	case t[0] == "$JS" && len(t) > 3 && t[1] == "ACK":
		return strings.Join(t[:3], ".") + ".>"
	case t[0] == "$JS" && len(t) > 5 && t[2] == "CONSUMER" && t[3] == "MSG": // $JS.API.CONSUMER.MSG.NEXT.<stream>.<consumer>
		return strings.Join(t[:6], ".") + ".>"
	case t[0] == "$JS" && len(t) > 5 && t[2] == "CONSUMER":
		return strings.Join(t[:5], ".") + ".>"
	case t[0] == "$KV" && len(t) > 2:
		return t[0] + "." + t[1] + ".>"
	case t[0] == "jobstream" && len(t) > 3:
		return b.names.announced()
	case len(t) > 2 && t[0] != "$JS":
		return b.names.family(t[0])
	}
	return subject
}

// outage records why there is no connection.
type outage struct {
	cfg    Config
	log    *slog.Logger
	mu     sync.Mutex
	cause  error // nil while connected
	since  time.Time
	logged string // the rejection that the log has
}

// record notes why the last attempt to connect has failed. It logs the first rejection by a server, and every one with another
// cause. An unreachable address needs no line of its own.
func (o *outage) record(err error) {
	if err == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	remedy, final := o.cfg.refusal(err)
	if o.cause == nil {
		o.since = time.Now()
	}
	if auth := errors.Is(err, nats.ErrAuthorization); auth && o.cause != nil && errors.As(o.cause, new(*illegible)) {
		return // and is the cause of this rejection
	}
	o.cause = err
	if final && !strings.EqualFold(o.logged, err.Error()) { // nats.go words one rejection in two ways, as it reads it early or late
		o.logged = err.Error()
		o.log.Warn("NATS rejects this program; trying again", "server", o.cfg.where(), "cause", err, "since", o.since.UTC().Format(time.RFC3339), "remedy", remedy)
	}
}

// end records that the connection stands.
func (o *outage) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cause, o.logged = nil, ""
}

// err returns why there is no connection, and the remedy where waiting does not help.
func (o *outage) err(status nats.Status) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	where, word := o.cfg.where(), strings.ToLower(status.String())
	if o.cause == nil {
		return fmt.Errorf("bus: %s: %s", where, word)
	}
	if remedy, final := o.cfg.refusal(o.cause); final {
		return fmt.Errorf("bus: %s: %s: it rejects this program since %s: %w: %s", where, word, o.since.UTC().Format(time.RFC3339), o.cause, remedy)
	}
	return fmt.Errorf("bus: %s: %s: %w", where, word, o.cause)
}
