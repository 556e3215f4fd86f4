// Command scale measures the gain of more reconcilers, and the cost of one that joins or leaves. It prints tables to paste into
// docs/performance.md:
//
//	make bench-scale
//
// Three questions, three parts:
//
//	share.go    2,000 facts a second while reconcilers join, leave and are killed: who gets how much, who waits how long,
//	            is anything applied twice or not at all. The function under test only counts, so the partitions are all that
//	            is measured; the bus, the engine and the keeper of partitions are the real ones.
//	most.go     how many facts a second can 1, 2 and 4 take in?
//	worker.go   the processes that serve the partitions in both: this command again
//	hold.go     real reconcilers, a far away API server and few requests at a time: are four as good as four?
//	traffic.go  what they ask of it there
//
// Tables go to stdout, progress to stderr. Nothing stays behind, however it ends.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jobstream/jobstream/test/bench/report"
)

// options are the flags.
type options struct {
	rate, keys int
	facts      int
	window     time.Duration
	jobs, pods int
	latency    time.Duration
	requests   int
}

func main() {
	o := options{}
	flag.IntVar(&o.rate, "rate", 2000, "facts per second; 0 leaves this part out")
	flag.IntVar(&o.keys, "keys", 700, "keys that they are about")
	flag.IntVar(&o.facts, "facts", 50_000, "facts that are published at once; 0 leaves this part out")
	flag.DurationVar(&o.window, "window", 10*time.Second, "how long each number of reconcilers is measured")
	flag.IntVar(&o.jobs, "jobs", 600, "Jobs that are begun over a slow connection to the API server; 0 leaves this part out")
	flag.IntVar(&o.pods, "pods", 10, "Pods of each")
	flag.DurationVar(&o.latency, "latency", 20*time.Millisecond, "what is added to every request of a reconciler")
	flag.IntVar(&o.requests, "requests", 1, "how many requests of a reconciler may be under way")
	worker := flag.String("worker", "", "internal: serve partitions over the bus at this URL")
	flag.Parse()
	if *worker != "" {
		work(*worker)
		return
	}
	report.Main("scale", o.run)
}

func (o options) run(ctx context.Context, dir string) error {
	if o.rate > 0 {
		if err := o.share(ctx, dir); err != nil {
			return err
		}
	}
	if o.facts > 0 {
		if err := o.most(ctx, dir); err != nil {
			return err
		}
	}
	if o.jobs > 0 {
		if err := o.hold(ctx, dir); err != nil {
			return err
		}
	}
	return nil
}

// work is one reconciler.
func work(url string) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := serve(ctx, url)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-scale:", err)
		os.Exit(1)
	}
}
