package flags

import (
	"github.com/spf13/pflag"

	"github.com/jobstream/jobstream/bus"
)

// DefaultNATS is the default address of NATS on this machine.
const DefaultNATS = "nats://127.0.0.1:4222"

// AddNATS defines the flags for the NATS server and the credentials, with what the configuration holds as defaults.
func AddNATS(f *pflag.FlagSet, c *bus.Config) {
	f.StringVar(&c.URL, "nats-url", c.URL, "`URL` of the NATS server, or several separated by commas; tls:// requires TLS")
	f.StringVar(&c.UserFile, "nats-user-file", c.UserFile, "`file` with the NATS user name. This file and those below are read again at each connection: a rotated Secret needs no restart")
	f.StringVar(&c.PasswordFile, "nats-password-file", c.PasswordFile, "`file` with the password of --nats-user-file")
	f.StringVar(&c.NkeySeedFile, "nats-nkey-seed-file", c.NkeySeedFile, "`file` with the seed of an nkey, instead of a user and a password")
	f.StringVar(&c.TokenFile, "nats-token-file", c.TokenFile, "`file` with a token, instead of a user and a password")
	f.StringVar(&c.CredentialsFile, "nats-credentials", c.CredentialsFile, "NATS credentials `file` (.creds), instead of a user and a password")
	f.StringVar(&c.CAFile, "nats-ca", c.CAFile, "PEM `file` of the authority that signed the NATS server's certificate")
	f.StringVar(&c.CertFile, "nats-cert", c.CertFile, "PEM `file` of a client certificate for NATS")
	f.StringVar(&c.KeyFile, "nats-key", c.KeyFile, "PEM `file` of the key of --nats-cert")
	f.DurationVar(&c.ConnectTimeout, "nats-connect-timeout", c.ConnectTimeout, "`time` to wait for the NATS server at the start; the program waits for a server that is lost later without limit")
}

// AddClusterName defines the flag for the name of the cluster.
func AddClusterName(f *pflag.FlagSet, c *bus.Config) {
	f.StringVar(&c.Cluster, "cluster-name", c.Cluster, "`name` of the Kubernetes cluster in subjects and streams: it distinguishes clusters that share one NATS")
}
