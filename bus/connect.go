package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// pingInterval detects a dead connection within a minute (two pings may fail); nats.go's default takes six.
	pingInterval = 20 * time.Second
	// closeTimeout is how long Close waits until acknowledgements are sent.
	closeTimeout = time.Second
)

// Bus is a connection to JetStream, with all streams of one cluster in place. All methods are safe for concurrent use.
type Bus struct {
	cfg       Config
	names     names
	log       *slog.Logger
	throttled *throttledLog
	outage    *outage
	nkey      *nkeyDialer // nil without an nkey
	nc        *nats.Conn
	js        jetstream.JetStream
	top       *topology
	pub       *publisher

	problems problems
	ackGaps  ackGaps

	gate chan struct{} // bounds how many consumers are looked up at the same time

	mu      sync.Mutex
	session context.Context // ends when the connection is lost
	lose    context.CancelFunc

	closed chan struct{} // closed by Close
	ended  chan struct{} // closed when the connection is closed for good, and not by Close
	why    error         // written before ended is closed
	once   sync.Once
	done   sync.WaitGroup
}

// Connect reaches the server, checks that it has every feature that the bus needs, and creates missing streams. Its error names
// the cause and the remedy. From then on the Bus repairs itself: it reconnects for ever and recreates what disappears.
func Connect(ctx context.Context, c Config) (*Bus, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	if c.Role == Reader {
		return nil, errors.New("bus: a reader creates no streams and repairs none: use Inspect")
	}
	ctx, cancel := context.WithTimeout(ctx, c.ConnectTimeout)
	defer cancel()
	b, err := reach(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := b.open(ctx); err != nil {
		err = cmp.Or(b.Err(), err) // "connection closed" is a consequence
		b.nc.Close()
		return nil, err
	}
	run, stop := context.WithCancel(context.Background())
	b.done.Go(func() { <-b.closed; stop() })
	b.done.Go(func() { b.top.watch(run) })
	b.done.Go(func() { b.pub.run(run) })
	b.done.Go(func() { b.lookAfterProblems(run) })
	return b, nil
}

// reach connects; it checks and creates nothing.
func reach(ctx context.Context, c Config) (*Bus, error) {
	n, err := newNames(c.Cluster, c.Role)
	if err != nil {
		return nil, err
	}
	log := c.Log.With("component", "bus", "cluster", c.Cluster)
	b := &Bus{cfg: c, names: n, log: log, throttled: newThrottledLog(log), closed: make(chan struct{}), ended: make(chan struct{}), gate: make(chan struct{}, atOnce)}
	b.outage, b.problems.log = &outage{cfg: c, log: log}, log
	b.top = newTopology(b)
	b.pub = newPublisher(b)
	b.found()
	if b.nc, err = b.dial(ctx); err != nil {
		return nil, err
	}
	if b.js, err = jetstream.New(b.nc, jetstream.WithDefaultTimeout(requestTimeout), jetstream.WithPublishAsyncTimeout(requestTimeout)); err != nil {
		b.nc.Close()
		return nil, fmt.Errorf("bus: %w", err)
	}
	return b, nil
}

// open makes a Bus of a connection.
func (b *Bus) open(ctx context.Context) error {
	for {
		err := b.check(ctx)
		if err == nil {
			err = b.top.build(ctx)
		}
		if ctx.Err() != nil || !comingUp(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(reconnectWait):
		}
	}
}

// Close stops the bus. Facts that are not confirmed yet may be lost: Flush first.
func (b *Bus) Close() {
	b.once.Do(func() {
		close(b.closed)
		b.done.Wait()
		if b.nc.IsConnected() {
			_ = b.nc.FlushTimeout(closeTimeout) // sends acknowledgements; what is not acknowledged is delivered again
		}
		b.nc.Close()
	})
}

// Ended is closed when the connection was closed for good, and not by Close. nats.go reconnects for ever after most problems, but
// not after the server reported a protocol error in what this client sent. No message comes or goes from then on. Err returns the
// cause; the remedy is a new process.
func (b *Bus) Ended() <-chan struct{} { return b.ended }

// Err returns nil until the connection is closed for good, and the cause from then on. nats.go closes the connection a moment
// before it reports why; a caller that met the closed connection in between gets the cause too, since Err waits for it.
func (b *Bus) Err() error {
	if b.nc.IsClosed() {
		select {
		case <-b.ended:
		case <-b.closed:
		}
	}
	select {
	case <-b.ended:
		return b.why
	default:
		return nil
	}
}

// end records why the connection was closed for good.
func (b *Bus) end(nc *nats.Conn) {
	cause := nc.LastError()
	if cause == nil {
		cause = nats.ErrConnectionClosed
	}
	b.why = fmt.Errorf("bus: %s has closed the connection for good: %w", b.cfg.where(), cause)
	close(b.ended)
	b.log.Error("the connection to the bus is closed for good, and only a new process can make another", "err", cause)
}

// Ready returns nil while the bus is connected and every stream stands with the configured settings; its error names what is
// missing. For readiness probes.
func (b *Bus) Ready() error {
	if err := b.Err(); err != nil {
		return err
	}
	if s := b.nc.Status(); s != nats.CONNECTED {
		return b.outage.err(s)
	}
	return errors.Join(b.problems.err(), cmp.Or(b.top.stands(), b.top.conflicts()))
}

// dial tries until the server answers or the context ends. It retries by itself instead of by nats.RetryOnFailedConnect, so that
// a wrong address is an error at the start and not a process that waits for ever.
func (b *Bus) dial(ctx context.Context) (*nats.Conn, error) {
	if err := b.cfg.readable(); err != nil {
		return nil, fmt.Errorf("bus: %w: check the files for credentials, CA, certificate and key", err)
	}
	if b.cfg.userInURL() {
		b.log.Warn("--nats-url holds a user or a token, readable to every process and user that sees this program's environment or arguments, and never read again",
			"remedy", "move them to files, and name these by --nats-user-file and --nats-password-file, or --nats-token-file")
	}
	for {
		nc, err := nats.Connect(b.cfg.URL, b.options()...)
		if err == nil {
			if b.nkey != nil {
				b.nkey.conn.Store(nc)
			}
			return nc, nil
		}
		if remedy, final := b.cfg.refusal(err); final {
			return nil, fmt.Errorf("bus: %s rejects this program: %w: %s", b.cfg.where(), err, remedy)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("bus: %s cannot be reached: %w: is it running, and is the address right? (gave up after %v; for one machine, an embedded server needs no address)",
				b.cfg.where(), err, b.cfg.ConnectTimeout)
		case <-time.After(reconnectWait):
		}
	}
}

func (b *Bus) options() []nats.Option {
	c := b.cfg
	o := []nats.Option{
		nats.Name(c.Name),
		nats.MaxReconnects(-1), // the default gives up after two minutes
		nats.CustomReconnectDelay(reconnectDelay),
		nats.IgnoreAuthErrorAbort(), // a server may be back before its users are configured
		nats.ReconnectBufSize(-1),   // otherwise a write that "failed" would be sent after the reconnect
		nats.PingInterval(pingInterval),
		nats.CustomInboxPrefix(b.names.inbox()),
		nats.NoCallbacksAfterClientClose(),
		nats.ClosedHandler(b.end),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			b.lost()
			b.throttled.warn("bus lost; reconnecting", "err", err)
		}),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { b.outage.record(err) }),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			b.found()
			b.ackGaps.forget()
			b.outage.end()
			b.log.Info("bus found again", "server", nc.ConnectedServerName())
			b.top.look()
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { b.asyncError(err) }),
	}
	if c.Server != nil {
		o = append(o, nats.InProcessServer(c.Server))
	}
	return append(o, b.credentials()...)
}
