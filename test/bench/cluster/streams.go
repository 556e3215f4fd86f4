package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

// stream is how much a stream holds, and how much it may hold at most; 0 for no limit.
type stream struct {
	bytes, most int64
	age         time.Duration
}

// readStreams asks the NATS server for all streams. Their names are without the cluster's, which is the same in all of them.
func readStreams(ctx context.Context, server *harness.NATS) (map[string]stream, error) {
	conn, err := server.Dial("")
	if err != nil {
		return nil, fmt.Errorf("streams of the bus: %w", err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, err
	}
	all, list := map[string]stream{}, js.ListStreams(ctx)
	for info := range list.Info() {
		all[shortName(info.Config.Name)] = stream{bytes: int64(info.State.Bytes), most: max(0, info.Config.MaxBytes), age: info.Config.MaxAge} //nolint:gosec // it is no exabyte
	}
	return all, list.Err()
}

// shortName leaves out what the names of all streams have in common.
func shortName(name string) string {
	_, short, found := strings.Cut(name, harness.ClusterName+"_")
	if !found {
		return name
	}
	return short
}
