package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/trace/tracetest"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// The traceparent that a Pod receives is that of its Job's events, and of the span that a collector receives, though the
// reconciler is killed and the bus wiped while the Job runs. A Pod of a Job that does not ask for it receives none.
func TestOneTraceFromTheTickToThePod(t *testing.T) {
	collector := tracetest.Collect(t)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "200")
	s := own(t, harness.Config{})
	p := s.Space(t)
	said, gate := said{t, filepath.Join(t.TempDir(), "said")}, filepath.Join(t.TempDir(), "gate")
	waits := "; while [ ! -e " + gate + " ]; do sleep 0.1; done"
	const other = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

	p.Apply(annotated(harness.Shell("told", said.script("told")+waits, harness.Size(2, 1, 0)), v1alpha1.PodTraceparentAnnotation, "true"))
	p.Apply(harness.Shell("untold", said.script("untold")+"; exit 3", harness.Size(1, 1, 0)))
	p.Apply(annotated(annotated(harness.Shell("part", said.script("part"), harness.Size(1, 1, 0)), v1alpha1.PodTraceparentAnnotation, "true"), v1alpha1.TraceparentAnnotation, other))
	tick := harness.Every("tick", "* * * * * *", said.script("tick"), harness.KeepAll)
	tick.Spec.JobTemplate.Annotations = map[string]string{v1alpha1.PodTraceparentAnnotation: "true"}
	p.Schedule(tick)
	p.AwaitSchedule("tick", timeout, "to have run", func(j *v1alpha1.ScheduledJob) bool { return j.Status.Successful > 0 })
	p.Reschedule("tick", `{"suspend":true}`)
	p.AwaitEnd("untold", batchv1.JobFailed, timeout)
	p.AwaitEnd("part", batchv1.JobComplete, timeout)
	said.await("told", 1)
	run := spanOf(t, collector, said.await("tick", 1)[0])
	due := spanOf(t, collector, run.Traceparent[:36]+run.Parent+"-01")
	if due.Name != "schedule.tick" || due.Parent != "" || due.Attributes["jobstream.scheduledjob.name"] != "tick" || due.Start.After(run.Start) {
		t.Errorf("above the Job of the tick is %+v", due)
	}
	hasTrace(t, s, "schedule.tick", due.Traceparent)

	reconciler := s.Reconcilers[0]
	if err := reconciler.Kill(); err != nil {
		t.Fatal(err)
	}
	replaceBus(t, s, 0)
	reconciler.Args = append(reconciler.Args, "--pod-traceparent")
	startAll(t, s)
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.Apply(harness.Shell("all", said.script("all"), harness.Size(1, 1, 0)))
	p.Apply(annotated(harness.Shell("none", said.script("none"), harness.Size(1, 1, 0)), v1alpha1.PodTraceparentAnnotation, "false"))
	for _, job := range []string{"told", "all", "none"} {
		p.AwaitEnd(job, batchv1.JobComplete, timeout)
	}

	for _, job := range []string{"untold", "none"} {
		if got := said.await(job, 1); got[0] != "nothing" {
			t.Errorf("%s was told %s", job, got)
		}
	}
	for _, job := range []string{"told", "part", "all", "tick"} {
		got := said.await(job, map[string]int{"told": 2}[job])
		isOne(t, s, collector, job, got[0])
		if job != "tick" && len(slices.Compact(got)) != 1 {
			t.Errorf("%s was told %q", job, got)
		}
	}
	if got := said.await("part", 1); got[0][:35] != other[:35] || spanOf(t, collector, got[0]).Parent != other[36:52] {
		t.Errorf("part has received %s, want a child of %s", got[0], other)
	}
	j := p.Job("told")
	span := spanOf(t, collector, said.await("told", 2)[0])
	if !span.Start.Equal(j.Status.StartTime.UTC()) || !span.End.Equal(ptr.Deref(j.Status.CompletionTime, *j.Status.StartTime).UTC()) || span.Attributes["k8s.job.uid"] != string(j.UID) || span.Failed {
		t.Errorf("the span of told is %+v, its status %s", span, harness.Brief(j.Status))
	}
	seen, again := map[string]tracetest.Span{}, 0
	for _, span := range collector.Spans() {
		old, twice := seen[span.Traceparent]
		if seen[span.Traceparent] = span; !twice {
			continue
		}
		if again++; !reflect.DeepEqual(old, span) {
			t.Errorf("announced again, a span is\n%+v, it was\n%+v", span, old)
		}
	}
	t.Logf("%d spans, %d of them again after the bus was wiped", len(seen), again)
}

// isOne checks that the Job's events and its span have the traceparent that its Pod received.
func isOne(t *testing.T, s *harness.System, collector *tracetest.Collector, job, told string) {
	t.Helper()
	hasTrace(t, s, "job.start", told)
	hasTrace(t, s, "job.finish", told)
	if span := spanOf(t, collector, told); span.Name != "job" {
		t.Errorf("%s has received the span of %+v", job, span)
	}
}

// hasTrace waits until an event of that kind is stored which has the traceparent.
func hasTrace(t *testing.T, s *harness.System, kind, traceparent string) {
	t.Helper()
	harness.Until(t, timeout, "a "+kind+" of "+traceparent, func(context.Context) error {
		var others []string
		for _, m := range s.Tap(t).StoredIn(t, func(stream string) bool { return strings.HasSuffix(stream, "_events") }) {
			var e struct{ Type, Subject, Traceparent string }
			if err := json.Unmarshal(m.Data, &e); err != nil {
				return err
			}
			if e.Type != "dev.jobstream."+kind+".v1" {
				continue
			}
			if e.Traceparent == traceparent {
				return nil
			}
			others = append(others, e.Subject+" "+e.Traceparent)
		}
		return fmt.Errorf("there are %q", others)
	})
}

// spanOf waits for the span.
func spanOf(t *testing.T, collector *tracetest.Collector, traceparent string) (found tracetest.Span) {
	t.Helper()
	harness.Until(t, timeout, "the span "+traceparent, func(context.Context) error {
		all := collector.Spans()
		i := slices.IndexFunc(all, func(s tracetest.Span) bool { return s.Traceparent == traceparent })
		if i < 0 {
			return fmt.Errorf("there are %d others", len(all))
		}
		found = all[i]
		return nil
	})
	return found
}

// said is a file into which Pods write the traceparents that they receive.
type said struct {
	t    *testing.T
	path string
}

func (s said) script(job string) string {
	return "echo " + job + " ${TRACEPARENT:-nothing} >> " + s.path
}

// await waits until so many Pods of the Job have written, and returns their lines.
func (s said) await(job string, pods int) (out []string) {
	s.t.Helper()
	harness.Until(s.t, timeout, fmt.Sprintf("%d Pods of %s to write their traceparents", pods, job), func(context.Context) error {
		text, err := os.ReadFile(s.path)
		if err != nil {
			return err
		}
		out = nil
		for line := range strings.Lines(string(text)) {
			if told, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), job+" "); ok {
				out = append(out, told)
			}
		}
		if len(out) < max(1, pods) {
			return fmt.Errorf("%d have", len(out))
		}
		return nil
	})
	return out
}
