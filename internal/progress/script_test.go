package progress

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/cockroachdb/datadriven"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/functions/intervals"
)

// TestScripts shows frames and lines for what has been seen. Rewrite them with
//
//	go test ./internal/progress -run TestScripts -rewrite
//
// and read the difference. The commands, each at so many seconds after the beginning:
//
//	job NAME [completions= parallelism= indexed active= succeeded= failed= complete=0-3 failed-indexes=4 started=SECONDS
//	          ended=SECONDS suspended condition=TYPE reason= message= namespace=] at=
//	pods NAME [running=5-7 failed=8 gone=0-3]
//	gone NAME
//	frame at= [width= height= ascii colour]
//	changes at=
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &script{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return s.run(t, d) })
	})
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time {
	return epoch.Add(time.Duration(seconds * float64(time.Second)))
}

type script struct{ board Board }

// args are the arguments of a command.
type args struct{ *datadriven.TestData }

func (a args) text(key string) string {
	for _, arg := range a.CmdArgs {
		if arg.Key == key && len(arg.Vals) > 0 {
			return strings.ReplaceAll(strings.Join(arg.Vals, ","), "_", " ")
		}
	}
	return ""
}

func (a args) number(key string, otherwise float64) float64 {
	n := otherwise
	if text := a.text(key); text != "" {
		if _, err := fmt.Sscan(text, &n); err != nil {
			panic(err)
		}
	}
	return n
}

func (a args) name() string { return a.CmdArgs[0].Key }

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	a := args{d}
	now := at(a.number("at", 0))
	switch d.Cmd {
	case "job":
		s.board.SawJob(a.job(), now)
	case "pods":
		s.pods(t, a)
	case "gone":
		s.board.JobGone(types.UID(a.name()))
	case "frame":
		style := Style{Width: int(a.number("width", 80)), Height: int(a.number("height", 0)), Blocks: !d.HasArg("ascii"), Colour: d.HasArg("colour")}
		lines := s.board.Frame(now, style)
		for i, line := range lines {
			if w := ansi.StringWidth(line); w > style.Width {
				t.Errorf("%s: a line of %d columns on a terminal of %d: %s", d.Pos, w, style.Width, line)
			}
			lines[i] = strings.ReplaceAll(line, "\x1b", "^")
		}
		return strings.Join(lines, "\n")
	case "changes":
		var b strings.Builder
		for _, c := range s.board.Changes(now) {
			fmt.Fprintln(&b, c)
		}
		return b.String()
	default:
		d.Fatalf(t, "unknown command")
	}
	return ""
}

func (a args) job() *batchv1.Job {
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: a.name(), UID: types.UID(a.name()), Namespace: "default"},
		Spec:       batchv1.JobSpec{Parallelism: ptr.To(int32(a.number("parallelism", 1))), Suspend: ptr.To(a.HasArg("suspended"))},
		Status: batchv1.JobStatus{Active: int32(a.number("active", 0)), Succeeded: int32(a.number("succeeded", 0)), Failed: int32(a.number("failed", 0)),
			CompletedIndexes: a.text("complete")},
	}
	if ns := a.text("namespace"); ns != "" {
		j.Namespace = ns
	}
	if a.HasArg("completions") {
		j.Spec.Completions = ptr.To(int32(a.number("completions", 0)))
	}
	if a.HasArg("indexed") {
		j.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
	}
	if text := a.text("failed-indexes"); text != "" {
		j.Status.FailedIndexes = &text
	}
	if a.HasArg("started") {
		j.Status.StartTime = &metav1.Time{Time: at(a.number("started", 0))}
	}
	for kind := range strings.SplitSeq(a.text("condition"), ",") {
		if kind == "Refused" {
			kind = v1alpha1.RefusedCondition
		}
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: batchv1.JobConditionType(kind), Status: corev1.ConditionTrue,
			Reason: a.text("reason"), Message: a.text("message"), LastTransitionTime: metav1.Time{Time: at(a.number("ended", 0))}})
	}
	return j
}

// pods shows a Pod for each of the indexes; an index has one of each kind.
func (s *script) pods(t *testing.T, a args) {
	for _, kind := range []struct {
		key   string
		phase corev1.PodPhase
	}{{"running", corev1.PodRunning}, {"failed", corev1.PodFailed}, {"gone", corev1.PodRunning}} {
		set, err := intervals.Parse(a.text(kind.key))
		if err != nil {
			t.Fatal(err)
		}
		for _, span := range set {
			for i := span.First; i <= span.Last; i++ {
				s.board.SawPod(indexPod(a.name(), fmt.Sprint(i), kind.phase), kind.key == "gone")
			}
		}
	}
}

func indexPod(job, index string, phase corev1.PodPhase) *corev1.Pod {
	kind := "tried"
	if phase == corev1.PodRunning {
		kind = "runs"
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: types.UID(job + index + kind), Annotations: map[string]string{batchv1.JobCompletionIndexAnnotation: index},
			OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: job, UID: types.UID(job), Controller: ptr.To(true)}}},
		Status: corev1.PodStatus{Phase: phase},
	}
}
