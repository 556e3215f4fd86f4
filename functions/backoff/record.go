package backoff

import (
	"slices"
	"time"

	"github.com/jobstream/jobstream/events"
)

// After adds Pods that have newly ended to a record (Kubernetes 1.36, newBackoffRecord): a success resets the failures before it,
// and Last is then the time of that success.
func After(b events.Backoff, succeeded, failed []events.Pod) events.Backoff {
	var success time.Time
	for _, p := range succeeded {
		success = latest(success, p.Finished)
	}
	if len(succeeded) > 0 {
		b = events.Backoff{Last: success}
		failed = slices.DeleteFunc(slices.Clone(failed), func(p events.Pod) bool { return !p.Finished.After(success) })
	}
	for _, p := range failed {
		b.Failures++
		b.Last = latest(b.Last, p.Finished)
	}
	return b
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
