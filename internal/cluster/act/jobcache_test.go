package act

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/internal/cluster"
)

func cached(uid types.UID, version int) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: uid, Name: "job-" + string(uid), ResourceVersion: strconv.Itoa(version)}}
}

// roomFor is the limit of a cache for that many of these.
func roomFor(jobs int) int { return jobs * (weightOfEntry + weightOfByte*cached("a", 1).Size()) }

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
	late, err := c.load(t.Context(), cluster.Identity{UID: "a"}, anything, func(context.Context) (*batchv1.Job, error) {
		c.saw(cached("b", 1))
		c.saw(cached("a", 6))
		return cached("a", 5), nil
	})
	if err != nil || late.ResourceVersion != "5" || c.at(cluster.Identity{UID: "a"}, 6) == nil {
		t.Errorf("%v %v, and %v is cached", late, err, c.peek(cluster.Identity{UID: "a"}))
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
		c, answer, reads := newJobCache(weightOfEntry, time.Now), make(chan *batchv1.Job), 0
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

// BenchmarkCachedJob prints how much memory a Job takes, as a reconciler receives it, and for how much the cache takes it.
func BenchmarkCachedJob(b *testing.B) {
	for _, variables := range []int{0, 10, 100, 1000} {
		for _, containers := range []int{1, 10} {
			b.Run(fmt.Sprintf("containers=%d/variables=%d", containers, variables), func(b *testing.B) {
				wire, err := jobOf(containers, variables).Marshal()
				if err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
					var jobs [300]batchv1.Job
					before := held()
					for i := range jobs {
						if err := jobs[i].Unmarshal(wire); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(held()-before)/float64(len(jobs))+float64(unsafe.Sizeof(jobs[0])), "B/Job")
					b.ReportMetric(float64(weightOfEntry+weightOfByte*jobs[0].Size()), "weight/Job")
					runtime.KeepAlive(&jobs)
				}
			})
		}
	}
}

// jobOf is a Job of a ScheduledJob with that many containers, and that many variables in each.
func jobOf(containers, variables int) *batchv1.Job {
	const uid, owner = "5ef034e0-1890-11e6-8935-000000000001", "5ef034e0-1890-11e6-8935-000000000002"
	labels := map[string]string{batchv1.ControllerUidLabel: uid, batchv1.JobNameLabel: "nightly-29388241", "controller-uid": uid, "job-name": "nightly-29388241"}
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Name: "nightly-29388241", Namespace: "reports", UID: uid, ResourceVersion: "123456", Labels: labels,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "jobstream.dev/v1alpha1", Kind: "ScheduledJob", Name: "nightly", UID: owner, Controller: new(true)}},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "jobstream-reconciler", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "batch/v1",
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(strings.Repeat("f", 900))}},
	}}
	j.Spec.Parallelism, j.Spec.Completions, j.Spec.BackoffLimit, j.Spec.ManagedBy = new(int32(1)), new(int32(1)), new(int32(6)), new("jobstream.dev/job")
	j.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{batchv1.ControllerUidLabel: uid}}
	j.Spec.Template.Labels = labels
	for c := range containers {
		container := corev1.Container{Name: fmt.Sprintf("step-%d", c), Image: "registry.example.com/report:v1", Command: []string{"report", "--all"}, ImagePullPolicy: corev1.PullIfNotPresent,
			TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageReadFile}
		for v := range variables {
			container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", v), Value: "some value of it"})
		}
		j.Spec.Template.Spec.Containers = append(j.Spec.Template.Spec.Containers, container)
	}
	return j
}

func held() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
