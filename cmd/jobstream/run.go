package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/jobstream/jobstream/bus/embedded"
	"github.com/jobstream/jobstream/internal/app"
	"github.com/jobstream/jobstream/internal/cluster"
	"github.com/jobstream/jobstream/internal/flags"
	"github.com/jobstream/jobstream/internal/trace"
)

// run runs jobstream until ctx ends. A stop during the start is no failure.
func run(ctx context.Context, s *settings, out io.Writer) (err error) {
	if err := s.valid(); err != nil {
		return err
	}
	s.given, s.Kubeconfig = s.Kubeconfig, cluster.KubectlConfig(s.Kubeconfig)
	c, api, err := client(s.Options)
	if err != nil {
		return err
	}
	f, err := check(ctx, s, c, api)
	switch {
	case ctx.Err() != nil:
		return nil //nolint:nilerr // later errors are consequences of the stop
	case err != nil:
		return err
	}
	if err := s.settle(api); err != nil {
		return err
	}
	folder, err := s.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	server, err := startNATS(s)
	if err != nil {
		return err
	}
	defer server.Shutdown()
	return work(ctx, s, server, func() { fmt.Fprint(out, hello(s, f)) })
}

// startNATS starts the server for clients that have the token.
func startNATS(s *settings) (*embedded.Server, error) {
	token, err := s.token()
	if err != nil {
		return nil, err
	}
	server, err := embedded.Start(embedded.Config{StoreDir: s.store(), Port: s.port, Token: token, Log: app.Quiet(s.Log)})
	if err == nil {
		return server, nil
	}
	remedy := "--dir (" + flags.EnvName("dir") + ") names another folder"
	if strings.Contains(err.Error(), "in use") {
		remedy = "another program has the port, such as a NATS server: choose another one with --nats-port (" + flags.EnvName("nats-port") +
			"), or 0 for none. To use that server instead, run jobstream-trigger and jobstream-reconciler"
	}
	return nil, &app.Fatal{Cannot: "start NATS", Err: err, Remedy: remedy}
}

// work runs trigger and reconciler until ctx ends, and calls ready when both work.
func work(ctx context.Context, s *settings, server *embedded.Server, ready func()) error {
	s.Bus.Server, s.Bus.TokenFile = server, s.tokenFile()
	s.NATSRemedy = "choose a folder with more room with --dir (" + flags.EnvName("dir") + "), or make do with less: --nats-facts-bytes, --nats-events-bytes, --nats-state-bytes (which there are two of)"
	s.Probes = &app.Probes{}
	g, running := errgroup.WithContext(ctx)
	g.Go(func() error { return app.RunAllInOne(running, s.AllInOneConfig) })
	g.Go(func() error {
		err := app.AwaitReady(running, nil, s.Probes)
		switch {
		case running.Err() != nil:
			return nil //nolint:nilerr // stopped by the user, or by the other's failure, which is reported
		case err == nil:
			ready()
		}
		return err
	})
	return g.Wait()
}

// newSpans makes the exporter of spans.
func newSpans(cluster string, log *slog.Logger, settled func(string, int)) (app.Spans, error) {
	return trace.New(trace.Config{Cluster: cluster, Version: app.Version(), Log: log, Settled: settled})
}
