package main

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/jobstream/jobstream/bus/cloudevent"
	"github.com/jobstream/jobstream/events"
)

// message is a stream message, with the parts that the chain reads.
type message struct {
	jetstream.Msg
	subject string
	header  nats.Header
	data    []byte
}

func (m message) Subject() string      { return m.subject }
func (m message) Headers() nats.Header { return m.header }
func (m message) Data() []byte         { return m.data }

// received returns a message about the end of the Job a.
func received(t *testing.T, mode cloudevent.Mode, result events.JobResult, end time.Time) message {
	t.Helper()
	finish := events.JobFinished{Job: events.Reference{Namespace: "shop", Name: "a", UID: "1"}, Result: result, End: end}
	e, err := events.CloudEvent("default", finish)
	if err != nil {
		t.Fatal(err)
	}
	header, data, err := cloudevent.Encode(e, mode)
	if err != nil {
		t.Fatal(err)
	}
	return message{subject: events.PublicSubject("default", finish), header: header, data: data}
}

// The success of A resumes the Job that waits for it, in either mode of the event. A failure does not, nor does a repeated event
// about an A that ended before.
func TestStartAfter(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	success := func(mode cloudevent.Mode, end time.Time) message { return received(t, mode, events.JobSucceeded, end) }
	for name, c := range map[string]struct {
		message message
		starts  bool
	}{
		"structured":         {success(cloudevent.Structured, noon.Add(time.Second)), true},
		"binary":             {success(cloudevent.Binary, noon.Add(time.Second)), true},
		"in the same second": {success(cloudevent.Structured, noon), true},
		"an older A":         {success(cloudevent.Structured, noon.Add(-time.Second)), false},
		"a failure":          {received(t, cloudevent.Structured, events.JobFailed, noon.Add(time.Second)), false},
		"no event":           {message{data: []byte("hello")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(&batchv1.Job{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "b", Labels: map[string]string{"example.com/after": "a"}, CreationTimestamp: metav1.NewTime(noon)},
				Spec:       batchv1.JobSpec{Suspend: new(true)}})
			if err := startAfter(client, c.message); err != nil {
				t.Fatal(err)
			}
			b, err := client.BatchV1().Jobs("shop").Get(t.Context(), "b", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if started, waits := !*b.Spec.Suspend, b.Labels["example.com/after"] == "a"; started != c.starts || waits == c.starts {
				t.Errorf("started %v, still waits %v", started, waits)
			}
		})
	}
}
