package main

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"time"

	"github.com/jobstream/jobstream/internal/dev/controlplane"
	"github.com/jobstream/jobstream/test/bench/bulk"
	"github.com/jobstream/jobstream/test/bench/report"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

const (
	// warm is how long the programs have after their start, and idle is how long they are measured then, without any load: long
	// enough for what each does a few times a minute.
	warm, idle = 20 * time.Second, time.Minute
	// calm is how long everything has to come to rest once all is there: the first Jobs of runs have been deleted by then, so
	// that as many go as come.
	calm = (ttl + 30) * time.Second
	// grace is how long a run that was due in the measured time may be late and still be counted.
	grace = 30 * time.Second
	// room is for the Pods of runs beside those that run all the time.
	room = 5000
)

// bench is one run of the program.
type bench struct {
	options
	part     model         // what is run
	daily    int           // runs of one ScheduledJob
	measured time.Duration // how long
}

// results are all that was measured.
type results struct {
	*bench
	empty, full interval // without load, and with it
	peak        map[string]report.Usage
	relists     int
	runs        punctuality
	wrong       error
}

// names are the programs that are measured, in the order of the tables: jobstream's first.
var names = []string{"trigger", "reconciler", "nats-server", "kube-apiserver", "etcd", "kube-controller-manager"}

// own are jobstream's programs that talk to the API server.
var own = names[:2]

// config is the system's. kube-controller-manager has those controllers that a finished Job needs to go away, and no Job controller;
// it has no limit of requests, so that what it does is not put off until after the measurement.
func (b *bench) config(dir string, programs harness.Programs) harness.Config {
	return harness.Config{
		Programs: programs, Dir: dir, Unaudited: true, HollowPods: b.part.pods() + room, Flags: []string{"--log-level=info"},
		Controllers:            []string{"serviceaccount-controller", "ttl-after-finished-controller", "garbage-collector-controller"},
		ControllerManagerFlags: []string{"--kube-api-qps=5000", "--kube-api-burst=5000"},
		Proxied:                true, // see traffic
	}
}

// measure runs a part of the model in a system of its own.
func (b *bench) measure(ctx context.Context, dir string, programs harness.Programs) (r *results, err error) {
	report.Say("starting everything")
	system, err := harness.StartSystem(ctx, b.config(dir, programs))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, system.Stop()) }()
	c, err := bulk.NewCluster(system)
	if err != nil {
		return nil, err
	}
	paths, err := pathsOf(system)
	if err != nil {
		return nil, err
	}
	w := &witness{cluster: c, traffic: &traffic{counts: map[string]map[string]float64{}}, paths: paths}
	if err := w.begin(ctx); err != nil {
		return nil, err
	}
	r = &results{bench: b}
	if r.empty, err = b.without(ctx, w); err != nil {
		return nil, err
	}
	return r, b.with(ctx, w, r)
}

// pathsOf are the programs that are measured, by name.
func pathsOf(s *harness.System) (map[string]string, error) {
	assets, err := controlplane.Assets()
	if err != nil {
		return nil, err
	}
	paths := map[string]string{"trigger": s.Triggers[0].Path, "reconciler": s.Reconcilers[0].Path, "nats-server": s.NATS.Path}
	for _, name := range names[len(paths):] {
		paths[name] = filepath.Join(assets, name)
	}
	return paths, nil
}

// without measures the system before there is any load: what the programs need in any cluster.
func (b *bench) without(ctx context.Context, w *witness) (interval, error) {
	if err := w.cluster.Pass(ctx, "warming up", time.Now().Add(warm)); err != nil {
		return interval{}, err
	}
	return w.during(ctx, "measuring without load", idle)
}

// with creates the load, waits for rest, and measures.
func (b *bench) with(ctx context.Context, w *witness, r *results) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	schedules, err := b.load(ctx, w.cluster)
	if err != nil {
		return err
	}
	seen := newRuns()
	if err := w.cluster.SeeJobs(ctx, "", seen.see); err != nil {
		return err
	}
	if err := w.cluster.Pass(ctx, "coming to rest", time.Now().Add(calm)); err != nil {
		return err
	}
	if r.peak, err = w.usage(); err != nil {
		return err
	}
	for _, name := range names {
		if err := report.ResetPeak(w.paths[name]); err != nil {
			return err
		}
	}
	before := w.relists()
	if r.full, err = w.during(ctx, "measuring", b.measured); err != nil {
		return err
	}
	r.relists = w.relists() - before
	if err := w.cluster.Pass(ctx, "late runs may come", time.Now().Add(grace)); err != nil {
		return err
	}
	due, err := dueRuns(b.schedule, slices.Values(schedules.UIDs()), r.full.from.at, r.full.to.at)
	if err != nil {
		return err
	}
	r.runs = seen.judge(due)
	r.wrong = errors.Join(r.runs.wrong(), b.verify(ctx, w.cluster))
	return nil
}
