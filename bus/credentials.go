package bus

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// Credentials are files that authenticate this program. Each is read at every connection and reconnection, and so are those of
// TLS: a rotated Secret takes effect without a restart. Line breaks at the end of a file are ignored.
type Credentials struct {
	// UserFile and PasswordFile hold a user name and its password. Each needs the other.
	UserFile, PasswordFile string
	// NkeySeedFile holds the seed of an nkey (SU...). The server knows its public key.
	NkeySeedFile string
	// TokenFile holds a token.
	TokenFile string
	// CredentialsFile is a NATS .creds file: a JWT and the seed of its nkey.
	CredentialsFile string
}

// flagged is a file and the program flag that names it.
type flagged struct{ flag, file string }

// ways returns the configured methods of authentication, each as its files.
func (c Config) ways() (all [][]flagged) {
	for _, way := range [][]flagged{
		{{"--nats-user-file", c.UserFile}, {"--nats-password-file", c.PasswordFile}},
		{{"--nats-nkey-seed-file", c.NkeySeedFile}},
		{{"--nats-token-file", c.TokenFile}},
		{{"--nats-credentials", c.CredentialsFile}},
	} {
		for _, f := range way {
			if f.file != "" {
				all = append(all, way)
				break
			}
		}
	}
	return all
}

// CheckCredentials rejects half a method of authentication, and two methods at once; its error names the flags of the programs.
// It reads no file.
func (c Config) CheckCredentials() error {
	if (c.UserFile == "") != (c.PasswordFile == "") {
		return errors.New("--nats-user-file and --nats-password-file need each other: give both")
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		return errors.New("--nats-cert and --nats-key need each other: give both, the certificate file and its key file")
	}
	var names []string
	for _, way := range c.ways() {
		names = append(names, way[0].flag)
	}
	if c.userInURL() {
		names = append(names, "a user or token in --nats-url")
	}
	if len(names) > 1 {
		return fmt.Errorf("%s both authenticate to NATS: give one of them", strings.Join(names, " and "))
	}
	return nil
}

// userInURL reports whether an address contains a user or a token.
func (c Config) userInURL() bool {
	for s := range strings.SplitSeq(c.URL, ",") {
		if u, err := url.Parse(strings.TrimSpace(s)); err == nil && u.User != nil {
			return true
		}
	}
	return false
}

// remedy returns what to check when the server rejects the credentials.
func (c Config) remedy() string {
	ways := c.ways()
	switch {
	case len(ways) > 0:
		var names []string
		for _, f := range ways[0] {
			names = append(names, f.flag+" ("+f.file+")")
		}
		return "check " + strings.Join(names, " and ") + ", and whether the server knows them"
	case c.userInURL():
		return "check the credentials in --nats-url; better move them to --nats-user-file and --nats-password-file"
	}
	return "the server requires authentication: give --nats-user-file and --nats-password-file, --nats-nkey-seed-file, --nats-token-file or --nats-credentials"
}

// readable reads every file once, so that a missing or empty one fails at the start, with its flag.
func (c Config) readable() error {
	for _, way := range c.ways() {
		for _, f := range way {
			if _, err := f.read(); err != nil {
				return err
			}
		}
	}
	for _, f := range []flagged{{"--nats-ca", c.CAFile}, {"--nats-cert", c.CertFile}, {"--nats-key", c.KeyFile}} {
		if f.file == "" {
			continue
		}
		if _, err := f.read(); err != nil {
			return err
		}
	}
	return nil
}

// illegible is an error about a file that does not hold what its flag requires.
type illegible struct{ error }

func (i *illegible) Unwrap() error { return i.error }

// read returns the contents of the file. An empty file is an error.
func (f flagged) read() (string, error) {
	data, err := os.ReadFile(f.file)
	if err != nil {
		return "", &illegible{fmt.Errorf("%s: %w", f.flag, err)}
	}
	text := strings.TrimRight(string(data), "\r\n")
	if text == "" {
		return "", &illegible{fmt.Errorf("%s: %s is empty", f.flag, f.file)}
	}
	return text, nil
}

// credentials returns the options for authentication and TLS.
func (b *Bus) credentials() (o []nats.Option) {
	c := b.cfg
	// fetch reads a file for a handler of nats.go that cannot return an error: the handler then sends nothing, and the server
	// rejects the connection.
	fetch := func(f flagged) string {
		text, err := f.read()
		if err != nil {
			b.outage.record(err)
		}
		return text
	}
	switch {
	case c.UserFile != "":
		o = append(o, nats.UserInfoHandler(func() (user, password string) {
			return fetch(flagged{"--nats-user-file", c.UserFile}), fetch(flagged{"--nats-password-file", c.PasswordFile})
		}))
	case c.TokenFile != "":
		o = append(o, nats.TokenHandler(func() string { return fetch(flagged{"--nats-token-file", c.TokenFile}) }))
	case c.NkeySeedFile != "":
		b.nkey = &nkeyDialer{seed: flagged{"--nats-nkey-seed-file", c.NkeySeedFile}}
		o = append(o, b.nkey.option())
	case c.CredentialsFile != "":
		o = append(o, nats.UserCredentials(c.CredentialsFile))
	}
	if c.CAFile != "" {
		o = append(o, nats.RootCAs(c.CAFile))
	}
	if c.CertFile != "" {
		o = append(o, nats.ClientCert(c.CertFile, c.KeyFile))
	}
	return o
}

// nkeyDialer reads the seed of the nkey before each connection. nats.go requests a signature whenever it connects, and so would
// use a new seed, but the public key of the first connection stays in its options. So the dialer writes the new public key there:
// while it dials, nats.go holds the lock under which it will read the options, and no other goroutine reads them (nats.go 1.55,
// createConn and connectProto; TestRotatedNkey runs it under the race detector).
type nkeyDialer struct {
	seed flagged
	conn atomic.Pointer[nats.Conn] // nil until the first connection is made
	pair nkeys.KeyPair
}

// option registers the dialer with nats.go.
func (d *nkeyDialer) option() nats.Option {
	return func(o *nats.Options) error {
		public, err := d.load()
		if err != nil {
			return err
		}
		o.CustomDialer = d
		return nats.Nkey(public, func(nonce []byte) ([]byte, error) { return d.pair.Sign(nonce) })(o)
	}
}

// load reads the seed and returns its public key.
func (d *nkeyDialer) load() (public string, err error) {
	text, err := d.seed.read()
	if err != nil {
		return "", err
	}
	if d.pair, err = nkeys.ParseDecoratedNKey([]byte(text)); err != nil { // also parses a bare seed
		return "", &illegible{fmt.Errorf("%s: %s holds no seed of an nkey: %w", d.seed.flag, d.seed.file, err)}
	}
	return d.pair.PublicKey()
}

// Dial implements nats.CustomDialer.
func (d *nkeyDialer) Dial(network, address string) (net.Conn, error) {
	if nc := d.conn.Load(); nc != nil {
		public, err := d.load()
		if err != nil {
			return nil, err
		}
		nc.Opts.Nkey = public
	}
	return (&net.Dialer{Timeout: nats.DefaultTimeout}).Dial(network, address)
}

// refusal recognises connection errors that waiting does not cure, and returns the remedy.
func (c Config) refusal(err error) (remedy string, final bool) {
	words := err.Error()
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked), errors.Is(err, nats.ErrAccountAuthExpired):
		return c.remedy(), true
	case errors.Is(err, nats.ErrSecureConnRequired), errors.Is(err, nats.ErrSecureConnWanted):
		return "one side wants TLS and the other does not: check the tls:// in --nats-url, and --nats-ca", true
	case errors.As(err, new(*illegible)), errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrPermission), strings.Contains(words, "nkeys:"),
		strings.Contains(words, "parse root certificate"), strings.Contains(words, "client certificate:"):
		return "check the files for credentials, CA, certificate and key", true
	case strings.Contains(words, "x509:"):
		return "check --nats-ca (" + orNone(c.CAFile) + "): has it signed the server's certificate, and is that for the name in --nats-url?", true
	case errors.Is(err, nats.ErrTLS), strings.Contains(words, "tls:"):
		return "check --nats-ca (" + orNone(c.CAFile) + "), --nats-cert (" + orNone(c.CertFile) + ") and --nats-key", true
	}
	return "", false
}

func orNone(file string) string {
	if file == "" {
		return "not given"
	}
	return file
}
