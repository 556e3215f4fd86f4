package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/internal/dev/controlplane"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// Config is one run.
type Config struct {
	Seed   uint64
	Length time.Duration
	// Settle is how long everything may take to come to rest afterwards.
	Settle   time.Duration
	Programs harness.Programs
	// Dir is where all files go.
	Dir string
	// Say prints the progress.
	Say func(format string, args ...any)
}

const (
	// late is how long announcements may come after what they are about: a failed one is repeated within a minute.
	late = 4 * time.Minute
	// lookEvery is rare enough for lists of thousands of Pods.
	lookEvery = 2 * time.Second
)

// run holds the parts of a run.
type run struct {
	Config
	log          *slog.Logger
	system       *harness.System
	keeper       *keeper
	recorder     *recorder
	observations *observations
	user         *user
	storm        *storm
}

// Run starts everything, injects faults for so long, heals them, waits until everything has come to rest, and checks. Its error
// is about the run; what is wrong with jobstream is in the Result.
func Run(ctx context.Context, c Config) (result *Result, err error) {
	log, err := os.Create(filepath.Join(c.Dir, "chaos.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	r := &run{Config: c, log: slog.New(slog.NewTextHandler(log, nil))}
	r.system, err = harness.StartSystem(ctx, harness.Config{
		Programs: c.Programs, Dir: filepath.Join(c.Dir, "system"), Triggers: 2, Reconcilers: 3, Servers: 3, Nodes: 3, Linked: true,
		Flags: []string{"--nats-replicas=3"}, ReconcilerFlags: []string{"--pod-failure-backoff-base=1s", "--pod-failure-backoff-max=5s"},
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if result == nil || len(result.Wrong) > 0 {
			err = errors.Join(err, r.keepLogs())
		}
		err = errors.Join(err, r.system.Stop())
	}()
	file, err := os.Create(filepath.Join(c.Dir, "events.jsonl"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if err := r.prepare(ctx, file); err != nil {
		return nil, err
	}
	return r.live(ctx)
}

// prepare creates the observers and the workers.
func (r *run) prepare(ctx context.Context, events io.Writer) (err error) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := r.system.Client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return err
	}
	ledger := filepath.Join(r.Dir, "ledger")
	if err := os.WriteFile(ledger, nil, 0o600); err != nil {
		return err
	}
	if r.observations, err = observe(ctx, r.system.ControlPlane.EtcdURL(), controlplane.Below("pods", namespace)); err != nil {
		return err
	}
	r.keeper = newKeeper(r.system)
	if r.recorder, err = record(r.system.NATSURL(), events); err != nil {
		return err
	}
	if r.user, err = newUser(r.system, ledger, r.log); err != nil {
		return err
	}
	r.storm = newStorm(r.system, r.keeper, r.recorder, r.log)
	return nil
}

// live is the time of the faults, and what follows it.
func (r *run) live(ctx context.Context) (*Result, error) {
	watching, end := context.WithCancel(ctx)
	var watchers sync.WaitGroup
	defer watchers.Wait()
	defer end()
	watchers.Go(func() { r.observations.watch(watching) })
	watchers.Go(func() { r.recorder.run(watching) })
	watchers.Go(func() { r.keeper.run(watching) })

	began := time.Now()
	storming, calm := context.WithTimeout(ctx, r.Length)
	defer calm()
	var work sync.WaitGroup
	work.Go(func() { r.user.run(storming, DrawTasks(r.Seed, r.Length-5*time.Second)) })
	work.Go(func() { r.storm.run(storming, DrawFaults(r.Seed, r.Length)) })
	work.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	r.Say("%v of chaos are over; everything is healed and must come to rest", r.Length)
	if err := r.storm.deleteLost(ctx); err != nil {
		return nil, err
	}
	r.user.rest(ctx)
	healed := time.Now()
	w, wrong, err := r.settle(ctx)
	if err != nil {
		return nil, err
	}
	wrong = append(wrong, r.panics()...)
	result := r.result(w, wrong)
	result.Lasted, result.Settled = healed.Sub(began), time.Since(healed)
	if len(wrong) > 0 {
		return result, r.dump(w, wrong)
	}
	return result, nil
}

// settle waits until everything has come to rest, and returns what is wrong then.
func (r *run) settle(ctx context.Context) (w world, wrong findings, err error) {
	w, open, err := r.until(ctx, r.Settle, world.unfinished)
	if err != nil || len(open) > 0 {
		for i := range open {
			open[i] = "after " + r.Settle.String() + " without faults: " + open[i]
		}
		return w, append(open, r.check(w)...), err
	}
	return r.until(ctx, late, r.check)
}

// check examines the audit log, too.
func (r *run) check(w world) (wrong findings) {
	requests, err := r.system.Requests(namespace)
	if err != nil {
		wrong.add("the audit log: %v", err)
	}
	w.checkStripped(requests, &wrong)
	return append(wrong, w.check()...)
}

// until looks at the world until the question returns no findings, or the time is over.
func (r *run) until(ctx context.Context, within time.Duration, question func(world) findings) (w world, wrong findings, err error) {
	for deadline := time.Now().Add(within); ; {
		if w, err = r.look(ctx); err != nil {
			r.log.Warn("cannot look", "err", err)
		} else if wrong = question(w); len(wrong) == 0 {
			return w, nil, nil
		}
		if time.Now().After(deadline) || !pass(ctx, lookEvery) {
			return w, wrong, errors.Join(err, ctx.Err())
		}
	}
}

// look returns everything that the checker can know at this moment.
func (r *run) look(ctx context.Context) (world, error) {
	w, err := r.user.look(ctx)
	if err != nil {
		return w, err
	}
	var wrongs []error
	lives, gaps := r.observations.all()
	w.lives = lives
	w.wants, w.onces, wrongs = r.user.asked()
	for _, g := range gaps {
		wrongs = append(wrongs, errors.New(g))
	}
	events, garbage := r.recorder.all()
	w.events, w.deaf = events, r.recorder.isDeaf()
	for _, g := range garbage {
		wrongs = append(wrongs, errors.New("event: "+g))
	}
	r.storm.mu.Lock()
	wrongs = append(wrongs, r.storm.wrong...)
	r.storm.mu.Unlock()
	for _, e := range wrongs {
		w.problems.add("%v", e)
	}
	return w, nil
}

var panicked = regexp.MustCompile(`(?m)^(panic: .*|fatal error: .*|WARNING: DATA RACE)$`)

// panics looks for programs that have ended by a panic or a data race.
func (r *run) panics() (wrong findings) {
	for _, p := range append(append([]*harness.Process{}, r.system.Triggers...), r.system.Reconcilers...) {
		text, err := os.ReadFile(p.LogFile)
		if err != nil {
			wrong.add("%s: %v", p.Name, err)
		}
		for _, m := range panicked.FindAllString(string(text), 3) {
			wrong.add("%s: %s", p.Name, m)
		}
	}
	return wrong
}

// keepLogs copies the logs that are deleted with the control plane.
func (r *run) keepLogs() (err error) {
	for _, program := range []string{"kube-apiserver", "kube-controller-manager", "etcd"} {
		text, readErr := os.ReadFile(r.system.ControlPlane.LogFile(program))
		if readErr == nil {
			readErr = os.WriteFile(filepath.Join(r.Dir, program+".log"), text, 0o600)
		}
		if readErr != nil {
			err = errors.Join(err, fmt.Errorf("log of %s: %w", program, readErr))
		}
	}
	return err
}
