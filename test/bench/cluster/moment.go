package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jobstream/jobstream/test/bench/bulk"
	"github.com/jobstream/jobstream/test/bench/report"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// witness reads what the programs have used and done.
type witness struct {
	cluster *bulk.Cluster
	traffic *traffic
	paths   map[string]string // of the programs
}

// moment is all of that up to one moment.
type moment struct {
	at    time.Time
	usage map[string]report.Usage // by program
	// requests are those of all clients, by the API server's metric, and own those of jobstream's programs.
	requests     map[string]float64
	own          map[string]map[string]float64
	facts, turns float64
	streams      map[string]stream
}

// interval is what lies between two moments.
type interval struct{ from, to moment }

// begin lets jobstream's requests be counted from now on.
func (w *witness) begin(ctx context.Context) error {
	w.cluster.Proxy.Begin(w.traffic.see)
	for _, p := range append(append([]*harness.Process{}, w.cluster.Triggers...), w.cluster.Reconcilers...) {
		if err := harness.Ready(ctx, p); err != nil { // their connections were closed
			return err
		}
	}
	return nil
}

// during measures for a while. To read the API server's metrics costs it some time: that is before and after what counts.
func (w *witness) during(ctx context.Context, what string, d time.Duration) (i interval, err error) {
	if i.from, err = w.read(ctx); err != nil {
		return i, err
	}
	if i.from.usage, err = w.usage(); err != nil {
		return i, err
	}
	i.from.at = time.Now()
	if err := w.cluster.Pass(ctx, what, i.from.at.Add(d)); err != nil {
		return i, err
	}
	now := time.Now()
	usage, err := w.usage()
	if err != nil {
		return i, err
	}
	i.to, err = w.read(ctx)
	i.to.at, i.to.usage = now, usage
	return i, err
}

// read reads all but the usage.
func (w *witness) read(ctx context.Context) (m moment, err error) {
	m.own = w.traffic.now()
	if m.requests, _, err = report.Requests(ctx, w.cluster.Client); err != nil {
		return m, err
	}
	if m.facts, err = sum(ctx, w.cluster.Triggers[0], "jobstream_facts_published_total"); err != nil {
		return m, err
	}
	if m.turns, err = sum(ctx, w.cluster.Reconcilers[0], "jobstream_turns_total"); err != nil {
		return m, err
	}
	m.streams, err = readStreams(ctx, w.cluster.NATS)
	return m, err
}

// sum adds up a metric of a program.
func sum(ctx context.Context, p *harness.Process, metric string) (float64, error) {
	page, err := harness.Metrics(ctx, p)
	if err != nil {
		return 0, err
	}
	return report.Sum(page, metric)
}

// usage reads what the programs have used, from /proc.
func (w *witness) usage() (all map[string]report.Usage, err error) {
	all = map[string]report.Usage{}
	for name, path := range w.paths {
		u, usageErr := report.UsageOf(path)
		all[name], err = u, errors.Join(err, usageErr)
	}
	return all, err
}

// relists is how often the trigger has listed everything so far, by its log.
func (w *witness) relists() int {
	return strings.Count(w.cluster.Triggers[0].Printed(), "listed everything")
}

func (i interval) seconds() float64 { return i.to.at.Sub(i.from.at).Seconds() }

// cores is how many processors the program kept busy, on average.
func (i interval) cores(program string) float64 {
	return (i.to.usage[program].CPU - i.from.usage[program].CPU).Seconds() / i.seconds()
}

// facts and turns are how many a second.
func (i interval) facts() float64 { return (i.to.facts - i.from.facts) / i.seconds() }
func (i interval) turns() float64 { return (i.to.turns - i.from.turns) / i.seconds() }

// sent is how many of these requests the program has sent in a second; of all clients, if the name of the program is "".
func (i interval) sent(program, request string) float64 {
	from, to := i.from.own[program], i.to.own[program]
	if program == "" {
		from, to = i.from.requests, i.to.requests
	}
	return (to[request] - from[request]) / i.seconds()
}

// sentAll is how many requests of any kind the program has sent in a second.
func (i interval) sentAll(program string) (rate float64) {
	all := i.to.own[program]
	if program == "" {
		all = i.to.requests
	}
	for request := range all {
		if counted(request) {
			rate += i.sent(program, request)
		}
	}
	return rate
}

// grown is how many bytes a second the stream has become larger.
func (i interval) grown(stream string) float64 {
	return float64(i.to.streams[stream].bytes-i.from.streams[stream].bytes) / i.seconds()
}
