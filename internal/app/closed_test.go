package app

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobstream/jobstream/internal/app/apptest"
)

// A server that answers with an error of the protocol makes nats.go close the connection for good. A program that went on would
// look well and do nothing, for ever: it ends, with the cause, and its supervisor starts another.
func TestConnectionThatIsClosedForGoodEndsTheProgram(t *testing.T) {
	for name, start := range map[string]func(context.Context, Options) error{
		"trigger": func(ctx context.Context, o Options) error {
			c := TriggerDefaults()
			c.Options = o
			return RunTrigger(ctx, c)
		},
		"reconciler": func(ctx context.Context, o Options) error {
			c := ReconcilerDefaults()
			c.Options = o
			return RunReconciler(ctx, c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t, apptest.Start(t))
			rude := rudeServer(t, o.Bus.URL)
			o.Bus.URL = rude.url
			_, ended := run(t, func(ctx context.Context) error { return start(ctx, o) })
			awaitReady(t, o.Probes, ended)
			rude.complains.Store(true)
			awaitCause(t, ended)
		})
	}
}

// The same while a reconciler still starts, at each stream that it makes: the closed connection is a consequence, not the cause.
func TestConnectionThatIsClosedAtTheStartEndsTheProgram(t *testing.T) {
	for _, stream := range []string{"facts", "state_job", "state_scheduledjob"} {
		t.Run(stream, func(t *testing.T) {
			o := options(t, apptest.Start(t))
			rude := rudeServer(t, o.Bus.URL)
			o.Bus.URL, rude.at = rude.url, "jobstream_default_"+stream
			c := ReconcilerDefaults()
			c.Options = o
			_, ended := run(t, func(ctx context.Context) error { return RunReconciler(ctx, c) })
			awaitCause(t, ended)
		})
	}
}

// awaitCause waits for the end of a program, whose error must name what the server has said, and what to do.
func awaitCause(t *testing.T, ended <-chan error) {
	t.Helper()
	select {
	case err := <-ended:
		fatal := (*Fatal)(nil)
		if !errors.As(err, &fatal) || !strings.Contains(err.Error(), "no more of this") || fatal.Remedy == "" {
			t.Errorf("it ends with %v", err)
		}
	case <-time.After(soon):
		t.Fatal("it does not end")
	}
}

// rude stands before a NATS server and, on request, sends an error after which no client can continue.
type rude struct {
	url       string
	at        string // what makes it complain, if the server says it; empty for nothing
	complains atomic.Bool
}

func rudeServer(t *testing.T, natsURL string) *rude {
	t.Helper()
	u, err := url.Parse(natsURL)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	r := &rude{url: "nats://" + l.Addr().String()}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", u.Host)
			if err != nil {
				_ = client.Close()
				return
			}
			go func() { _, _ = io.Copy(server, client); _ = server.Close() }()
			go func() { r.answer(client, server); _ = client.Close() }()
		}
	}()
	return r
}

// answer passes on what the server says, and says more between two lines of it.
func (r *rude) answer(client io.Writer, server io.Reader) {
	for buf := make([]byte, 64<<10); ; {
		n, err := server.Read(buf)
		if err != nil {
			return
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
		if r.at != "" && bytes.Contains(buf[:n], []byte(r.at)) {
			r.complains.Store(true)
		}
		if r.complains.Load() && bytes.HasSuffix(buf[:n], []byte("\r\n")) {
			_, _ = io.WriteString(client, "-ERR 'no more of this'\r\n")
		}
	}
}
