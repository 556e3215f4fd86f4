package events_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
)

// TestFacts: one of each type, by name, each of which can be encoded and read again.
func TestFacts(t *testing.T) {
	var names []string
	for _, f := range events.Facts() {
		names = append(names, string(f.Type()))
	}
	if len(names) != 17 || !slices.IsSorted(names) || slices.Compact(slices.Clone(names))[16] != names[16] {
		t.Errorf("%d facts: %s", len(names), names)
	}
}

// TestAFactIsAboutItsKey: what shows another object than the key names is refused, as a whole; what shows none is not.
func TestAFactIsAboutItsKey(t *testing.T) {
	type object struct {
		namespace string
		uid       types.UID
	}
	facts := map[string]func(object) events.Event{
		"a Job": func(o object) events.Event {
			return events.JobObserved{Job: events.Job{Namespace: o.namespace, UID: o.uid}}
		},
		"a list of a Job": func(o object) events.Event {
			return events.JobListed{Job: &events.Job{Namespace: o.namespace, UID: o.uid}}
		},
		"a part of a list": func(o object) events.Event {
			return events.JobPartListed{JobListed: events.JobListed{Job: &events.Job{Namespace: o.namespace, UID: o.uid}}}
		},
		"a ScheduledJob": func(o object) events.Event {
			return events.ScheduledJobObserved{ScheduledJob: events.ScheduledJob{Namespace: o.namespace, UID: o.uid}}
		},
		"a list of a ScheduledJob": func(o object) events.Event {
			return events.ScheduleListed{ScheduledJob: &events.ScheduledJob{Namespace: o.namespace, UID: o.uid}}
		},
	}
	read := func(e events.Event) error {
		data, err := events.Encode(events.Fact{Cluster: "c", Key: key(), Event: e})
		if err != nil {
			t.Fatal(err)
		}
		_, err = events.Decode(data)
		return err
	}
	for name, fact := range facts {
		if err := read(fact(object{"default", uid})); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for where, o := range map[string]object{"namespace": {"another", uid}, "UID": {"default", "another"}} {
			if err := read(fact(o)); err == nil || !strings.Contains(err.Error(), "not the key's object") {
				t.Errorf("%s with another %s: %v", name, where, err)
			}
		}
	}
	for _, e := range []events.Event{events.JobListed{}, events.ScheduleListed{}, events.TimerFired{}} {
		if err := read(e); err != nil {
			t.Errorf("%s: %v", e.Type(), err)
		}
	}
}
