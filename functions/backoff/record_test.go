package backoff_test

import (
	"testing"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/backoff"
)

// TestAfter: a success resets the failures before it, whether the record or the same status has them (upstream: TestNewBackoffRecord).
func TestAfter(t *testing.T) {
	at := func(seconds ...int) (pods []events.Pod) {
		for _, s := range seconds {
			pods = append(pods, events.Pod{Finished: noon.Add(time.Duration(s) * time.Second)})
		}
		return pods
	}
	record := func(failures, last int) events.Backoff {
		return events.Backoff{Failures: failures, Last: at(last)[0].Finished}
	}
	for _, c := range []struct {
		name              string
		before            events.Backoff
		succeeded, failed []events.Pod
		want              events.Backoff
	}{
		{"nothing has ended", record(2, 5), nil, nil, record(2, 5)},
		{"the first failure", events.Backoff{}, nil, at(7), record(1, 7)},
		{"more failures, in any order", record(2, 5), nil, at(9, 7, 8), record(5, 9)},
		{"a failure that is told late", record(2, 5), nil, at(3), record(3, 5)},
		{"a success", record(2, 5), at(8, 9, 6), nil, record(0, 9)},
		{"a success that is told late", record(2, 5), at(3), nil, record(0, 3)},
		{"failures before, at and after a success", record(2, 5), at(8), at(7, 8, 9), record(1, 9)},
		{"failures before the last of two successes", record(2, 5), at(4, 8), at(7), record(0, 8)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := backoff.After(c.before, c.succeeded, c.failed); !got.Equal(c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
