package act

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/internal/cluster"
)

func cached(uid types.UID, version int) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: uid, Name: "job-" + string(uid), ResourceVersion: strconv.Itoa(version)}}
}

func anything(*batchv1.Job) bool { return true }

func TestJobCache(t *testing.T) {
	now := time.Unix(0, 0)
	c := newJobCache(2, func() time.Time { return now })
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
	if c.at(cluster.Identity{UID: "unknown"}, 1) != nil || c.objects.Len() != 2 {
		t.Error("a question made it forget")
	}
}

func TestJobCacheDoesNotWaitForOthersForEver(t *testing.T) {
	c := newJobCache(2, time.Now)
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
