package bus

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// seed creates the nkey of a user.
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

// way is a method of authentication: the client's files, and the server's configuration, for the n-th secret.
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

// Credentials that are rotated at run time take effect without a restart, whether the files change before the server or after it.
// Meanwhile one log line, and readiness, name the cause and the file to look at.
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

			s.reload(t, w.serve(1)) // and disconnects the client
			unready(t, b, j, "rejects this program", "since", "uthorization", w.flag)
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

// nats.go reports one rejection in its own words or in the server's, as it meets it before or after the handshake.
func TestARejectionIsLoggedOnce(t *testing.T) {
	j := &journal{}
	o := &outage{log: slog.New(slog.NewTextHandler(j, nil))}
	for _, err := range []error{nats.ErrAuthorization, inServersWords{nats.ErrAuthorization}, nats.ErrAuthorization} {
		o.record(err)
	}
	o.record(nats.ErrAuthExpired)
	if n := len(j.lines("rejects this program")); n != 2 {
		t.Errorf("%d lines for two causes:\n%s", n, j)
	}
}

type inServersWords struct{ error }

func (e inServersWords) Error() string { return "nats: Authorization Violation" }
func (e inServersWords) Unwrap() error { return e.error }

// Wrong credentials at the start are an error that names the flag.
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
			refused(t, c, "rejects this program", "Authorization", w.flag)
			put(t, c.ways()[0][0].file, "\n")
			refused(t, c, "is empty", c.ways()[0][0].flag)
			refused(t, Config{URL: c.URL}, "rejects this program", "--nats-user-file", "--nats-nkey-seed-file", "--nats-token-file", "--nats-credentials")
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

// A password in the URL still works, and the log recommends files once.
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
