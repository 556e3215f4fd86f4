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

// Config describes where the bus is and which cluster's facts it carries.
type Config struct {
	// URL of the server, or of several separated by commas, such as "nats://nats:4222".
	URL string
	// Server is an embedded.Server inside this process; it replaces URL.
	Server nats.InProcessConnProvider
	// Cluster is the name of the Kubernetes cluster, a part of every subject and stream. Required; at most 100 bytes.
	Cluster string
	// Role limits what this program does on the bus. Default Everything.
	Role Role
	// Name of this client in the server's monitoring. Default "jobstream".
	Name string
	// Replicas of every stream: 1 (the default), or 3 on a cluster of at least three servers.
	Replicas int
	// Credentials authenticate this program. They are not needed if the URL or a client certificate does so, or if the server
	// asks for none.
	Credentials
	// CAFile, CertFile and KeyFile are PEM files for TLS: the trusted authority, and a client certificate. Like Credentials, they
	// are read at every connection.
	CAFile, CertFile, KeyFile string
	// MaxFactsBytes bounds the stream of facts; beyond it, the server drops the oldest. Default 1 GiB.
	MaxFactsBytes int64
	// MaxStateBytes bounds the memory of each function. Beyond it, the server drops the states that were written longest ago;
	// each costs an inventory. Default 512 MiB.
	MaxStateBytes int64
	// MaxTimersBytes bounds the stream of timers. Beyond it, the server drops the timers that were set longest ago; the next
	// relist replaces them. Default 256 MiB.
	MaxTimersBytes int64
	// MaxEventsAge and MaxEventsBytes bound the stream of public events; beyond either, the server drops the oldest. Default 7
	// days and 1 GiB. An age below 70 minutes also shortens the window in which an event that is announced twice is stored once.
	MaxEventsAge   time.Duration
	MaxEventsBytes int64
	// EventMode is how public events are encoded in messages. Default structured.
	EventMode cloudevent.Mode
	// Log receives the bus's log lines. Default slog.Default().
	Log *slog.Logger
	// SetAside, if not nil, is called once for every message that was quarantined, by Quarantine or because this program could
	// not read it, with the function that was to receive it. The copy is safe by then. It must return at once.
	SetAside func(function string)
	// Unread, if not nil, is called for every fact whose type this program does not know, with the function that was to receive
	// it. It must return at once.
	Unread func(function string)
	// AckWait is how long a delivery may stay unacknowledged before the server delivers it again, possibly to another process.
	// Default 3 s.
	AckWait time.Duration
	// ConnectTimeout is how long Connect waits for the server to start. Default 10 s.
	ConnectTimeout time.Duration
}

// withDefaults checks the configuration and fills in defaults.
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

// where describes the bus without its credentials.
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
