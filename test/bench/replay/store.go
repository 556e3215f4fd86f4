package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"golang.org/x/sync/errgroup"

	"github.com/jobstream/jobstream/bus"
	"github.com/jobstream/jobstream/events"
)

const (
	clusterName = "bench"
	stream      = "jobstream_" + clusterName + "_events"
	// announcers are how many events wait for their confirmation at once.
	announcers = 64
)

// build builds the server, as a process beside this one.
func build(ctx context.Context, path string) error {
	c := exec.CommandContext(ctx, "go", "build", "-o", path, "../e2e/natsd")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("build natsd: %w\n%s", err, out)
	}
	return nil
}

// fill announces so many events, half of them starts and half of them ends, and returns their size on disk.
func fill(ctx context.Context, url string, most int) (bytes uint64, took time.Duration, err error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	b, err := bus.Connect(ctx, bus.Config{URL: url, Cluster: clusterName, Log: log})
	if err != nil {
		return 0, 0, err
	}
	defer b.Close()
	began := time.Now()
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(announcers)
	for n := range most {
		g.Go(func() error { return b.Announce(gctx, event(n)) })
	}
	if err := g.Wait(); err != nil {
		return 0, 0, err
	}
	took = time.Since(began)
	js, closed, err := connect(url)
	if err != nil {
		return 0, 0, err
	}
	defer closed()
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return 0, 0, err
	}
	state := s.CachedInfo().State
	if state.Msgs != uint64(most) { //nolint:gosec // more than 0
		return 0, 0, fmt.Errorf("%d events are stored, of %d", state.Msgs, most)
	}
	return state.Bytes, took, nil
}

// event returns the start or the end of an ordinary Job in an ordinary cluster.
func event(n int) events.Public {
	uid := types.UID(fmt.Sprintf("5ef034e0-1890-11e6-8935-%012x", n/2))
	job := events.Reference{Namespace: fmt.Sprintf("team-%d", n/2%20), Name: fmt.Sprintf("report-%d", n/2), UID: uid}
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(time.Duration(n/2) * time.Second)
	if n%2 == 0 {
		return events.JobStarted{Job: job, Start: begin, Parallelism: 1, Completions: new(int32(1)), CompletionMode: batchv1.NonIndexedCompletion, ManagedBy: "jobstream.dev/reconciler"}
	}
	return events.JobFinished{Job: job, Result: "Succeeded", Reason: "CompletionsReached", Message: "Reached expected number of succeeded pods",
		Succeeded: 1, Completions: new(int32(1)), Start: begin, End: begin.Add(8 * time.Second), DurationSeconds: 8, ManagedBy: "jobstream.dev/reconciler"}
}
