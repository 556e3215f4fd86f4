package show

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobstream/jobstream/functions/backoff"
)

// Moment is something that is worth a line of its own.
type Moment struct {
	At time.Time
	// Who is the subject: a Job, the schedule, or the source.
	Who  string
	Text string
}

// Line formats a moment as a line: when, who, what.
func (s *Story) Line(m Moment) string {
	return fmt.Sprintf("%7.3fs  %-*s  %s", m.At.Sub(s.Began).Seconds(), len(subscriber), m.Who, m.Text)
}

type moments []Moment

func (m *moments) say(at time.Time, k *Job, format string, args ...any) {
	*m = append(*m, Moment{At: at, Who: k.Name, Text: fmt.Sprintf(format, args...)})
}

// work describes what the Job has to do.
func (k *Job) work() string {
	switch {
	case k.Completions == 0:
		return fmt.Sprintf("a work queue with %s", count(k.Parallelism, "worker"))
	case k.Parallelism < k.Completions:
		return fmt.Sprintf("%s, %d at a time", count(k.Completions, "completion"), k.Parallelism)
	}
	return count(k.Completions, "completion")
}

// ending describes how the Job has ended, and how soon after its last Pod, once none of its Pods has a finalizer.
func (k *Job) ending() string {
	word := "complete"
	if k.Result == batchv1.JobFailed {
		word = "failed for good (" + k.Reason + ")"
	}
	if latency, ok := k.Latency(); ok {
		return fmt.Sprintf("%s %s after its last Pod had ended", word, span(latency))
	}
	return word
}

// Latency returns the time from the end of the last Pod to the Job's terminal condition, as observed.
func (k *Job) Latency() (time.Duration, bool) {
	if k.LastEnd.IsZero() || k.Ended.IsZero() {
		return 0, false
	}
	return max(0, k.Ended.Sub(k.LastEnd)), true
}

// podFailed reports a failed Pod and what follows.
func (k *Job) podFailed(m *moments, p *corev1.Pod, at time.Time) {
	failed := 0
	for _, other := range k.pods {
		if other.phase == corev1.PodFailed {
			failed++
		}
	}
	what := "Pod " + p.Name + " failed" + exitOf(p)
	if failed > int(k.BackoffLimit) {
		m.say(at, k, "%s: no try is left", what)
		return
	}
	wait := backoff.Pods.Delay(failed)
	k.NextTry = at.Add(wait)
	m.say(at, k, "%s: next try in %s", what, span(wait))
}

// exitOf describes how the Pod's first failed container ended.
func exitOf(p *corev1.Pod) string {
	for _, c := range p.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			return fmt.Sprintf(" with exit code %d", t.ExitCode)
		}
	}
	return ""
}

func count(n int32, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// span formats a duration for people.
func span(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second && d%time.Second != 0:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return fmt.Sprintf("%.0f min", d.Minutes())
}
