package act

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/internal/cluster"
)

func cached(uid types.UID, version int) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: uid, Name: "job-" + string(uid), ResourceVersion: strconv.Itoa(version)}}
}

// roomFor is the limit of a cache for that many of these.
func roomFor(jobs int) int { return jobs * weigh(cached("a", 1)) }

func anything(*batchv1.Job) bool { return true }

func TestJobCache(t *testing.T) {
	now := time.Unix(0, 0)
	c := newJobCache(roomFor(2), func() time.Time { return now })
	fetched := 0
	load := func(uid types.UID, answer *batchv1.Job, fails error) (*batchv1.Job, error) {
		return c.load(t.Context(), cluster.Identity{UID: uid}, anything, func(context.Context) (*batchv1.Job, error) { fetched++; return answer, fails })
	}
	if j, err := load("a", cached("a", 5), nil); err != nil || j.ResourceVersion != "5" || fetched != 1 {
		t.Fatalf("%v %v, %d reads", j, err, fetched)
	}
	if j, err := load("a", nil, nil); err != nil || j.ResourceVersion != "5" || fetched != 1 {
		t.Errorf("not remembered: %v %v, %d reads", j, err, fetched)
	}
	c.saw(cached("a", 4))
	if c.at(cluster.Identity{UID: "a"}, 4) != nil || c.at(cluster.Identity{UID: "a"}, 5) == nil {
		t.Error("an older observation replaced a newer one")
	}
	c.saw(cached("a", 6))
	if c.at(cluster.Identity{UID: "a"}, 5) != nil || c.at(cluster.Identity{UID: "a"}, 6) == nil {
		t.Error("a newer observation did not replace an older one")
	}
	now = now.Add(maxJobAge)
	if j, err := load("a", cached("a", 7), nil); err != nil || j.ResourceVersion != "7" || fetched != 2 {
		t.Errorf("used for too long: %v %v, %d reads", j, err, fetched)
	}
	now = now.Add(maxJobAge)
	if _, err := load("a", cached("a", 7), nil); err != nil || fetched != 3 {
		t.Errorf("%v, %d reads", err, fetched)
	}
	if _, err := load("a", nil, nil); err != nil || fetched != 3 {
		t.Errorf("read again although it has just been found unchanged: %v, %d reads", err, fetched)
	}
	if known, unknown := c.name(cluster.Identity{UID: "a"}), c.name(cluster.Identity{UID: "b"}); known != "job-a" || unknown != "" {
		t.Errorf("names %q and %q", known, unknown)
	}
	now = now.Add(maxJobAge)
	if j, err := load("a", nil, errors.New("away")); err == nil {
		t.Errorf("%v instead of an error", j)
	}
	if j, err := load("a", nil, nil); j != nil || err != nil || c.at(cluster.Identity{UID: "a"}, 7) != nil {
		t.Errorf("a Job that is gone is remembered: %v %v", j, err)
	}
	for _, uid := range []types.UID{"x", "y", "z"} {
		c.saw(cached(uid, 1))
	}
	if c.at(cluster.Identity{UID: "x"}, 1) != nil || c.at(cluster.Identity{UID: "y"}, 1) == nil || c.at(cluster.Identity{UID: "z"}, 1) == nil {
		t.Error("it does not forget the oldest")
	}
	if c.at(cluster.Identity{UID: "unknown"}, 1) != nil || len(c.shelves.byNamespace) != 1 || c.shelves.weight != roomFor(2) {
		t.Error("a question made it forget")
	}
}

// TestLateAnswerDoesNotReplaceANewerOne, though its entry was removed and made again meanwhile.
func TestLateAnswerDoesNotReplaceANewerOne(t *testing.T) {
	c := newJobCache(roomFor(1), time.Now)
	a := cluster.Identity{UID: "a"}
	waits := c.entry(a)
	late, err := c.load(t.Context(), a, anything, func(context.Context) (*batchv1.Job, error) {
		c.saw(cached("b", 1))
		c.saw(cached("a", 6))
		c.own(a)
		return cached("a", 5), nil
	})
	if err != nil || late.ResourceVersion != "5" || c.at(a, 6) == nil {
		t.Errorf("%v %v, and %v is cached", late, err, c.peek(a))
	}
	if j, _ := c.get(waits); j != c.at(a, 6) {
		t.Errorf("a worker that waits gets %v", j)
	}
	if !c.owned(a) {
		t.Error("it forgot that the field ownership cannot be reset")
	}
}

// TestLateAnswerDoesNotBringBackWhatIsGone: another worker has found that the Job does not exist.
func TestLateAnswerDoesNotBringBackWhatIsGone(t *testing.T) {
	c, a := newJobCache(defaultCacheBytes, time.Now), cluster.Identity{UID: "a"}
	c.saw(cached("a", 4))
	waits := c.entry(a)
	newer := func(j *batchv1.Job) bool { return j.ResourceVersion != "4" }
	if _, err := c.load(t.Context(), a, newer, func(context.Context) (*batchv1.Job, error) { c.forget(a); return cached("a", 5), nil }); err != nil {
		t.Error(err)
	}
	if j, _ := c.get(waits); j != nil || c.peek(a) != nil {
		t.Errorf("%v is cached, and a worker that waits gets %v", c.peek(a), j)
	}
}

// TestIdleNamespacesMakeRoom for one that has much to do: the Jobs that have ended there are never used again.
func TestIdleNamespacesMakeRoom(t *testing.T) {
	now := time.Unix(0, 0)
	c, reads := newJobCache(roomFor(2000), func() time.Time { return now }), 0
	use := func(namespace string, n int) {
		j := cached(types.UID(strconv.Itoa(n)), 1)
		j.Namespace = namespace
		if _, err := c.load(t.Context(), cluster.IdentityOf(j), anything, func(context.Context) (*batchv1.Job, error) { reads++; return j, nil }); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 9000 {
		use(fmt.Sprint("idle-", i%300), i)
	}
	now, reads = now.Add(idleTime), 0
	for range 3 {
		for i := range 1000 {
			use("busy", i)
		}
	}
	if reads != 1000 {
		t.Errorf("%d reads of 1,000 Jobs", reads)
	}
}

// TestLargeJobsCostOthersNoReads: a namespace that fills the cache with large Jobs has its own read again, and no other's.
func TestLargeJobsCostOthersNoReads(t *testing.T) {
	c := newJobCache(defaultCacheBytes, time.Now)
	read, little, much := map[string]int{}, strings.Repeat("x", 100), strings.Repeat("x", 1<<20)
	use := func(namespace string, n int, text string) {
		j := cached(types.UID(strconv.Itoa(n)), 1)
		j.Namespace, j.Annotations = namespace, map[string]string{"text": text}
		if _, err := c.load(t.Context(), cluster.IdentityOf(j), anything, func(context.Context) (*batchv1.Job, error) { read[namespace]++; return j, nil }); err != nil {
			t.Fatal(err)
		}
		if c.shelves.weight > defaultCacheBytes {
			t.Fatalf("the cache takes %d bytes, at most %d", c.shelves.weight, defaultCacheBytes)
		}
	}
	const rounds, large, small = 3, 100, 1000
	for range rounds {
		for i := range small {
			use("modest", i, little)
			use("greedy", i%large, much)
		}
	}
	if read["modest"] != small || read["greedy"] != rounds*small {
		t.Errorf("%d reads of %d small Jobs, %d of %d large ones", read["modest"], small, read["greedy"], large)
	}
}

// TestOneReadServesAllThatWait: the creations that wait for one read of a Job get it, though there is no room for it.
func TestOneReadServesAllThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, answer, reads := newJobCache(slot, time.Now), make(chan *batchv1.Job), 0
		var waiting sync.WaitGroup
		for range 500 {
			waiting.Go(func() {
				if j, err := c.load(t.Context(), cluster.Identity{UID: "a"}, anything, func(context.Context) (*batchv1.Job, error) { reads++; return <-answer, nil }); j == nil || err != nil {
					t.Errorf("%v %v", j, err)
				}
			})
		}
		synctest.Wait()
		answer <- cached("a", 1)
		waiting.Wait()
		if reads > 1 || c.shelves.weight != 0 {
			t.Errorf("%d reads, %d bytes cached", reads, c.shelves.weight)
		}
	})
}

func TestJobCacheDoesNotWaitForOthersForEver(t *testing.T) {
	c := newJobCache(roomFor(2), time.Now)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := c.load(t.Context(), cluster.Identity{UID: "a"}, anything, func(context.Context) (*batchv1.Job, error) {
		cancel()
		_, err := c.load(ctx, cluster.Identity{UID: "a"}, anything, func(context.Context) (*batchv1.Job, error) { return nil, errors.New("read twice") })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		return cached("a", 1), nil
	})
	if err != nil {
		t.Error(err)
	}
}
