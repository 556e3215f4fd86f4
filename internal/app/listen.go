package app

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/jobstream/jobstream/internal/flags"
)

const (
	// readTimeout ends connections without a request.
	readTimeout = 10 * time.Second
	// closeTimeout is for responses in progress when the program ends.
	closeTimeout = time.Second
)

// listener is an HTTP server that runs until it is closed.
type listener struct {
	server *http.Server
	done   chan struct{}
}

// listen serves on the address; an address that says Off serves nothing. flag is the one that named it.
func listen(ctx context.Context, address, flag string, h http.Handler, log *slog.Logger) (*listener, error) {
	if !listens(address) {
		return nil, nil
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, &Fatal{Cannot: "serve on " + address, Err: err,
			Remedy: "another program may have the port: choose another address with --" + flag + " (" + flags.EnvName(flag) + "), or 0 for none"}
	}
	s := &listener{server: &http.Server{Handler: h, ReadHeaderTimeout: readTimeout, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		if err := s.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("server ended", "address", address, "error", err)
		}
	}()
	log.Info("serving", "what", flag, "address", l.Addr().String())
	return s, nil
}

// close ends the server, if there is one, and returns when all its goroutines have ended.
func (s *listener) close(ctx context.Context) {
	if s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if s.server.Shutdown(ctx) != nil {
		_ = s.server.Close() // drop the remaining requests
	}
	<-s.done
}
