package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/bus"
	"github.com/jobstream/jobstream/bus/embedded"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/test/bench/report"
)

// settling is how long after a change the shares are not counted yet; pauses are counted from the change on.
const settling = 4 * time.Second

// done is a fact that a worker has acknowledged.
type done struct {
	worker, key     string
	number          int
	published, when time.Time
}

// farm has the workers and what they did.
type farm struct {
	options
	url, log string
	mu       sync.Mutex
	done     []done
	turns    int
	workers  map[string]*exec.Cmd
	made     int
	readers  sync.WaitGroup
}

// share measures how partitions are shared while workers come and go.
func (o options) share(ctx context.Context, dir string) (err error) {
	server, err := embedded.Start(embedded.Config{StoreDir: filepath.Join(dir, "nats"), Port: -1})
	if err != nil {
		return err
	}
	defer server.Shutdown()
	f := &farm{options: o, url: server.URL(), log: filepath.Join(dir, "workers.log"), workers: map[string]*exec.Cmd{}}
	b, err := bus.Connect(ctx, bus.Config{URL: f.url, Cluster: clusterName, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer b.Close()
	defer func() { err = errors.Join(err, f.stopAll()) }()
	if err := f.start(1); err != nil {
		return err
	}
	report.Say("facts: %d a second about %d keys", o.rate, o.keys)
	flow, end := context.WithCancel(ctx)
	defer end()
	var published []int
	var failed error
	var publishing sync.WaitGroup
	publishing.Go(func() { published, failed = f.publish(flow, b) })
	rows, err := f.phases(ctx)
	end()
	publishing.Wait()
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	twice, missing, err := f.check(ctx, b, published)
	if err != nil {
		return err
	}
	fmt.Printf("\n%d facts a second about %d keys. Share: of the least and the most busy reconciler, as part of an even share. Pause: from the publication of a fact to its acknowledgement.\n\n", o.rate, o.keys)
	report.Table(rows)
	sum := 0
	for _, n := range published {
		sum += n
	}
	fmt.Printf("\n%d facts published, %d missing in a state, %d applied twice.\n", sum, missing, twice)
	return nil
}

// phases goes 1, 3, 2, 1 and returns a row for each.
func (f *farm) phases(ctx context.Context) (rows [][]string, err error) {
	rows = [][]string{{"reconcilers", "change", "least", "most", "p50", "p99", "longest pause", "done again"}}
	for _, p := range []struct {
		count  int
		change string
		act    func() error
	}{
		{1, "", func() error { return nil }},
		{3, "two join", func() error { return f.start(2) }},
		{2, "one leaves", func() error { return f.end(syscall.SIGTERM) }},
		{1, "one is killed", func() error { return f.end(syscall.SIGKILL) }},
	} {
		report.Say("%d reconcilers: %s", p.count, p.change)
		if rows == nil {
			return nil, nil
		}
		if p.change == "" {
			if err := rest(ctx, settling); err != nil {
				return nil, err
			}
		}
		began := time.Now()
		if err := p.act(); err != nil {
			return nil, err
		}
		if err := rest(ctx, settling+f.window); err != nil {
			return nil, err
		}
		rows = append(rows, f.row(p.count, p.change, began, time.Now()))
	}
	return rows, nil
}

func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// row sums up the facts published since the change.
func (f *farm) row(count int, change string, began, ended time.Time) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	shares := map[string]int{}
	type fact struct {
		key    string
		number int
	}
	first := map[fact]bool{}
	var pauses []time.Duration
	sum, again := 0, 0
	for _, d := range f.done {
		if d.published.Before(began) || d.published.After(ended.Add(-time.Second)) {
			continue
		}
		if first[fact{d.key, d.number}] {
			again++
			continue
		}
		first[fact{d.key, d.number}] = true
		pauses = append(pauses, d.when.Sub(d.published))
		if d.published.After(began.Add(settling)) {
			shares[d.worker]++
			sum++
		}
	}
	report.Sort(pauses)
	least, most := sum, 0
	for _, n := range shares {
		least, most = min(least, n), max(most, n)
	}
	part := func(n int) string { return fmt.Sprintf("%.0f %%", 100*float64(n)*float64(count)/float64(max(1, sum))) }
	if len(shares) < count {
		least = 0
	}
	return []string{strconv.Itoa(count), change, part(least), part(most), millis(report.Quantile(pauses, 50)), millis(report.Quantile(pauses, 99)),
		millis(report.Quantile(pauses, 100)), strconv.Itoa(again)}
}

func millis(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }

// publish sends facts at the rate until ctx ends, and returns how many there are of each key.
func (f *farm) publish(ctx context.Context, b *bus.Bus) (sent []int, err error) {
	sent = make([]int, f.keys)
	life := context.WithoutCancel(ctx)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	began := time.Now()
	for n := 0; ; {
		select {
		case <-ctx.Done():
			return sent, b.Flush(life)
		case <-tick.C:
		}
		for due := int(time.Since(began).Seconds() * float64(f.rate)); n < due; n++ {
			k := n % f.keys
			sent[k]++
			if err := b.Publish(life, observation(k, sent[k])); err != nil {
				return sent, err
			}
		}
	}
}

// observation is a fact about the key, the number-th one, from now.
func observation(k, number int) events.Fact {
	return events.Fact{Cluster: clusterName, Key: keyOf(k), Event: events.PodObserved{Pod: events.Pod{
		Name: "p", UID: keyOf(k).UID, Version: uint64(number), Created: time.Now()}}}
}

func keyOf(k int) events.Key {
	return events.Key{Function: function, Namespace: "bench", UID: types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012x", uint32(k)*2654435761, k))}
}

// check reads every state until all published facts are in it, for at most a minute.
func (f *farm) check(ctx context.Context, b *bus.Bus, published []int) (twice, missing int, err error) {
	store, err := b.Store(function)
	if err != nil {
		return 0, 0, err
	}
	for deadline := time.Now().Add(time.Minute); ; {
		twice, missing = 0, 0
		for k, n := range published {
			data, _, err := store.Load(ctx, keyOf(k))
			if err != nil {
				return 0, 0, err
			}
			seen, applied, err := read(data)
			if err != nil {
				return 0, 0, err
			}
			missing += n - seen
			twice += applied - seen
		}
		if missing == 0 || time.Now().After(deadline) {
			return twice, missing, nil
		}
		if err := rest(ctx, 100*time.Millisecond); err != nil {
			return 0, 0, err
		}
	}
}

// start starts workers.
func (f *farm) start(count int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for range count {
		f.made++
		name := "worker-" + strconv.Itoa(f.made)
		log, err := os.OpenFile(f.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		c := exec.Command(self, "-worker="+f.url)
		c.Stderr = log
		out, err := c.StdoutPipe()
		if err == nil {
			err = c.Start()
		}
		if err = errors.Join(err, log.Close()); err != nil {
			return err
		}
		f.workers[name] = c
		f.readers.Go(func() { f.read(name, out) })
	}
	return nil
}

// read records the worker's output.
func (f *farm) read(name string, out io.Reader) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == "turn" {
			f.mu.Lock()
			f.turns++
			f.mu.Unlock()
			continue
		}
		d := done{worker: name}
		var published, when int64
		if _, err := fmt.Sscanf(lines.Text(), "done %s %d %d %d", &d.key, &d.number, &published, &when); err != nil {
			continue // the last line of one that was killed
		}
		d.published, d.when = time.Unix(0, published), time.Unix(0, when)
		f.mu.Lock()
		f.done = append(f.done, d)
		f.mu.Unlock()
	}
}

// end signals the oldest worker but the last.
func (f *farm) end(signal syscall.Signal) error {
	for n := 1; n <= f.made; n++ {
		name := "worker-" + strconv.Itoa(n)
		if c := f.workers[name]; c != nil {
			delete(f.workers, name)
			if err := c.Process.Signal(signal); err != nil {
				return err
			}
			go func() { _ = c.Wait() }() // it was told to end by the signal
			return nil
		}
	}
	return errors.New("no worker is left")
}

func (f *farm) stopAll() (err error) {
	for len(f.workers) > 0 {
		err = errors.Join(err, f.end(syscall.SIGKILL))
	}
	f.readers.Wait()
	return err
}
