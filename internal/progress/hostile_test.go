package progress

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func indexedJob(completions int32, complete string) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "default", UID: "job"},
		Spec:       batchv1.JobSpec{Completions: &completions, Parallelism: ptr.To[int32](1), CompletionMode: ptr.To(batchv1.IndexedCompletion)},
		Status:     batchv1.JobStatus{Active: 1, StartTime: &metav1.Time{Time: epoch}, CompletedIndexes: complete},
	}
}

// everyOther returns the longest list that a Job with that many completions can have.
func everyOther(completions int) string {
	var b strings.Builder
	for i := 0; i < completions; i += 2 {
		fmt.Fprintf(&b, ",%d", i)
	}
	return b.String()[1:]
}

// A list of indexes is a text that any client may write. For every text a frame is drawn, at little memory.
func TestListsOfIndexes(t *testing.T) {
	for _, tt := range []struct {
		name        string
		completions int32
		text        string
		succeeded   int // indexes that are shown as complete
		unreadable  bool
	}{
		{"none", 10, "", 0, false},
		{"all of many", 100_000, "0-99999", 100_000, false},
		{"every other of many", 100_000, everyOther(100_000), 50_000, false},
		{"more than there are", 10, "0-2147483647", 10, false},
		{"more than there can be", 10, "0-99999999999999999999999", 0, true},
		{"as many as there can be", 1<<31 - 1, "0-2147483646", 1<<31 - 1, false},
		{"out of order", 10, "5,3", 0, true},
		{"overlapping", 10, "0-5,3-7", 0, true},
		{"negative", 10, "-5", 0, true},
		{"words", 10, "all of them", 0, true},
		{"an escape sequence", 10, "\x1b[2J", 0, true},
		{"a megabyte of commas", 10, strings.Repeat(",", 1<<20), 0, true},
		{"a megabyte of digits", 10, strings.Repeat("9", 1<<20), 0, true},
		{"two megabytes that are right", 100_000, "0" + strings.Repeat(" ", 2<<20), 0, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := indexedJob(tt.completions, tt.text)
			var b Board
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			b.SawJob(j, at(1))
			lines := b.Frame(at(1), Style{Width: 80, Blocks: true})
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20 {
				t.Errorf("%d bytes were allocated", n)
			}
			k := b.jobs[0]
			if got := k.completeIndexes.set.Len(); got != tt.succeeded || k.completeIndexes.unreadable != tt.unreadable {
				t.Errorf("%d complete, unreadable %v", got, k.completeIndexes.unreadable)
			}
			if got := strings.Contains(strings.Join(lines, "\n"), "cannot be read"); got != tt.unreadable {
				t.Errorf("the frame reports it as unreadable: %v:\n%s", got, strings.Join(lines, "\n"))
			}
			for _, line := range lines {
				if len([]rune(line)) > 80 {
					t.Errorf("too wide: %.200q", line)
				}
			}
		})
	}
}

// nasty has what a terminal must never receive: sequences that clear it, rename it, make it answer, or reverse the direction of
// writing.
const nasty = "\x1b[2J\x1b]0;owned\x07\x9b6n\r\x08\u202egnp.exe\u2028\xff\x00"

// Names, reasons and messages come from any user who may write in the namespace.
func TestNothingThatAnObjectSaysReachesTheTerminalAsACommand(t *testing.T) {
	j := indexedJob(20, "0-3")
	j.Name, j.Namespace = nasty, nasty
	j.Status.FailedIndexes = ptr.To("7" + nasty)
	j.Status.Conditions = []batchv1.JobCondition{
		{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue, Reason: nasty, Message: strings.Repeat(nasty, 1000)},
		{Type: "jobstream.dev/Refused", Status: corev1.ConditionTrue, Reason: nasty, Message: nasty},
	}
	for _, style := range []Style{{}, {Width: 40}, {Width: 80, Blocks: true}, {Width: 300, Blocks: true, Colour: true}} {
		var b Board
		b.SawJob(j, at(1))
		other := indexedJob(20, "")
		other.UID = "other" // another namespace: the names carry theirs
		b.SawJob(other, at(1))
		b.SawPod(indexPod("job", nasty, corev1.PodFailed), false)
		var all []string
		for _, line := range b.Frame(at(2), style) {
			all = append(all, line)
			if w := ansi.StringWidth(line); style.Width > 0 && w > style.Width {
				t.Errorf("%d columns of %d: %q", w, style.Width, line)
			}
		}
		for _, c := range b.Changes(at(2)) {
			all = append(all, c.String())
		}
		for _, line := range all {
			if style.Colour {
				line = ansi.Strip(line) // the colours are our own
			}
			for _, r := range line {
				if !unicode.IsPrint(r) {
					t.Errorf("%+v: %q has %q", style, line, r)
					break
				}
			}
		}
	}
	if got := Clean("\x1b[31mred\n"+nasty, 20); strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) || len(got) > 20 {
		t.Errorf("%q", got)
	}
	if got := Clean("größe", 3); got != "gr" {
		t.Errorf("cut within a character: %q", got)
	}
}

// Pods with an unknown owner, or with an index that the Job does not have, change nothing.
func TestPodsThatDoNotCount(t *testing.T) {
	var b Board
	b.SawPod(indexPod("unknown", "1", corev1.PodRunning), false)
	b.SawJob(indexedJob(10, ""), at(0))
	for _, index := range []string{"", "x", "-1", "10", "2147483647", "99999999999999999999"} {
		b.SawPod(indexPod("job", index, corev1.PodRunning), false)
	}
	b.SawPod(&corev1.Pod{}, false)
	if got, want := b.Frame(at(0), Style{Width: 60})[1], "   0 .........."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A Pod that has ended is shown as running until the Job's status has its index: it would look as if it waited again.
func TestPodsThatEnd(t *testing.T) {
	var b Board
	row := func() string { return b.Frame(at(0), Style{Width: 60})[1] }
	b.SawJob(indexedJob(10, ""), at(0))
	for index, phase := range map[string]corev1.PodPhase{"0": corev1.PodSucceeded, "1": corev1.PodRunning, "2": corev1.PodRunning, "3": corev1.PodFailed} {
		b.SawPod(indexPod("job", index, phase), index == "1" || index == "3")
	}
	for i, want := range []string{"   0 +++.......", "   0 #++.......", "   0 #.+......."} {
		if got := row(); got != want {
			t.Errorf("after %d observations %q, want %q", i, got, want)
		}
		b.SawJob(indexedJob(10, "0"), at(0))
	}
	b.ForgetPods()
	if got, want := row(), "   0 #........."; got != want {
		t.Errorf("without Pods %q, want %q", got, want)
	}
	b.Forget("job")
	b.Forget("job")
	if got := b.Frame(at(0), Style{}); len(got) != 0 {
		t.Errorf("forgotten, and still shown: %q", got)
	}
}

// Jobs and Pods come by two watches: a Pod may come first, and need not come again.
func TestPodsThatComeBeforeTheirJob(t *testing.T) {
	var b Board
	for _, index := range []string{"0", "1", "2"} {
		b.SawPod(indexPod("job", index, corev1.PodRunning), false)
	}
	b.SawPod(indexPod("job", "1", corev1.PodRunning), true)
	b.SawJob(indexedJob(10, ""), at(0))
	if got, want := b.Frame(at(0), Style{Width: 60})[1], "   0 +.+......."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A frame of the largest Jobs is drawn many times a second.
func BenchmarkFrame(b *testing.B) {
	var board Board
	board.SawJob(indexedJob(100_000, everyOther(100_000)), at(0))
	for b.Loop() {
		board.Frame(at(1), Style{Width: 120, Height: 40, Blocks: true, Colour: true})
	}
}
