package bus

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/jobstream/jobstream/bus/embedded"
	"github.com/jobstream/jobstream/internal/dev/natsrelease"
	"github.com/jobstream/jobstream/internal/engine"
	"github.com/jobstream/jobstream/internal/partition"
)

// refused connects and returns the error, which must contain all the words.
func refused(t *testing.T, c Config, words ...string) {
	t.Helper()
	if c.Cluster == "" {
		c.Cluster = "test"
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = soon
	}
	b, err := Connect(t.Context(), c)
	if err == nil {
		b.Close()
		t.Fatal("connected")
	}
	t.Log(err)
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error does not say %q: %v", w, err)
		}
	}
	if strings.Contains(err.Error(), "s3cret") {
		t.Errorf("the error holds a password: %v", err)
	}
}

// bare starts a server with options that embedded.Start does not allow.
func bare(t *testing.T, o server.Options) string {
	t.Helper()
	o.Host, o.Port, o.NoSigs, o.NoLog, o.StoreDir = "127.0.0.1", -1, true, true, t.TempDir()
	s, err := server.NewServer(&o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(soon) {
		t.Fatal("server is not ready")
	}
	return s.ClientURL()
}

func TestErrorsAtTheStart(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free := l.Addr().String()
	l.Close()
	t.Run("unreachable", func(t *testing.T) {
		began := time.Now()
		refused(t, Config{URL: "nats://me:s3cret@" + free + ",nats://s3cret@127.0.0.1:1", ConnectTimeout: time.Second}, free, "is it running", "127.0.0.1:1")
		if took := time.Since(began); took > soon {
			t.Errorf("took %v", took)
		}
	})
	t.Run("no such host", func(t *testing.T) {
		refused(t, Config{URL: "nats://nats.invalid:4222", ConnectTimeout: time.Second}, "nats.invalid", "is it running")
	})
	t.Run("JetStream off", func(t *testing.T) {
		refused(t, Config{URL: bare(t, server.Options{MaxPayload: 8 << 20})}, "JetStream is off", "-js")
	})
	t.Run("small payload", func(t *testing.T) {
		refused(t, Config{URL: bare(t, server.Options{JetStream: true})}, "max_payload", "1048576", "8MB")
	})
	t.Run("wrong password", func(t *testing.T) {
		u := bare(t, server.Options{JetStream: true, MaxPayload: 8 << 20, Username: "me", Password: "right"})
		refused(t, Config{URL: strings.Replace(u, "nats://", "nats://me:s3cret@", 1)}, "rejects this program", "credentials")
	})
	t.Run("too many replicas", func(t *testing.T) {
		refused(t, Config{URL: bare(t, server.Options{JetStream: true, MaxPayload: 8 << 20}), Replicas: 3}, "one replica")
	})
	t.Run("too little storage", func(t *testing.T) {
		refused(t, Config{URL: bare(t, server.Options{JetStream: true, MaxPayload: 8 << 20, JetStreamMaxStore: 1 << 20})}, "max_file_store")
	})
	t.Run("no credentials file", func(t *testing.T) {
		refused(t, Config{URL: bare(t, server.Options{JetStream: true}), Credentials: Credentials{CredentialsFile: "/nowhere/x.creds"}}, "/nowhere/x.creds", "check the files")
	})
	t.Run("nothing given", func(t *testing.T) {
		refused(t, Config{}, "URL")
		refused(t, Config{URL: "nats://x", Cluster: strings.Repeat("x", 101)}, "101")
		refused(t, Config{URL: "nats://x", CertFile: "x"}, "--nats-key")
		refused(t, Config{URL: "nats://x", Replicas: 2}, "2 replicas")
	})
}

func TestInProcess(t *testing.T) {
	t.Parallel()
	s, err := embedded.Start(embedded.Config{StoreDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	if s.URL() != "" {
		t.Errorf("listens on %s", s.URL())
	}
	b := connect(t, s, func(c *Config) { c.URL, c.Server = "", s })
	e := listen(t, b, allPartitions(), nil)
	publish(t, b, observation(keyOf(uid(1)), 1))
	until(t, "the fact is received", func() bool { return e.count(nil) == 1 })
	if err := b.Ready(); err != nil {
		t.Error(err)
	}
	b.Close()
	b.Close()
	if err := b.Ready(); err == nil {
		t.Error("ready after Close")
	}
	if err := b.Publish(t.Context(), observation(keyOf(uid(1)), 2)); err == nil {
		t.Error("published after Close")
	}
	if err := b.Flush(t.Context()); err == nil {
		t.Error("flushed after Close")
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	web := httptest.NewTLSServer(nil) // for its certificate
	web.Close()
	pair := web.TLS.Certificates[0]
	u := bare(t, server.Options{JetStream: true, MaxPayload: 8 << 20, TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}}})
	refused(t, Config{URL: u}, "x509", "--nats-ca")
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}), 0o600); err != nil {
		t.Fatal(err)
	}
	b := connect(t, nil, func(c *Config) { c.URL, c.CAFile = u, ca })
	publish(t, b, observation(keyOf(uid(1)), 1))
}

// A user with exactly the permissions that doc.go names can do everything.
func TestPermissions(t *testing.T) {
	t.Parallel()
	may := &server.Permissions{
		Publish: &server.SubjectPermission{Allow: []string{
			"facts.test.>", "timers.test.>", "quarantine.test.>", "members.test", "jobstream.events.test.>", "$KV.jobstream_test_state_job.>", "$JS.API.>", "$JS.ACK.>",
		}},
		Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX_jobstream_test.>", "members.test"}},
	}
	u := bare(t, server.Options{JetStream: true, MaxPayload: 8 << 20, Users: []*server.User{{Username: "me", Password: "right", Permissions: may}}})
	b := connect(t, nil, patient, func(c *Config) { c.URL = strings.Replace(u, "nats://", "nats://me:right@", 1) })
	key := keyOf(uid(1))
	e := listen(t, b, allPartitions(), func(d engine.Delivery) {
		if versionOf(d.Event()) == 1 {
			d.Quarantine(errors.New("a test"))
			return
		}
		d.Ack()
	})
	publish(t, b, observation(key, 1), observation(key, 2))
	if err := b.Timers().Set(t.Context(), key, "x", time.Now()); err != nil {
		t.Error(err)
	}
	if err := b.Announce(t.Context(), tick("shop", "nightly", 0)); err != nil {
		t.Error(err)
	}
	var members heartbeats
	stop, err := b.Members().Listen(members.receive)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if err := b.Members().Send(partition.Heartbeat{Member: "me"}); err != nil {
		t.Error(err)
	}
	st := store(t, b)
	if _, err := st.Save(t.Context(), key, []byte("x"), 0, true); err != nil {
		t.Error(err)
	}
	if _, _, err := st.Load(t.Context(), key); err != nil {
		t.Error(err)
	}
	if err := st.Forget(t.Context(), key); err != nil {
		t.Error(err)
	}
	until(t, "facts and timers are received", func() bool { return e.count(nil) == 3 })
	until(t, "the bus receives its own heartbeats", func() bool { return len(members.names()) == 1 })
	until(t, "one is set aside", func() bool { aside, err := b.Quarantined(t.Context()); return err == nil && len(aside) == 1 })
	b.top.evicted(t.Context(), false)
	looks(t, b, 1)
}

// A real server of the release before schedules were complete must be rejected by name. It is built from its module once; if that
// is impossible, the test is skipped with the reason. BUS_OLD_SERVER names an existing binary.
func TestOldServerIsRefused(t *testing.T) {
	t.Parallel()
	const version = "v2.10.29"
	bin := os.Getenv("BUS_OLD_SERVER")
	if bin == "" {
		if testing.Short() {
			t.Skip("-short: building nats-server " + version + " takes a minute the first time")
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		var err error
		if bin, err = natsrelease.Build(ctx, version); err != nil {
			t.Skipf("nats-server %s cannot be built: %v", version, err)
		}
	}
	ports := t.TempDir()
	cmd := exec.Command(bin, "-a", "127.0.0.1", "-p", "-1", "-js", "-sd", t.TempDir(), "--ports_file_dir", ports)
	cmd.Stderr = io.Discard
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	var port string
	until(t, "the old server listens", func() bool {
		found, _ := filepath.Glob(filepath.Join(ports, "*.ports"))
		if len(found) == 0 {
			return false
		}
		b, _ := os.ReadFile(found[0])
		_, rest, ok := strings.Cut(string(b), "nats://127.0.0.1:")
		port, _, _ = strings.Cut(rest, `"`)
		return ok && port != ""
	})
	refused(t, Config{URL: "nats://127.0.0.1:" + port}, strings.TrimPrefix(version, "v"), "2.12", "level")
}
