// Package embedded runs a NATS server with JetStream inside this process, for one machine and for tests. It is separate from
// package bus, since a program that imports it links all of nats-server: cmd/jobstream does, cmd/trigger and cmd/reconciler must
// not (cmd/links_test.go).
//
//	server, err := embedded.Start(embedded.Config{StoreDir: dir})
//	...
//	defer server.Shutdown()
//	b, err := bus.Connect(ctx, bus.Config{Server: server, Cluster: "test"})
package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// startTimeout is how long a server may take to open its store, which it reads back.
const startTimeout = 30 * time.Second

// Config describes the server.
type Config struct {
	// StoreDir is the folder of the streams. Required; two servers must never share one.
	StoreDir string
	// Host to listen on, default 127.0.0.1.
	Host string
	// Port to listen on; 0 does not listen (only this process can connect, see bus.Config.Server), -1 takes a free one.
	Port int
	// Token that every client has to present, this process included (bus.Credentials.TokenFile); "" requires none.
	Token string
	// MaxPayload in bytes. Default 8 MiB, the minimum that bus.Connect requires.
	MaxPayload int32
	// SyncAlways makes every write durable before it is confirmed, even against a power failure, at about a tenth of the speed.
	// Otherwise the server syncs the disk every two minutes; no count depends on that.
	SyncAlways bool
	// Log receives the server's own lines at debug level, and its errors at warning level. Default: nothing is logged.
	Log *slog.Logger
}

// Server is a NATS server with JetStream inside this process.
type Server struct {
	server *server.Server
	url    string
}

// Start starts a server and waits until it serves. It fails if the folder cannot be used or the port is taken.
func Start(c Config) (*Server, error) {
	if c.StoreDir == "" {
		return nil, errors.New("embedded NATS: StoreDir is empty: name a folder for the streams")
	}
	if c.Host == "" {
		c.Host = "127.0.0.1"
	}
	if c.MaxPayload == 0 {
		c.MaxPayload = 8 << 20
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	o := &server.Options{
		ServerName:    "jobstream-embedded",
		Host:          c.Host,
		Port:          c.Port,
		DontListen:    c.Port == 0,
		Authorization: c.Token,
		MaxPayload:    c.MaxPayload,
		JetStream:     true,
		StoreDir:      c.StoreDir,
		SyncAlways:    c.SyncAlways,
		NoSigs:        true,
	}
	s, err := server.NewServer(o)
	if err != nil {
		return nil, fmt.Errorf("embedded NATS in %s: %w", c.StoreDir, err)
	}
	log := &serverLog{log: c.Log.With("component", "nats-server")}
	s.SetLoggerV2(log, false, false, false)
	s.Start()
	for deadline := time.Now().Add(startTimeout); !s.ReadyForConnections(100 * time.Millisecond); {
		if !log.failed() && time.Now().Before(deadline) {
			continue
		}
		s.Shutdown()
		s.WaitForShutdown()
		return nil, fmt.Errorf("embedded NATS in %s did not start: %s", c.StoreDir, log.fatal())
	}
	e := &Server{server: s}
	if c.Port != 0 {
		e.url = s.ClientURL()
	}
	return e, nil
}

// URL returns the address for other processes, "" if the server does not listen.
func (s *Server) URL() string { return s.url }

// InProcessConn implements nats.InProcessConnProvider: a connection without a network, also if the server does not listen.
func (s *Server) InProcessConn() (net.Conn, error) { return s.server.InProcessConn() }

// Shutdown stops the server and waits until its store is closed.
func (s *Server) Shutdown() {
	s.server.Shutdown()
	s.server.WaitForShutdown()
}

// serverLog is the server's logger. A fatal error does not end this process: it becomes Start's error.
type serverLog struct {
	log *slog.Logger
	mu  sync.Mutex
	why string
}

func (l *serverLog) failed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why != ""
}

func (l *serverLog) fatal() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.why == "" {
		return fmt.Sprintf("not ready within %v", startTimeout)
	}
	return l.why
}

func (l *serverLog) Noticef(format string, v ...any) { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l *serverLog) Debugf(format string, v ...any)  { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l *serverLog) Tracef(format string, v ...any)  { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l *serverLog) Warnf(format string, v ...any)   { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l *serverLog) Errorf(format string, v ...any)  { l.log.Warn(fmt.Sprintf(format, v...)) }
func (l *serverLog) Fatalf(format string, v ...any) {
	l.mu.Lock()
	l.why = fmt.Sprintf(format, v...)
	l.mu.Unlock()
}
