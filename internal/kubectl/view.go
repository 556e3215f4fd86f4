package kubectl

import (
	"fmt"
	"io"
	"strings"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

// View shows how a Job fares. All of it may be called from any goroutine.
type View interface {
	// Show is told the Job as it is now, each time that it has changed, from the first sight to the last.
	Show(j *batchv1.Job)
	// Note shows a line that is about something else than the Job, such as a connection that is lost.
	Note(line string)
	// Close leaves the last sight where it can be read. Nothing is called after it.
	Close()
}

// lines is a View that writes a line for each change that a person would care about: fit for a file or a pipe.
type lines struct {
	mu   sync.Mutex
	out  io.Writer
	last string
	told map[string]bool
}

func newLines(s genericiooptions.IOStreams) View {
	return &lines{out: s.ErrOut, told: map[string]bool{}}
}

// Show implements View.
func (l *lines) Show(j *batchv1.Job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range j.Status.Conditions {
		trouble := c.Type == v1alpha1.RefusedCondition || c.Type == v1alpha1.UnsupportedCondition || c.Type == v1alpha1.IgnoredCondition || c.Type == v1alpha1.NotAdoptingCondition
		if trouble && c.Status == corev1.ConditionTrue && !l.told[c.Message] {
			l.told[c.Message] = true
			fmt.Fprintf(l.out, "job.batch/%s: %s: %s\n", j.Name, c.Reason, c.Message)
		}
	}
	if now := progress(j); now != l.last {
		l.last = now
		fmt.Fprintf(l.out, "job.batch/%s: %s\n", j.Name, now)
	}
}

// Note implements View.
func (l *lines) Note(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintln(l.out, line)
}

// Close implements View.
func (l *lines) Close() {}

// progress is a Job's status in a few words.
func progress(j *batchv1.Job) string {
	s := j.Status
	var words []string
	if n := j.Spec.Completions; n != nil && *n > 1 {
		words = append(words, fmt.Sprintf("%d of %d succeeded", s.Succeeded, *n))
	} else {
		words = append(words, fmt.Sprintf("%d succeeded", s.Succeeded))
	}
	words = append(words, fmt.Sprintf("%d active", s.Active))
	if s.Failed > 0 {
		words = append(words, fmt.Sprintf("%d failed", s.Failed))
	}
	return strings.Join(words, ", ")
}
