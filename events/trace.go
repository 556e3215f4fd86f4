package events

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

// Trace is a span of a distributed trace, as W3C Trace Context defines it. The spans of Jobs and of nominal times are
// derived from the objects in the cluster alone: every program computes the same ids, before or after any loss of state, and
// with or without a collector of traces.
//
//	nominal time  SHA-256 of "<UID of the ScheduledJob>/<nominal time>" --> trace (16 bytes), span (the next 8)
//	  its Job     the same trace                                            span: of SHA-256 of the Job's UID
//	other Job     SHA-256 of its UID                                    --> trace, span
//	  annotated   the trace of the annotation                               span: as above
type Trace struct {
	// ID identifies the whole trace, Span the span. Neither is all zeros.
	ID   [16]byte
	Span [8]byte
	// Sampled reports whether the span is to be recorded. It is, unless the trace that it continues is not sampled.
	Sampled bool
}

// String returns the traceparent of version 00: "00-<trace>-<span>-<flags>".
func (t Trace) String() string {
	flags := 0
	if t.Sampled {
		flags = 1
	}
	return fmt.Sprintf("00-%x-%x-%02x", t.ID, t.Span, flags)
}

// traceparentLength is the length of version 00, in bytes; later versions append further parts after another hyphen.
const traceparentLength = 55

// ParseTrace parses a traceparent. Of a later version it reads what is common with version 00, as W3C requires.
func ParseTrace(s string) (t Trace, err error) {
	later := len(s) > traceparentLength && s[traceparentLength] == '-' && s[:2] != "00"
	if len(s) != traceparentLength && !later || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return Trace{}, errors.New("it does not have the form 00-<32 digits>-<16 digits>-<2 digits>")
	}
	var version, flags [1]byte
	for _, part := range []struct {
		to   []byte
		text string
	}{{version[:], s[:2]}, {t.ID[:], s[3:35]}, {t.Span[:], s[36:52]}, {flags[:], s[53:55]}} {
		if _, err := hex.Decode(part.to, []byte(part.text)); err != nil || hex.EncodeToString(part.to) != part.text {
			return Trace{}, fmt.Errorf("%q in it is not made of the digits 0 to 9 and a to f", part.text)
		}
	}
	switch {
	case version[0] == 0xff:
		return Trace{}, errors.New("ff is not a version")
	case t.ID == [16]byte{} || t.Span == [8]byte{}:
		return Trace{}, errors.New("a trace or a span is all zeros")
	}
	t.Sampled = flags[0]&1 == 1
	return t, nil
}

// TraceOf returns the event's span.
func TraceOf(p Public) Trace { return p.trace() }

// TickTrace returns the span of a nominal time: from the time at which a Job was due until its creation.
func TickTrace(scheduledJob types.UID, nominal time.Time) Trace {
	return derive(string(scheduledJob) + "/" + nominal.UTC().Format(time.RFC3339))
}

// JobTrace returns the span of a Job: from its start to its end.
func JobTrace(j *batchv1.Job) Trace {
	parent, _ := parentSpan(j)
	return jobTrace(j.UID, runOwner(j), parent)
}

// jobTrace continues the trace of the annotation or of the Job's nominal time, or else begins a trace.
func jobTrace(uid types.UID, owner *RunOwner, parentSpan string) Trace {
	t := derive(string(uid))
	if parent, ok := jobParent(owner, parentSpan); ok {
		t.ID, t.Sampled = parent.ID, parent.Sampled
	}
	return t
}

// jobParent returns the span that a Job's continues; ok is false if the Job begins its trace.
func jobParent(owner *RunOwner, parentSpan string) (t Trace, ok bool) {
	if t, err := ParseTrace(parentSpan); err == nil {
		return t, true
	}
	if owner != nil && !owner.Nominal.IsZero() && !owner.Manual { // a backfill is not late
		return TickTrace(owner.ScheduledJob.UID, owner.Nominal), true
	}
	return Trace{}, false
}

// Parent returns the span that the Job's continues; ok is false if the Job begins its trace.
func (e JobFinished) Parent() (t Trace, ok bool) { return jobParent(e.Owner, e.ParentSpan) }

func (e TickDecided) trace() Trace {
	if e.ofUser() {
		return derive(string(e.Job.UID))
	}
	return TickTrace(e.ScheduledJob.UID, e.Nominal)
}
func (e JobStarted) trace() Trace  { return jobTrace(e.Job.UID, e.Owner, e.ParentSpan) }
func (e PodFinished) trace() Trace { return jobTrace(e.Job.UID, e.Owner, e.ParentSpan) }
func (e JobFinished) trace() Trace { return jobTrace(e.Job.UID, e.Owner, e.ParentSpan) }

func derive(identity string) Trace { return cutTrace(sha256.Sum256([]byte(identity))) }

// cutTrace takes the ids from a hash. W3C forbids ids that are all zeros.
func cutTrace(hash [sha256.Size]byte) Trace {
	t := Trace{Sampled: true}
	copy(t.ID[:], hash[:16])
	copy(t.Span[:], hash[16:24])
	if t.ID == [16]byte{} {
		t.ID[15] = 1
	}
	if t.Span == [8]byte{} {
		t.Span[7] = 1
	}
	return t
}

// parentSpan returns the traceparent in the Job's annotation, "" for none; why is the reason if an invalid one is ignored.
func parentSpan(j *batchv1.Job) (traceparent, why string) {
	text, ok := j.Annotations[v1alpha1.TraceparentAnnotation]
	if !ok {
		return "", ""
	}
	t, err := ParseTrace(text)
	if err != nil {
		return "", fmt.Sprintf("its value %q is not a traceparent: %v", cut(text), err)
	}
	return t.String(), ""
}

// PodsGetTrace reports whether the Job's Pods get their trace: the annotation's value, or otherwise without one.
func PodsGetTrace(j *batchv1.Job, otherwise bool) bool {
	switch j.Annotations[v1alpha1.PodTraceparentAnnotation] {
	case "true":
		return true
	case "false":
		return false
	}
	return otherwise
}
