package e2e

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

// A hundred Pods fail at once, while one status write may list ten: they are counted in many writes, and the Job does not fail
// before the last.
func TestManyFailuresAreCountedAFewAtATime(t *testing.T) {
	t.Parallel()
	const atATime, pods = 10, 100
	s := own(t, harness.Config{ReconcilerFlags: []string{"--max-uncounted-pods=10"}})
	p := s.Space(t)
	gate := t.TempDir() + "/go"
	j := p.Apply(harness.Shell("many", "until [ -e '"+gate+"' ]; do sleep 0.5; done; exit 1", harness.Size(pods, pods, 0), harness.Indexed))
	trail := p.Follow(j)
	p.Await("many", timeout, "to run", func(j *batchv1.Job) bool { return ptr.Deref(j.Status.Ready, 0) == pods })
	touch(t, gate)
	end := p.AwaitEnd("many", batchv1.JobFailed, time.Minute)
	if end.Status.Failed != pods || end.Status.Succeeded != 0 {
		t.Errorf("it is %s", harness.Brief(end.Status))
	}
	if held := harness.Held(p.Pods("")); len(held) > 0 {
		t.Errorf("it has failed, and held are %v", held)
	}
	for _, wrong := range trail.Wrong() {
		t.Error(wrong)
	}
	if most := trail.MostListed(); most == 0 || most > atATime {
		t.Errorf("one status listed %d Pods, at most %d may be", most, atATime)
	}
}
