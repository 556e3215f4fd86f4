package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/engine"
)

func TestPublishWaitsForRoomAndHonoursItsContext(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := connect(t, s)
	s.Shutdown()
	until(t, "the bus is lost", func() bool { return b.Ready() != nil })
	for n := range outstanding {
		if err := b.Publish(t.Context(), observation(keyOf(uid(1)), uint64(n))); err != nil {
			t.Fatalf("fact %d: %v", n, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := b.Publish(ctx, observation(keyOf(uid(1)), outstanding)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("one too many: %v", err)
	}
	if err := b.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("flush: %v", err)
	}
}

// A bus that is away too long loses facts; Flush and Publish return that as errors, and Losses signals it once the bus is back.
func TestPublishTimesOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serveIn(t, dir, freePort(t))
	port := portOf(t, s)
	b := connect(t, s)
	b.pub.publishTimeout = 200 * time.Millisecond
	s.Shutdown()
	key := keyOf(uid(1))
	if err := b.Publish(t.Context(), observation(key, 1)); err != nil {
		t.Fatal(err)
	}
	if err := b.Flush(t.Context()); err == nil || !strings.Contains(err.Error(), observation(key, 1).ID()) {
		t.Errorf("flush: %v", err)
	}
	if err := b.Publish(t.Context(), observation(key, 2)); err == nil || !strings.Contains(err.Error(), "dropped") {
		t.Errorf("published on a lost bus: %v", err)
	}
	if losses(b) != 0 {
		t.Error("the loss was signalled while there was no server to publish a list to")
	}
	serveIn(t, dir, port)
	signalled(t, b)
	publish(t, b, observation(key, 3))
	e := listen(t, b, allPartitions(), nil)
	until(t, "the third is received", func() bool { return len(e.versions(key)) > 0 })
	if got := e.versions(key); got[0] != 3 {
		t.Errorf("received %v", got)
	}
}

func TestFactsThatCanNeverBeSent(t *testing.T) {
	t.Parallel()
	b := connect(t, serve(t))
	huge := events.Fact{Cluster: "test", Key: keyOf(uid(1)), Event: events.EffectRefused{Effect: "CreatePod", Message: strings.Repeat("x", 9<<20)}}
	if err := b.Publish(t.Context(), huge); err == nil || !strings.Contains(err.Error(), "max_payload") {
		t.Errorf("9 MiB: %v", err)
	}
	huge.Event = events.EffectRefused{Effect: "CreatePod", Message: strings.Repeat("x", 7<<20)}
	e := listen(t, b, allPartitions(), nil)
	publish(t, b, huge)
	until(t, "7 MiB are received", func() bool { return e.count(nil) == 1 })
	if losses(b) != 0 {
		t.Error("a fact that its publisher knows cannot be sent is no loss")
	}
}

// Facts that were evicted while all reconcilers were down are a loss, and it is signalled when they are back.
func TestEvictedFactsAreALoss(t *testing.T) {
	t.Parallel()
	b := connect(t, serve(t), func(c *Config) { c.MaxFactsBytes = 64 << 10 })
	key := keyOf(uid(1))
	e := listen(t, b, allPartitions(), nil)
	publish(t, b, observation(key, 1))
	until(t, "the first is received", func() bool { return e.count(nil) == 1 })
	ctx := t.Context()
	if b.top.evicted(ctx, false) {
		t.Fatal("behind in quiet times")
	}
	e.end(t)
	for v := range 1000 {
		if err := b.Publish(ctx, observation(key, uint64(v+2))); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	behind := b.top.evicted(ctx, false)
	if !behind {
		t.Fatal("a thousand facts in 64 KiB, and none was evicted")
	}
	if behind = b.top.evicted(ctx, behind); !behind || losses(b) != 0 {
		t.Error("the loss was signalled while no reconciler listened")
	}
	back := listen(t, b, allPartitions(), nil)
	until(t, "the newest is received", func() bool {
		return back.count(func(d engine.Delivery) bool { return versionOf(d.Event()) == 1001 }) == 1
	})
	until(t, "no consumer is behind", func() bool { behind = b.top.evicted(ctx, behind); return !behind })
	signalled(t, b)
}

// TestASnapshotThatIsTooLargeArrivesInParts: the snapshot of a Job that keeps 10,000 failed Pods, with readiness gates that have long
// names, fits into no single message. More Pods with less in each would be the same to the bus, and take the race detector longer.
func TestASnapshotThatIsTooLargeArrivesInParts(t *testing.T) {
	t.Parallel()
	const pods = 10_000
	b, key := connect(t, serve(t), patient), keyOf(uid(1))
	gates := []events.PodCondition{{Type: corev1.PodConditionType(strings.Repeat("a.", 120) + "example.com/first"), Status: "False"},
		{Type: corev1.PodConditionType(strings.Repeat("b.", 120) + "example.com/second"), Status: "False"}}
	list := events.JobListed{ID: "relist/7/9", Name: "pi", Job: &events.Job{Namespace: key.Namespace, Name: "pi", UID: key.UID}, JobsVersion: 7, Version: 9}
	for i := range pods {
		list.Pods = append(list.Pods, events.Pod{Name: fmt.Sprintf(strings.Repeat("a-job-with-a-name-of-its-own-", 8)+"%05d", i), UID: types.UID(uid(i)), Version: 5, Owner: "a-job-with-a-name-of-its-own",
			Serial: i, Phase: events.Failed, Scheduled: true, Created: time.Unix(1_700_000_000, 0).UTC(), Finished: time.Unix(1_700_000_060, 0).UTC(),
			Exits: []events.Exit{{Container: strings.Repeat("main-", 12) + "ma", Code: 1}}, Conditions: gates})
	}
	fact := func(e events.Event) events.Fact { return events.Fact{Cluster: "test", Key: key, Event: e} }
	var permanent interface{ Permanent() bool }
	if err := b.Publish(t.Context(), fact(list)); !errors.As(err, &permanent) || !permanent.Permanent() {
		t.Errorf("the whole snapshot: %v", err)
	}
	e := listen(t, b, allPartitions(), nil)
	parts := list.Split(events.SnapshotPart)
	for _, p := range parts {
		publish(t, b, fact(p), fact(p)) // like two triggers that list the same Job
	}
	listed, stored, looked := map[types.UID]bool{}, map[uint64]bool{}, 0 // a busy server delivers a message twice
	until(t, "all Pods are listed", func() bool {
		all := e.all()
		for _, d := range all[looked:] { // to decode all of them each time would make it busier
			for _, p := range d.Event().(events.JobPartListed).Pods {
				listed[p.UID] = true
			}
			meta, err := d.(*delivery).msg.Metadata()
			if err != nil {
				t.Fatal(err)
			}
			stored[meta.Sequence.Stream] = true
		}
		looked = len(all)
		return len(listed) == pods
	})
	if len(stored) != len(parts) || len(parts) < 2 {
		t.Errorf("%d messages are stored, sent %d Pods in %d parts", len(stored), pods, len(parts))
	}
}
