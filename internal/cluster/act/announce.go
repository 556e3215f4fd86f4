package act

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/cluster"
	"github.com/jobstream/jobstream/internal/engine"
)

// Announcing wraps an Announcer. It also writes a Kubernetes Event about each Job whose start or end that Announcer has
// published, for users who describe a Job and subscribe to nothing. The Event is written by best effort, and nothing waits for
// it.
func (r *Recorder) Announcing(next engine.Announcer) engine.Announcer {
	return eventAnnouncer{next: next, recorder: r}
}

type eventAnnouncer struct {
	next     engine.Announcer
	recorder *Recorder
}

// Announce implements engine.Announcer.
func (a eventAnnouncer) Announce(ctx context.Context, p events.Public) error {
	err := a.next.Announce(ctx, p)
	if err == nil {
		a.recorder.announced(p)
	}
	return err
}

// announced writes an Event about the Job, with a name derived from the public event: a repeated announcement finds the Event
// there.
func (r *Recorder) announced(p events.Public) {
	job, severity, reason, message := events.Reference{}, corev1.EventTypeNormal, "", ""
	switch e := p.(type) {
	case events.JobStarted:
		job, reason, message = e.Job, "JobStart", "Started at "+e.Start.UTC().Format(time.RFC3339)
	case events.JobFinished:
		job, reason, message = e.Job, "JobFinish", finishMessage(e)
		if e.Result == events.JobFailed {
			severity = corev1.EventTypeWarning
		}
	default: // the ScheduledJob's status has the ticks; a Pod has Events of its own
		return
	}
	about := &corev1.ObjectReference{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job", Namespace: job.Namespace, Name: job.Name, UID: job.UID}
	r.recorder.AnnotatedEventf(about, map[string]string{v1alpha1.EventIDAnnotation: events.PublicID(p)}, severity, reason, "%s", cluster.Cut(message))
}

func finishMessage(e events.JobFinished) string {
	out := string(e.Result)
	if e.Reason != "" {
		out += " (" + e.Reason + ")"
	}
	return fmt.Sprintf("%s at %s after %d s: %d succeeded, %d failed", out, e.End.UTC().Format(time.RFC3339), e.DurationSeconds, e.Succeeded, e.Failed)
}

// once is a sink that writes an Event under a name made of its id, and never writes it again. client-go would name it by the
// time, so that every process that reports the same would create one more.
type once struct{ record.EventSink }

// Create implements record.EventSink. If the name is taken, the Event has been written; client-go leaves it at that.
func (s once) Create(e *corev1.Event) (*corev1.Event, error) {
	if id := e.Annotations[v1alpha1.EventIDAnnotation]; id != "" {
		sum := sha256.Sum256([]byte(id))
		e.Name = e.InvolvedObject.Name + "." + hex.EncodeToString(sum[:8])
	}
	return s.EventSink.Create(e)
}

// Patch implements record.EventSink: it counts a repetition of an Event that another process wrote.
func (s once) Patch(e *corev1.Event, data []byte) (*corev1.Event, error) {
	if e.Annotations[v1alpha1.EventIDAnnotation] != "" {
		return e, nil
	}
	return s.EventSink.Patch(e, data)
}
