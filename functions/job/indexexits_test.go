package job_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/job"
)

// perIndex makes the Job an Indexed one of n indexes that run at once, each of which may fail so many times before it fails for good.
func perIndex(n, limit int32) func(*events.Job) {
	return func(j *events.Job) {
		j.Indexed, j.Parallelism, j.Completions, j.BackoffLimit, j.BackoffLimitPerIndex = true, n, &n, 1<<31-1, &limit
	}
}

// kill makes a Pod fail, as the kubelet reports it.
func (w *world) kill(p events.Pod, code int32, reason string) {
	w.t.Helper()
	w.change(p.Name, func(p *events.Pod) {
		p.Phase, p.Ready, p.Finished = events.Failed, false, w.now
		p.Exits = []events.Exit{{Container: "main", Code: code}}
		p.End = &events.PodEnd{Node: "n1", Container: &events.ContainerEnd{Name: "main", ExitCode: code, Reason: reason}}
	})
}

// runs returns the Pod of the index that has not ended.
func (w *world) runs(index int) events.Pod {
	w.t.Helper()
	for _, p := range w.pods() {
		if p.Index == index && !p.Terminal() {
			return p
		}
	}
	w.t.Fatalf("no Pod of index %d runs", index)
	return events.Pod{}
}

// exits returns the exits of the Job, in the short form.
func exits(j events.Job) string {
	var all []string
	for _, e := range j.FailedIndexExits {
		all = append(all, e.String())
	}
	return strings.Join(all, " ")
}

// TestAPodWithoutTheFinalizerIsNoFailureOfItsIndex: a user has removed the finalizer of a Pod that runs, and deletes it. It is not counted, so
// that the index has not failed: the next Pod is created at once, and with no failure before it.
func TestAPodWithoutTheFinalizerIsNoFailureOfItsIndex(t *testing.T) {
	for held, failures := range map[bool]int32{false: 0, true: 1} {
		w := newWorld(t, job.DefaultLimits(), perIndex(2, 3))
		w.wake()
		w.wait(time.Second)
		first := w.runs(0)
		w.change(first.Name, func(p *events.Pod) { p.Phase, p.Held, p.Deleting, p.Finished = events.Running, held, true, w.now })
		w.wait(time.Second)
		created := func() (all []effect.CreatePod) {
			for _, e := range w.done {
				if c, ok := e.(effect.CreatePod); ok && c.Index == 0 && c.Name != first.Name {
					all = append(all, c)
				}
			}
			return all
		}
		if atOnce := len(created()) > 0; atOnce == held {
			t.Errorf("held %v: created at once %v", held, atOnce)
		}
		w.wait(time.Minute)
		if all := created(); len(all) == 0 || all[0].IndexFailures != failures {
			t.Errorf("held %v: %+v, want one with %d failures before", held, all, failures)
		}
	}
}

// TestTheExitIsThatOfTheLastFailure: an index that is tried again has the exit of the Pod because of which it fails for good. The
// annotation does not change with other status writes, and JobFinish has it.
func TestTheExitIsThatOfTheLastFailure(t *testing.T) {
	w := newWorld(t, job.DefaultLimits(), perIndex(2, 1))
	w.wake()
	w.wait(time.Second)
	w.kill(w.runs(0), 3, "Error")
	w.wait(time.Second)
	if got := exits(w.job()); got != "" {
		t.Errorf("the index is tried again, and has the exit %s", got)
	}
	w.wait(20 * time.Second)
	w.kill(w.runs(0), 137, "OOMKilled")
	w.change(w.runs(1).Name, func(p *events.Pod) { p.Phase, p.Finished = events.Succeeded, w.now })
	w.wait(time.Minute)
	j := w.job()
	end, ended := j.Ended()
	if want := []events.IndexExit{{Index: 0, ExitCode: 137, Reason: "OOMKilled"}}; !ended || fmt.Sprint(end.FailedIndexExits) != fmt.Sprint(want) {
		t.Errorf("ended: %v, %v, want %v", ended, end.FailedIndexExits, want)
	}
	for _, e := range w.done {
		if write, ok := e.(effect.WriteJobStatus); ok && (*write.Status.FailedIndexes == "") != (len(write.FailedIndexExits) == 0) {
			t.Errorf("the exits are not written with the indexes: %s", write)
		}
	}
}

// TestTheLowestFailedIndexesHaveExits: whichever fail first, at most 20 exits are kept, those of the lowest. An elastic Job that is scaled down
// loses the others with their indexes.
func TestTheLowestFailedIndexesHaveExits(t *testing.T) {
	w := newWorld(t, job.DefaultLimits(), perIndex(50, 0))
	w.wake()
	w.wait(time.Second)
	for _, first := range []int{1, 0} { // the odd indexes, then the even ones
		for i := first; i < 48; i += 2 {
			w.kill(w.runs(i), int32(100+i), "")
		}
		w.wait(5 * time.Second)
	}
	var want []string
	for i := range 20 {
		want = append(want, fmt.Sprintf("%d:%d", i, 100+i))
	}
	if got := exits(w.job()); got != strings.Join(want, " ") {
		t.Errorf("exits %s", got)
	}
	w.api.UpdateJob(w.uid, func(j *events.Job) { j.Parallelism, j.Completions = 3, new(int32(3)) })
	w.settle()
	w.wait(5 * time.Second)
	if got := exits(w.job()); got != "0:100 1:101 2:102" {
		t.Errorf("exits after scaling down %s", got)
	}
}

// TestAnEditedAnnotationDoesNoHarm: a user may take exits away. Those of indexes that fail later are there again.
func TestAnEditedAnnotationDoesNoHarm(t *testing.T) {
	w := newWorld(t, job.DefaultLimits(), perIndex(3, 0))
	w.wake()
	w.wait(time.Second)
	w.kill(w.runs(0), 3, "Error")
	w.wait(5 * time.Second)
	w.api.UpdateJob(w.uid, func(j *events.Job) { j.FailedIndexExits = nil })
	w.settle()
	w.kill(w.runs(2), 4, "Error")
	w.wait(5 * time.Second)
	if got := exits(w.job()); got != "2:4(Error)" {
		t.Errorf("exits %s", got)
	}
}
