package bus

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// configured is a NATS server that is configured by a file, as those that people run.
type configured struct {
	server *server.Server
	dir    string
	listen string
	disk   string // where it stores, and how much it may
}

// configure starts a server with the settings beside those that a bus needs.
func configure(t *testing.T, settings string) *configured {
	t.Helper()
	c := &configured{dir: t.TempDir(), listen: "127.0.0.1:-1", disk: "store_dir: \"" + t.TempDir() + "\""}
	c.start(t, settings)
	return c
}

func (c *configured) start(t *testing.T, settings string) {
	t.Helper()
	c.write(t, settings)
	o, err := server.ProcessConfigFile(filepath.Join(c.dir, "nats.conf"))
	if err != nil {
		t.Fatal(err)
	}
	o.NoSigs, o.NoLog = true, true
	if c.server, err = server.NewServer(o); err != nil {
		t.Fatal(err)
	}
	c.server.Start()
	s := c.server
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(soon) {
		t.Fatal("server is not ready")
	}
	c.listen = strings.TrimPrefix(strings.TrimPrefix(s.ClientURL(), "nats://"), "tls://")
}

func (c *configured) write(t *testing.T, settings string) {
	t.Helper()
	put(t, filepath.Join(c.dir, "nats.conf"), fmt.Sprintf("listen: \"%s\"\nmax_payload: 8MB\njetstream { %s }\n%s\n", c.listen, c.disk, settings))
}

// reload changes the settings of the server that runs.
func (c *configured) reload(t *testing.T, settings string) {
	t.Helper()
	c.write(t, settings)
	if err := c.server.Reload(); err != nil {
		t.Fatal(err)
	}
}

// restart ends the server and starts it anew, on the same address and disk.
func (c *configured) restart(t *testing.T, settings string) {
	t.Helper()
	c.server.Shutdown()
	c.server.WaitForShutdown()
	c.start(t, settings)
}

// put writes a file at once, as a kubelet replaces those of a Secret.
func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// journal is a log that tests read.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

// lines are those that hold all the words.
func (j *journal) lines(words ...string) (found []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for line := range strings.SplitSeq(j.text.String(), "\n") {
		if holds(line, words...) {
			found = append(found, line)
		}
	}
	return found
}

func holds(text string, words ...string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// logged is a change of a Config that writes a journal.
func logged(j *journal) func(*Config) {
	return func(c *Config) { c.Log = slog.New(slog.NewTextHandler(j, nil)) }
}

// unready waits until Ready says all the words, and then that a line of the log has said them, once.
func unready(t *testing.T, b *Bus, j *journal, words ...string) {
	t.Helper()
	var last error
	until(t, fmt.Sprintf("not ready, for %q", words), func() bool {
		last = b.Ready()
		return last != nil && holds(last.Error(), words...)
	})
	if n := len(j.lines(append(words, "level=WARN", "remedy=")...)); n != 1 {
		t.Errorf("%d lines of the log hold %q, want one:\n%s", n, words, j.text.String())
	}
	if strings.Contains(j.text.String()+last.Error(), "s3cret") {
		t.Errorf("a secret is told: %v\n%s", last, j.text.String())
	}
}

// recovers waits until the bus is ready and takes a fact.
func recovers(t *testing.T, b *Bus, version uint64) {
	t.Helper()
	var last error
	deadline := time.Now().Add(soon)
	for last = b.Ready(); last != nil; last = b.Ready() {
		if time.Now().After(deadline) {
			t.Fatalf("not ready within %v: %v", soon, last)
		}
		<-time.After(5 * time.Millisecond)
	}
	publish(t, b, sight(keyOf(uid(1)), version))
}

// seed makes an nkey of a user.
func seed(t *testing.T) (seed, public string) {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	s, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	if public, err = pair.PublicKey(); err != nil {
		t.Fatal(err)
	}
	return string(s), public
}

// way is a way to say who we are: files of the client, and what the server is told, for the n-th secret.
type way struct {
	flag  string // of the file that is rotated
	files func(dir string) Credentials
	write func(t *testing.T, dir string, n int)
	serve func(n int) string
}

func ways(t *testing.T) map[string]way {
	seeds, publics := [2]string{}, [2]string{}
	for n := range seeds {
		seeds[n], publics[n] = seed(t)
	}
	return map[string]way{
		"user and password": {
			"--nats-password-file",
			func(dir string) Credentials {
				return Credentials{UserFile: filepath.Join(dir, "user"), PasswordFile: filepath.Join(dir, "password")}
			},
			func(t *testing.T, dir string, n int) {
				put(t, filepath.Join(dir, "user"), "me\n")
				put(t, filepath.Join(dir, "password"), fmt.Sprintf("s3cret%d\r\n", n))
			},
			func(n int) string { return fmt.Sprintf("authorization { user: me, password: \"s3cret%d\" }", n) },
		},
		"token": {
			"--nats-token-file",
			func(dir string) Credentials { return Credentials{TokenFile: filepath.Join(dir, "token")} },
			func(t *testing.T, dir string, n int) {
				put(t, filepath.Join(dir, "token"), fmt.Sprintf("s3cret%d\n", n))
			},
			func(n int) string { return fmt.Sprintf("authorization { token: \"s3cret%d\" }", n) },
		},
		"nkey": {
			"--nats-nkey-seed-file",
			func(dir string) Credentials { return Credentials{NkeySeedFile: filepath.Join(dir, "seed")} },
			func(t *testing.T, dir string, n int) { put(t, filepath.Join(dir, "seed"), seeds[n]+"\n") },
			func(n int) string { return fmt.Sprintf("authorization { users: [ { nkey: %s } ] }", publics[n]) },
		},
	}
}

// Credentials that are rotated while we run are taken without a restart, whether the files change before the server or after
// it. Meanwhile one line, and readiness, name the cause and the file to look at.
func TestRotatedCredentials(t *testing.T) {
	t.Parallel()
	for name, w := range ways(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, j := t.TempDir(), &journal{}
			w.write(t, dir, 0)
			s := configure(t, w.serve(0))
			b := connect(t, nil, logged(j), func(c *Config) { c.URL, c.Credentials = "nats://"+s.listen, w.files(dir) })
			recovers(t, b, 1)

			s.reload(t, w.serve(1)) // and throws us out
			unready(t, b, j, "refuses us", "since", "uthorization", w.flag)
			w.write(t, dir, 1)
			recovers(t, b, 2)

			w.write(t, dir, 0)
			s.reload(t, w.serve(0))
			recovers(t, b, 3)

			file := filepath.Join(dir, filepath.Base(b.cfg.ways()[0][len(b.cfg.ways()[0])-1].file))
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			s.restart(t, w.serve(0))
			unready(t, b, j, "no such file", w.flag)
			w.write(t, dir, 0)
			recovers(t, b, 4)
		})
	}
}

// What is wrong with credentials at the start is an error that names the flag.
func TestCredentialsAtTheStart(t *testing.T) {
	t.Parallel()
	for name, w := range ways(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := configure(t, w.serve(0))
			c := Config{URL: "nats://" + s.listen, Credentials: w.files(dir)}
			refused(t, c, "no such file", "--nats-")
			w.write(t, dir, 1)
			refused(t, c, "refuses us", "Authorization", w.flag)
			put(t, c.ways()[0][0].file, "\n")
			refused(t, c, "is empty", c.ways()[0][0].flag)
			refused(t, Config{URL: c.URL}, "refuses us", "--nats-user-file", "--nats-nkey-seed-file", "--nats-token-file", "--nats-credentials")
		})
	}
	s, _ := seed(t)
	dir := t.TempDir()
	put(t, filepath.Join(dir, "seed"), strings.Replace(s, "S", "s3cret", 1))
	refused(t, Config{URL: bare(t, server.Options{JetStream: true}), Credentials: Credentials{NkeySeedFile: filepath.Join(dir, "seed")}}, "--nats-nkey-seed-file", "no seed of an nkey")
	for want, c := range map[string]Config{
		"--nats-password-file":                                                      {URL: "nats://x", Credentials: Credentials{UserFile: "x"}},
		"--nats-user-file":                                                          {URL: "nats://x", Credentials: Credentials{PasswordFile: "x"}},
		"--nats-user-file and --nats-token-file both":                               {URL: "nats://x", Credentials: Credentials{UserFile: "x", PasswordFile: "y", TokenFile: "z"}},
		"--nats-nkey-seed-file and --nats-credentials both":                         {URL: "nats://x", Credentials: Credentials{NkeySeedFile: "x", CredentialsFile: "z"}},
		"--nats-token-file and a user or token in --nats-url both":                  {URL: "nats://x,nats://me:s3cret@y", Credentials: Credentials{TokenFile: "z"}},
		"--nats-user-file and --nats-credentials and a user or token in --nats-url": {URL: "nats://s3cret@y", Credentials: Credentials{UserFile: "x", PasswordFile: "y", CredentialsFile: "z"}},
	} {
		refused(t, c, want)
	}
}

// A password in the URL works, as it always has, and the log says once what is better.
func TestPasswordInURL(t *testing.T) {
	t.Parallel()
	j := &journal{}
	s := configure(t, "authorization { user: me, password: s3cret }")
	b := connect(t, nil, logged(j), func(c *Config) { c.URL = "nats://me:s3cret@" + s.listen })
	s.restart(t, "authorization { user: me, password: s3cret }")
	until(t, "the bus is found again", func() bool { return len(j.lines("bus found again")) > 0 })
	recovers(t, b, 1)
	if n := len(j.lines("--nats-url holds", "--nats-password-file")); n != 1 {
		t.Errorf("said %d times", n)
	}
	if n := len(j.lines("s3cret")); n > 0 {
		t.Errorf("the password stands in %d lines", n)
	}
}

// operator signs the account and the users of a server that trusts JWTs.
type operator struct {
	t       *testing.T
	account nkeys.KeyPair
	config  string
}

func newOperator(t *testing.T) *operator {
	t.Helper()
	must := func(pair nkeys.KeyPair, err error) (nkeys.KeyPair, string) {
		if err != nil {
			t.Fatal(err)
		}
		public, err := pair.PublicKey()
		if err != nil {
			t.Fatal(err)
		}
		return pair, public
	}
	root, rootKey := must(nkeys.CreateOperator())
	account, accountKey := must(nkeys.CreateAccount())
	_, systemKey := must(nkeys.CreateAccount())
	sign := func(text string, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	claims := jwt.NewAccountClaims(accountKey)
	claims.Limits.JetStreamLimits = jwt.JetStreamLimits{DiskStorage: -1, MemoryStorage: -1, Streams: -1, Consumer: -1}
	return &operator{t, account, fmt.Sprintf("operator: %s\nsystem_account: %s\nresolver: MEMORY\nresolver_preload: { %s: %s, %s: %s }",
		sign(jwt.NewOperatorClaims(rootKey).Encode(root)), systemKey,
		accountKey, sign(claims.Encode(root)), systemKey, sign(jwt.NewAccountClaims(systemKey).Encode(root)))}
}

// creds are those of a new user, for so long, or which expired so long ago; 0 is for ever.
func (o *operator) creds(valid time.Duration) string {
	o.t.Helper()
	s, public := seed(o.t)
	claims := jwt.NewUserClaims(public)
	if valid != 0 {
		claims.Expires = time.Now().Add(valid).Unix()
	}
	token, err := claims.Encode(o.account)
	if err != nil {
		o.t.Fatal(err)
	}
	text, err := jwt.FormatUserConfig(token, []byte(s))
	if err != nil {
		o.t.Fatal(err)
	}
	return string(text)
}

// Credentials that expire while we run throw us out, and new ones let us in again.
func TestExpiredCredentials(t *testing.T) {
	t.Parallel()
	o, j, file := newOperator(t), &journal{}, filepath.Join(t.TempDir(), "me.creds")
	s := configure(t, o.config)
	put(t, file, o.creds(3*time.Second))
	b := connect(t, nil, logged(j), func(c *Config) { c.URL, c.CredentialsFile = "nats://"+s.listen, file })
	until(t, "the bus is ready", func() bool { return b.Ready() == nil })
	until(t, "we are not ready, since the credentials are not valid", func() bool {
		err := b.Ready()
		return err != nil && holds(err.Error(), "refuses us", "--nats-credentials ("+file+")")
	})
	if len(j.lines("refuses us", "remedy=", file)) == 0 {
		t.Errorf("the log does not say so:\n%s", j.text.String())
	}
	put(t, file, o.creds(0))
	recovers(t, b, 1)
	put(t, file, o.creds(-time.Hour))
	refused(t, Config{URL: b.cfg.URL, Credentials: b.cfg.Credentials}, "refuses us", "--nats-credentials")
}
