package bus

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/jobstream/jobstream/bus/cloudevent"
)

// Config says where the bus is and whose facts it carries.
type Config struct {
	// URL of the server, several separated by commas, such as "nats://nats:4222".
	URL string
	// Server is one inside this process to use instead of a URL: an embedded.Server.
	Server nats.InProcessConnProvider
	// Cluster is the name of the Kubernetes cluster: in every subject and stream. Required; at most 100 bytes.
	Cluster string
	// Role is what this program does on the bus, and may do: by default everything.
	Role Role
	// Name of this client, shown by the server's monitoring. Default "jobstream".
	Name string
	// Replicas of every stream: 1 (the default), or 3 on a cluster of at least three servers.
	Replicas int
	// Credentials say who we are, unless the URL or a client certificate does, or nobody asks.
	Credentials
	// CAFile, CertFile and KeyFile are PEM files for TLS: the authority that we trust, and a client certificate. They are read
	// at every connection, as Credentials are.
	CAFile, CertFile, KeyFile string
	// MaxFactsBytes bounds the stream of facts; the oldest go first. Default 1 GiB.
	MaxFactsBytes int64
	// MaxStateBytes bounds the memory of each function; the states that were written longest ago go first, and cost an
	// inventory. Default 512 MiB.
	MaxStateBytes int64
	// MaxTimersBytes bounds the stream of timers; those that were set longest ago go first, and the next relist makes up for
	// them. Default 256 MiB.
	MaxTimersBytes int64
	// MaxEventsAge and MaxEventsBytes bound the stream of public events; the oldest go first. Default 7 days and 1 GiB. Less
	// than 70 minutes also shorten the time for which an event that is announced twice is stored once.
	MaxEventsAge   time.Duration
	MaxEventsBytes int64
	// EventMode is how public events lie in their messages. Default structured.
	EventMode cloudevent.Mode
	// Log is where the bus writes; default slog.Default().
	Log *slog.Logger
	// SetAside, if not nil, hears of every message that has been set aside, by Quarantine or because nobody could read it:
	// once each, when its copy is safe, with the function that it was for. It must return at once.
	SetAside func(function string)
	// Unread, if not nil, hears of every fact whose type this program does not know, with the function that it was for. It must
	// return at once.
	Unread func(function string)
	// AckWait is how long a delivery may stay silent before it is given to somebody else. Default 3 s.
	AckWait time.Duration
	// ConnectTimeout is how long Connect waits for the server to come up. Default 10 s.
	ConnectTimeout time.Duration
}

// withDefaults checks the configuration and fills what was left out.
func (c Config) withDefaults() (Config, error) {
	switch {
	case c.URL == "" && c.Server == nil:
		return c, errors.New("bus: neither a URL nor an embedded server is given: set one, such as nats://127.0.0.1:4222")
	case c.URL != "" && c.Server != nil:
		return c, errors.New("bus: both a URL and an embedded server are given: which one holds the streams?")
	case c.Replicas < 0 || c.Replicas > 5 || c.Replicas > 0 && c.Replicas%2 == 0:
		return c, fmt.Errorf("bus: %d replicas: use 1, or 3 on a cluster of three servers", c.Replicas)
	}
	if err := c.Role.valid(); err != nil {
		return c, err
	}
	if err := c.CheckCredentials(); err != nil {
		return c, fmt.Errorf("bus: %w", err)
	}
	if c.Name == "" {
		c.Name = "jobstream"
	}
	if c.Replicas == 0 {
		c.Replicas = 1
	}
	if c.MaxFactsBytes <= 0 {
		c.MaxFactsBytes = 1 << 30
	}
	if c.MaxStateBytes <= 0 {
		c.MaxStateBytes = DefaultStateBytes
	}
	if c.MaxTimersBytes <= 0 {
		c.MaxTimersBytes = timersBytes
	}
	if c.MaxEventsAge <= 0 {
		c.MaxEventsAge = 7 * 24 * time.Hour
	}
	if c.MaxEventsBytes <= 0 {
		c.MaxEventsBytes = 1 << 30
	}
	if c.EventMode == "" {
		c.EventMode = cloudevent.Structured
	}
	if err := c.EventMode.Valid(); err != nil {
		return c, fmt.Errorf("bus: %w", err)
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.SetAside == nil {
		c.SetAside = func(string) {}
	}
	if c.Unread == nil {
		c.Unread = func(string) {}
	}
	if c.AckWait <= 0 {
		c.AckWait = 3 * time.Second
	}
	if c.ConnectTimeout <= 0 {
		c.ConnectTimeout = 10 * time.Second
	}
	return c, nil
}

// where names the bus without its credentials.
func (c Config) where() string {
	if c.Server != nil {
		return "the embedded NATS server"
	}
	var safe []string
	for s := range strings.SplitSeq(c.URL, ",") {
		s = strings.TrimSpace(s)
		if u, err := url.Parse(s); err == nil && u.Host != "" {
			u.User = nil
			s = u.String()
		} else if i := strings.LastIndexByte(s, '@'); i >= 0 {
			s = s[i+1:]
		}
		safe = append(safe, s)
	}
	return "NATS at " + strings.Join(safe, ",")
}
