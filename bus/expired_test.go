package bus

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

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

// creds returns the credentials of a new user with the given lifetime; negative has expired, 0 is for ever.
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

// Credentials that expire at run time end the connection, and new ones restore it.
func TestExpiredCredentials(t *testing.T) {
	t.Parallel()
	o, j, file := newOperator(t), &journal{}, filepath.Join(t.TempDir(), "me.creds")
	s := configure(t, o.config)
	put(t, file, o.creds(0))
	b := connect(t, nil, logged(j), func(c *Config) { c.URL, c.CredentialsFile = "nats://"+s.listen, file })
	until(t, "the bus is ready", func() bool { return b.Ready() == nil })
	put(t, file, o.creds(3*time.Second)) // read when it connects again; on a busy machine they may have expired by then, too
	if err := b.nc.ForceReconnect(); err != nil {
		t.Fatal(err)
	}
	until(t, "the bus is not ready, since the credentials are not valid", func() bool {
		err := b.Ready()
		return err != nil && holds(err.Error(), "rejects this program", "--nats-credentials ("+file+")")
	})
	if len(j.lines("rejects this program", "remedy=", file)) == 0 {
		t.Errorf("the log does not say so:\n%s", j)
	}
	put(t, file, o.creds(0))
	recovers(t, b, 1)
	put(t, file, o.creds(-time.Hour))
	refused(t, Config{URL: b.cfg.URL, Credentials: b.cfg.Credentials}, "rejects this program", "--nats-credentials")
}
