package differential_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/test/differential/upstream"
	"github.com/jobstream/jobstream/test/oracle/draw"
)

// fleet draws a Job that has started and is not ending, and its Pods, all active, no two of one age.
func fleet(t *rapid.T) (*batchv1.Job, []*corev1.Pod) {
	j := draw.Job(t)
	s := &j.Spec
	s.Suspend, s.ActiveDeadlineSeconds, s.SuccessPolicy, s.BackoffLimit = new(false), nil, nil, new(int32(1<<31-1))
	j.Status.StartTime = new(metav1.NewTime(draw.Epoch))
	if s.BackoffLimitPerIndex != nil {
		j.Status.FailedIndexes = new("")
	}
	var pods []*corev1.Pod
	for i := range rapid.IntRange(0, maxFleet).Draw(t, "pods") {
		pods = append(pods, draw.ActivePod(t, j, i))
	}
	tellApart(t, pods)
	return j, pods
}

const maxFleet = 10

// tellApart makes no two Pods equally expendable: of two equal ones either may be deleted, and the built-in controller's sort
// takes any. It gives each an age of its own, and keeps the restarts of one container only. The built-in controller compares the
// most restarts of any container and then of any sidecar, jobstream the sum over all: it is the last but one of six criteria,
// and both show which Pod is in trouble.
func tellApart(t *rapid.T, pods []*corev1.Pod) {
	ages := rapid.Permutation([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}).Draw(t, "ages")
	for n, p := range pods {
		p.CreationTimestamp = metav1.NewTime(draw.Epoch.Add(time.Duration(ages[n]) * 5 * time.Second))
		for i := range p.Status.ContainerStatuses {
			if i > 0 {
				p.Status.ContainerStatuses[i].RestartCount = 0
			}
		}
		for i := range p.Status.InitContainerStatuses {
			p.Status.InitContainerStatuses[i].RestartCount = 0
		}
	}
}

// TestPodsThatGo compares which active Pods are deleted: surplus ones, duplicates, those useless to an Indexed Job.
func TestPodsThatGo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j, pods := fleet(t)
		done := 0
		if n := j.Spec.Completions; n != nil && *j.Spec.CompletionMode == batchv1.NonIndexedCompletion {
			done = rapid.IntRange(0, int(*n)).Draw(t, "succeeded")
			j.Status.Succeeded = int32(done)
		}
		want := int(*j.Spec.Parallelism)
		if j.Spec.Completions != nil {
			want = min(want, int(*j.Spec.Completions)-done)
		}
		ours := []string{}
		for _, e := range only[effect.DeletePod](decide(t, j, pods, draw.Now)) {
			ours = append(ours, e.Name)
		}
		theirs := []string{}
		for _, p := range upstream.ActivePodsForRemoval(j, slices.Clone(pods), max(0, len(pods)-want)) {
			theirs = append(theirs, p.Name)
		}
		slices.Sort(ours)
		slices.Sort(theirs)
		same(t, "Pods that go", fmt.Sprint(ours), fmt.Sprint(theirs))
	})
}

// TestIndexesThatCome compares which indexes of an Indexed Job get a Pod first.
func TestIndexesThatCome(t *testing.T) {
	compared := 0
	rapid.Check(t, func(t *rapid.T) {
		j, pods := fleet(t)
		if *j.Spec.CompletionMode != batchv1.IndexedCompletion {
			t.Skip("not Indexed")
		}
		n := int(*j.Spec.Completions)
		completed, failed := set(t, "completed").Below(n), set(t, "failed").Below(n)
		if j.Spec.BackoffLimitPerIndex == nil {
			failed = nil
		}
		for _, span := range completed {
			for i := span.First; i <= span.Last; i++ {
				failed = failed.Without(i)
			}
		}
		j.Status.CompletedIndexes, j.Status.Succeeded = completed.String(), int32(completed.Len())
		ctx := &upstream.SyncJobCtx{Job: j, Pods: pods, ActivePods: pods, SucceededIndexes: theirs(completed)}
		if j.Spec.BackoffLimitPerIndex != nil {
			j.Spec.MaxFailedIndexes, j.Status.FailedIndexes = nil, new(failed.String())
			ctx.FailedIndexes = new(theirs(failed))
			if failed.Len() > 0 && failed.Len()+completed.Len() >= n {
				t.Skip("the Job fails")
			}
		}
		if slices.ContainsFunc(projected(pods), func(p events.Pod) bool { return completed.Has(p.Index) || failed.Has(p.Index) }) {
			t.Skip("jobstream deletes a Pod whose index is over; the built-in controller lets it run in the place of a needed one")
		}
		want := min(int(*j.Spec.Parallelism), n-completed.Len())
		if len(upstream.ActivePodsForRemoval(j, slices.Clone(pods), max(0, len(pods)-want))) > 0 {
			t.Skip("Pods go first")
		}
		ours := []int{}
		for _, e := range creations(t, j, pods, draw.Now) {
			ours = append(ours, e.Index)
		}
		same(t, "indexes that come", fmt.Sprint(ours), fmt.Sprint(upstream.FirstPendingIndexes(ctx, want-len(pods), n)))
		if len(ours) > 0 {
			compared++
		}
	})
	if compared == 0 {
		t.Error("no index came")
	}
}
