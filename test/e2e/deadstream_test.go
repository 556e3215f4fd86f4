package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

// While a foreign stream has the subjects of public events, Jobs run to their end, also under a reconciler that has started
// meanwhile. When the subjects are free again, pending events are announced. A subscriber that never acknowledges changes
// nothing.
func TestJobsRunOnWithoutEventsStream(t *testing.T) {
	t.Parallel()
	const jobs = 5
	s := own(t, harness.Config{})
	p, js := s.Space(t), connectNATS(t, s)
	truth := watchTruth(p)
	harness.Until(t, timeout, "a foreign stream to have the subjects", func(context.Context) error { // jobstream recreates its own at once, if it can
		if err := js.DeleteStream(t.Context(), eventsStream); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return harness.Stop(err)
		}
		_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "taken", Subjects: []string{"jobstream.events.>"}})
		return err
	})
	run := func(name string) {
		for i := range jobs {
			p.Apply(harness.Shell(fmt.Sprintf("%s-%d", name, i), "true", harness.Size(2, 2, 0)))
		}
		for i := range jobs {
			p.AwaitEnd(fmt.Sprintf("%s-%d", name, i), batchv1.JobComplete, timeout)
		}
	}
	run("before")
	if err := s.Reconcilers[0].Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.Reconcilers[0].Start(); err != nil {
		t.Fatal(err)
	}
	run("after")
	if err := js.DeleteStream(t.Context(), "taken"); err != nil {
		t.Fatal(err)
	}
	harness.Until(t, timeout, "the stream to exist again", func(ctx context.Context) error {
		s, err := js.Stream(ctx, eventsStream)
		if err != nil {
			return err
		}
		c, err := s.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{Durable: "stuck", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 1})
		if err != nil {
			return err
		}
		_, err = c.Next() // and never acknowledges
		return err
	})
	hearsAll(t, truth, p.Subscribe())
	run("beside-the-stuck-one")
	t.Logf("%d Jobs ended; %d starts and ends are announced", 3*jobs, len(truth.all()))
}
