package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/jobstream/jobstream/bus"
	"github.com/jobstream/jobstream/bus/embedded"
	"github.com/jobstream/jobstream/test/bench/report"
)

// most measures how many facts a second 1, 2 and 4 reconcilers take in, each number with a bus of its own.
func (o options) most(ctx context.Context, dir string) error {
	rows := [][]string{{"reconcilers", "facts", "facts/s", "times one", "facts a turn", "missing", "applied twice"}}
	var one float64
	for _, count := range []int{1, 2, 4} {
		report.Say("%d facts at once, %d reconcilers", o.facts, count)
		r, err := o.takeIn(ctx, filepath.Join(dir, "most-"+strconv.Itoa(count)), count)
		if err != nil {
			return err
		}
		if one == 0 {
			one = r.rate
		}
		rows = append(rows, []string{strconv.Itoa(count), strconv.Itoa(o.facts), fmt.Sprintf("%.0f", r.rate), fmt.Sprintf("%.2f", r.rate/one),
			fmt.Sprintf("%.1f", r.folded), strconv.Itoa(r.missing), strconv.Itoa(r.twice)})
	}
	fmt.Printf("\nFacts about %d keys, published as fast as one process can, until all are in the keys' states.\n\n", o.keys)
	report.Table(rows)
	return nil
}

// taken is what one number of reconcilers took in.
type taken struct {
	rate, folded   float64 // facts a second, and facts a turn on average
	missing, twice int
}

func (o options) takeIn(ctx context.Context, dir string, count int) (r taken, err error) {
	server, err := embedded.Start(embedded.Config{StoreDir: dir, Port: -1})
	if err != nil {
		return r, err
	}
	defer server.Shutdown()
	f := &farm{options: o, url: server.URL(), log: dir + ".log", workers: map[string]*exec.Cmd{}}
	b, err := bus.Connect(ctx, bus.Config{URL: f.url, Cluster: clusterName, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return r, err
	}
	defer b.Close()
	defer func() { err = errors.Join(err, f.stopAll()) }()
	if err := f.start(count); err != nil {
		return r, err
	}
	sent := make([]int, o.keys)
	if err := errors.Join(f.send(ctx, b, sent, o.keys), rest(ctx, settling)); err != nil { // until each has its partitions
		return r, err
	}
	f.mu.Lock()
	before := f.turns
	f.mu.Unlock()
	began := time.Now()
	if err := f.send(ctx, b, sent, o.facts); err != nil {
		return r, err
	}
	if r.twice, r.missing, err = f.check(ctx, b, sent); err != nil { // waits until none is missing
		return r, err
	}
	f.mu.Lock()
	r.rate, r.folded = float64(o.facts)/time.Since(began).Seconds(), float64(o.facts)/float64(f.turns-before)
	f.mu.Unlock()
	return r, nil
}

// send publishes so many more facts and waits until the bus has stored them.
func (f *farm) send(ctx context.Context, b *bus.Bus, sent []int, n int) error {
	for i := range n {
		k := i % f.keys
		sent[k]++
		if err := b.Publish(ctx, observation(k, sent[k])); err != nil {
			return err
		}
	}
	return b.Flush(ctx)
}
