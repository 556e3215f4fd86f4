package hostile

import (
	"context"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

// timeout is for a peaceful Job beside an attacker, on two cores that do everything: a bound against endless waiting, not a
// measurement. neighbour_test.go measures.
const timeout = time.Minute

// startTimeout is for programs that start, and for lists of everything, on a machine that does everything else, too.
const startTimeout = 5 * time.Minute

// peace is the peaceful namespace.
type peace struct {
	*harness.Space
	rounds int
}

func newPeace(t *testing.T, s *harness.System) *peace { t.Helper(); return &peace{Space: s.Space(t)} }

// round runs three Jobs whose counts are known, and fails the test if they end in another way or too late.
func (p *peace) round(t *testing.T) {
	t.Helper()
	space := *p.Space
	space.TB = t // the attack's own test fails, and the next ones continue
	p.rounds++
	name := func(kind string) string { return fmt.Sprintf("%s-%d", kind, p.rounds) }
	space.Apply(harness.Shell(name("plain"), "true", harness.Size(3, 2, 0)))
	space.Apply(harness.Shell(name("indexed"), `test "$JOB_COMPLETION_INDEX" != 1`, harness.Size(3, 3, 0), harness.Indexed,
		func(s *batchv1.JobSpec) { s.BackoffLimit, s.BackoffLimitPerIndex = nil, ptr.To[int32](0) }))
	space.Apply(harness.Shell(name("failing"), "exit 1", harness.Size(1, 1, 0)))
	for _, want := range []struct {
		name              string
		end               batchv1.JobConditionType
		succeeded, failed int32
		indexes           string
	}{
		{name("plain"), batchv1.JobComplete, 3, 0, ""},
		{name("indexed"), batchv1.JobFailed, 2, 1, "0,2"},
		{name("failing"), batchv1.JobFailed, 0, 1, ""},
	} {
		j := space.AwaitEnd(want.name, want.end, timeout)
		if s := j.Status; s.Succeeded != want.succeeded || s.Failed != want.failed || s.CompletedIndexes != want.indexes {
			t.Errorf("the peaceful Job %s is %s", want.name, harness.Brief(s))
		}
	}
	for _, kind := range []string{"plain", "indexed", "failing"} {
		if held := harness.Held(space.Pods(name(kind))); len(held) > 0 {
			t.Errorf("of the finished Job %s these Pods are still held: %v", name(kind), held)
		}
	}
}

// unharmed fails the test if a program has ended, or is no longer ready.
func unharmed(t *testing.T, s *harness.System) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	for _, program := range append(append([]*harness.Process{}, s.Triggers...), s.Reconcilers...) {
		if err := harness.Ready(ctx, program); err != nil {
			t.Errorf("%s: %v", program.Name, err)
		}
	}
}
