package bus

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/jobstream/jobstream/internal/finding"
)

// The doctor reports unneeded access, and finds none on a server as deploy/nats configures it.
func TestFindingsAboutWhatIsOpen(t *testing.T) {
	t.Run("a server without authentication", func(t *testing.T) {
		finds(t, inspect(t, serve(t).URL()),
			about("nats credentials", finding.Warn, "requires no authentication", "deploy/README.md"),
			about("nats tls", finding.OK, "on this machine"),
			about("nats monitoring", finding.OK, "not visible"))
	})
	t.Run("a password in the URL, of a user who may do anything", func(t *testing.T) {
		s := configure(t, allowed("", ""))
		finds(t, inspect(t, "nats://root:s3cret@"+s.listen, func(c *Config) { c.Role = Reconciler }),
			about("nats credentials", finding.Warn, "in --nats-url", "--nats-password-file"),
			about("nats excess permissions", finding.Warn, "publish to jobstream.doctor.never", "publish to $JS.API.STREAM.DELETE.", "publish to facts.test.",
				"publish to fired.test.", "subscribe to facts.test.>", "deploy/nats/accounts.conf"))
	})
	t.Run("a password in a file", func(t *testing.T) {
		s := configure(t, allowed("", ""))
		finds(t, inspect(t, "", by(t, s, "me")), about("nats credentials", finding.OK, "server requires authentication"))
	})
	t.Run("another machine, without TLS", func(t *testing.T) {
		here := elsewhere(t)
		b := inspect(t, strings.Replace(bare(t, server.Options{JetStream: true, MaxPayload: 8 << 20}), "0.0.0.0", "127.0.0.1", 1)).bus
		b.cfg.URL = "nats://" + here + ":4222,nats://nats.messaging:4222" // as if the connection used these
		if f := b.inspectTLS(); f.Level != finding.Warn || !holds(f.Found+f.Advice, "nats.messaging", "not encrypted", "tls://", "--nats-ca") {
			t.Errorf("%+v", f)
		}
	})
	t.Run("a monitor that is open to every client", func(t *testing.T) {
		varz := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/varz" {
				_, _ = w.Write([]byte(`{"server_id":"NABC"}`))
			}
		}))
		defer varz.Close()
		other := httptest.NewServer(http.NotFoundHandler())
		defer other.Close()
		until(t, "the monitor answers", func() bool { return monitors(t.Context(), varz.URL) })
		if monitors(t.Context(), other.URL) {
			t.Error("anything else is taken for a monitor")
		}
	})
}

// elsewhere returns an address of this machine that is not on loopback, or one that no machine has.
func elsewhere(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() && ip.IP.To4() != nil {
			return ip.IP.String()
		}
	}
	return "192.0.2.1"
}
