package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/internal/testvolume"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// The disk of the NATS server is really full while Jobs of two namespaces run. Trigger and reconciler log the cause and the
// remedy, once, and are not ready; no Job fails and no Pod is created twice. Room alone does not help, as they log; room and a
// restart of the NATS server do, and neither program needs a restart. Then all counts are exact.
func TestFullDiskOfTheBusIsNamedAndCostsNothing(t *testing.T) {
	t.Parallel()
	const jobs, completions = 6, 2
	volume := testvolume.New(t, 16<<20)
	s := own(t, harness.Config{Disk: volume.Dir})
	spaces, ledger := []*harness.Space{s.Space(t), s.Space(t)}, harness.NewLedger(t)
	apply := func(kind string) {
		for _, p := range spaces {
			for n := range jobs {
				p.Apply(harness.Shell(fmt.Sprint(kind, n), ledger.Script("0", ""), harness.Size(completions, 2, 0), deadline))
			}
		}
	}
	apply("before-") // each stream has data now
	for _, p := range spaces {
		for n := range jobs {
			p.AwaitEnd(fmt.Sprint("before-", n), batchv1.JobComplete, time.Minute)
		}
	}

	// What the reconciler will find when it starts on a full disk.
	if err := s.Reconcilers[0].Kill(); err != nil {
		t.Fatal(err)
	}
	stored := facts(t, s)
	apply("waiting-")
	harness.Until(t, time.Minute, "the facts of all Jobs to be stored", func(context.Context) error {
		if n := facts(t, s) - stored; n < uint64(len(spaces)*jobs) {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	volume.Fill(t)
	if err := s.Reconcilers[0].Start(); err != nil {
		t.Fatal(err)
	}
	apply("during-")
	programs := append(slices.Clone(s.Triggers), s.Reconcilers...)
	silent := map[*harness.Process]bool{}
	for _, p := range programs {
		if awaitFull(t, p) {
			silent[p] = true
		}
	}
	if log := s.NATS.Printed(); !strings.Contains(log, "no space left on device") {
		t.Fatalf("the disk is not full: this test would prove nothing:\n%s", harness.Tail(log, 10))
	}

	volume.Free(t)
	harness.Holds(t, threeAttempts, "room alone not to help", func(ctx context.Context) error {
		for _, p := range programs {
			if err := harness.Readiness(ctx, p); err == nil {
				return errors.New(p.Name + " is ready")
			}
		}
		return nil
	})

	switch err := s.NATS.Stop(); {
	case err != nil && len(silent) == 0:
		t.Fatal(err)
	case err != nil:
		t.Logf("a server that answers nothing has to be killed, as the kubelet does: %v", err)
	}
	if err := s.NATS.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	apply("after-")
	total := 0
	for _, p := range spaces {
		for _, kind := range []string{"before-", "waiting-", "during-", "after-"} {
			for n := range jobs {
				end := p.AwaitEnd(fmt.Sprint(kind, n), batchv1.JobComplete, 2*time.Minute)
				if total += completions; end.Status.Succeeded != completions || end.Status.Failed != 0 {
					t.Errorf("%s: %s", end.Name, harness.Brief(end.Status))
				}
			}
		}
		awaitHeldNone(t, p)
		requests, err := s.Requests(p.Namespace)
		if err != nil {
			t.Fatal(err)
		}
		if n := harness.Count(requests, harness.PodCreation); n != 4*jobs*completions {
			t.Errorf("%d creations of Pods were requested, want %d", n, 4*jobs*completions)
		}
	}
	if sum := ledger.Read(t); sum.Succeeded != total || len(sum.Codes) != total {
		t.Errorf("%d Pods have run, of which %d have succeeded: want %d", len(sum.Codes), sum.Succeeded, total)
	}
	for _, p := range programs {
		toldOnce(t, p, silent[p])
	}
}

// threeAttempts is how long it takes a program to learn three times that its writes are not confirmed.
const threeAttempts = 16 * time.Second

// deadline makes a Job set a timer.
func deadline(s *batchv1.JobSpec) { s.ActiveDeadlineSeconds = ptr.To[int64](3600) }

// facts returns the last sequence of the stream of facts.
func facts(t *testing.T, s *harness.System) uint64 {
	t.Helper()
	nc, err := s.NATS.Dial("")
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(timeout))
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), "jobstream_"+harness.ClusterName+"_facts")
	if err != nil {
		t.Fatal(err)
	}
	return stream.CachedInfo().State.LastSeq
}

// awaitFull waits until the program is not ready, and has logged the remedy. A server with a full disk mostly answers, and confirms
// nothing that is written. If a write to its own records of streams and consumers was the one that failed, it answers no request
// about streams either: then awaitFull reports that it was silent.
func awaitFull(t *testing.T, p *harness.Process) (silent bool) {
	t.Helper()
	confirmsNothing := []string{"confirms nothing", "make room on the server's disk", "restart the server"}
	answersNothing := []string{"context deadline exceeded", "has the server run out of disk", "must be restarted"}
	harness.Until(t, time.Minute, p.Name+" to name the full disk", func(ctx context.Context) error {
		err := harness.Readiness(ctx, p)
		if err == nil {
			return errors.New("it is ready")
		}
		silent = hasAll(err.Error(), answersNothing)
		if !silent && !hasAll(err.Error(), confirmsNothing) {
			return fmt.Errorf("it says: %w", err)
		}
		return nil
	})
	logged := slices.Concat(confirmsNothing, []string{"NATS keeps jobstream from its work", "remedy="})
	if silent {
		t.Logf("the server does not even answer %s", p.Name)
		logged = slices.Concat(answersNothing, []string{"streams do not stand"})
	}
	harness.Until(t, time.Minute, p.Name+" to log that the disk is full", func(context.Context) error {
		if log := p.Printed(); !hasAll(log, logged) {
			return fmt.Errorf("the log does not have %q:\n%s", logged, harness.Tail(log, 20))
		}
		return nil
	})
	return silent
}

// toldOnce checks a program that has met the full disk and works again: it has logged each cause in one line for each stream,
// and has not restarted. A silent server may have left it without a write that could fail.
func toldOnce(t *testing.T, p *harness.Process, silent bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := harness.Ready(ctx, p); err != nil {
		t.Error(err)
	}
	var begun, over []string
	for line := range strings.Lines(p.Printed()) {
		switch {
		case strings.Contains(line, `msg="NATS keeps jobstream from its work"`):
			_, cause, _ := strings.Cut(line, "cause=")
			begun = append(begun, cause)
		case strings.Contains(line, `msg="NATS lets jobstream work again"`):
			over = append(over, line)
		}
	}
	t.Logf("%s:\n%s%s", p.Name, strings.Join(begun, ""), strings.Join(over, ""))
	slices.Sort(begun)
	if n := len(slices.Compact(slices.Clone(begun))); len(begun) == 0 && !silent || n != len(begun) || len(over) != n {
		t.Errorf("%s has logged %d causes in %d lines, and the end of a cause %d times", p.Name, n, len(begun), len(over))
	}
}
