package events

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/cloudevents/sdk-go/v2/extensions"
	"k8s.io/apimachinery/pkg/types"
)

// Public is an event for subscribers: a promise, unlike a fact. The set is closed.
type Public interface {
	// about returns the event's object, and the plural of its kind in URLs, such as "scheduledjobs".
	about() (Reference, string)
	// kind returns the middle of its CloudEvents type, such as "schedule.tick".
	kind() string
	// id distinguishes it from all others about the same object.
	id() string
	// at returns when it happened.
	at() time.Time
	// words returns further parts of the subject to filter by. None may be empty.
	words() []string
	// sequence orders the events about one object as text; "" if they have no order.
	sequence() string
	// trace returns the event's span.
	trace() Trace
	// String returns a short form for logs and transcripts.
	String() string
}

// Subscribers read the comments on public types and their fields, too: "make contract" copies them into the schemas in
// docs/schemas.

// Reference names an object.
type Reference struct {
	// Namespace is the object's.
	Namespace string `json:"namespace"`
	// Name is the object's. It may be used again once the object is gone.
	Name string `json:"name"`
	// UID distinguishes the object from all others, including earlier and later ones with its name.
	UID types.UID `json:"uid"`
}

// TickDecided is the verdict on one nominal time of a ScheduledJob, or on all nominal times of a range.
type TickDecided struct {
	// ScheduledJob is the ScheduledJob that the time belongs to.
	ScheduledJob Reference `json:"scheduledJob"`
	// Verdict is the verdict on the time.
	Verdict Verdict `json:"verdict"`
	// Reason is the reason in one word: Overlap, Suspended, FailedRuns, Excluded, QueueFull, Deadline, Superseded, …. Started has none if the clock has started the
	// Job, and Manual or Backfill if a user has.
	Reason string `json:"reason,omitempty"`
	// Message is the reason for people. Its wording may change.
	Message string `json:"message,omitempty"`
	// Nominal is the time that was decided, or the first of the range; for a Manual start it is the creation of the Job.
	Nominal time.Time `json:"nominal"`
	// Until is the last of the range; a single time has none.
	Until time.Time `json:"until,omitzero"`
	// Count is the number of nominal times, 1 or more.
	Count int64 `json:"count"`
	// Job is the Job that was created, if any.
	Job *Reference `json:"job,omitempty"`
}

// Reasons of Started. Both mark a Job that a user has started, and decide no nominal time: that of a Backfill has a verdict from
// before, or is older than the ScheduledJob.
const (
	// ReasonManual is for a Job that a user has started for now.
	ReasonManual = "Manual"
	// ReasonBackfill is for a Job that a user has started for a nominal time that has passed.
	ReasonBackfill = "Backfill"
)

// Reasons of Skipped, besides those of the condition Suspended.
const (
	// ReasonExcluded is for times that spec.exclude leaves out. Between the first and the last of a range there is no nominal time.
	ReasonExcluded = "Excluded"
	// ReasonQueueFull is for times that came while as many waited as queueLimit allows.
	ReasonQueueFull = "QueueFull"
)

// Verdict is the result of a nominal time.
type Verdict string

// The verdicts.
const (
	// Started: its Job was created.
	Started Verdict = "Started"
	// Skipped: no Job was wanted then, because an earlier one was running, the schedule was suspended, or it leaves the time out.
	Skipped Verdict = "Skipped"
	// Missed: it was noticed too late, because its deadline had passed, or a later time had come.
	Missed Verdict = "Missed"
	// Blocked: its Job's name was taken by a Job that does not belong to the ScheduledJob.
	Blocked Verdict = "Blocked"
	// NotCreated: the API server refused the Job.
	NotCreated Verdict = "Failed"
)

func (e TickDecided) about() (Reference, string) { return e.ScheduledJob, "scheduledjobs" }
func (e TickDecided) kind() string               { return "schedule.tick" }
func (e TickDecided) at() time.Time              { return e.Nominal }
func (e TickDecided) words() []string            { return []string{strings.ToLower(string(e.Verdict))} }
func (e TickDecided) sequence() string           { return "" }

// ofUser reports whether the event is about a Job that a user has started, so that it decides no nominal time.
func (e TickDecided) ofUser() bool {
	return (e.Reason == ReasonManual || e.Reason == ReasonBackfill) && e.Verdict == Started && e.Job != nil
}

func (e TickDecided) id() string {
	if e.ofUser() {
		return string(e.ScheduledJob.UID) + "/" + string(e.Job.UID)
	}
	id := string(e.ScheduledJob.UID) + "/" + NominalHash(e.Nominal)
	if !e.Until.IsZero() {
		id += "-" + NominalHash(e.Until)
	}
	return id
}

// String describes the verdict and its times.
func (e TickDecided) String() string {
	out := string(e.Verdict)
	if e.Reason != "" {
		out += "(" + e.Reason + ")"
	}
	out += " " + e.Nominal.UTC().Format(time.RFC3339)
	if !e.Until.IsZero() {
		out += fmt.Sprintf(" to %s, %d times", e.Until.UTC().Format(time.RFC3339), e.Count)
	}
	return out
}

// PublicID returns the CloudEvents id of a public event: with its source it is the same however often it is announced.
func PublicID(p Public) string { return p.id() }

// PublicTime returns when what a public event announces has happened.
func PublicTime(p Public) time.Time { return p.at() }

// PublicType returns the CloudEvents type of a public event, such as "dev.jobstream.job.finish.v1".
func PublicType(p Public) string { return "dev.jobstream." + p.kind() + ".v1" }

// PublicSubject returns the subject of a public event: "jobstream.events.<cluster>.<namespace>.<kind>.<words>.<name>", such as
// "jobstream.events.default.shop.schedule.tick.started.nightly" or "jobstream.events.default.shop.job.start.pi".
func PublicSubject(cluster string, p Public) string {
	ref, _ := p.about()
	subject := "jobstream.events." + Token(cluster) + "." + Token(ref.Namespace) + "." + p.kind()
	for _, word := range append(p.words(), ref.Name) {
		subject += "." + Token(word)
	}
	return subject
}

// CloudEvent returns the public event with its attributes, for either mode. Its Validate reports attributes that violate the
// specification, such as an empty cluster name. The error means that the event cannot be encoded as JSON.
func CloudEvent(cluster string, p Public) (cloudevents.Event, error) {
	ref, plural := p.about()
	c := cloudevents.New(cloudevents.CloudEventsVersionV1)
	c.SetID(p.id())
	c.SetSource(sourcePrefix + Token(cluster) + "/namespaces/" + ref.Namespace + "/" + plural + "/" + ref.Name)
	c.SetType(PublicType(p))
	c.SetSubject(ref.Name)
	c.SetTime(p.at())
	c.SetExtension("partitionkey", string(ref.UID))
	extensions.DistributedTracingExtension{TraceParent: p.trace().String()}.AddTracingAttributes(&c)
	if sequence := p.sequence(); sequence != "" {
		c.SetExtension("sequence", sequence)
	}
	if err := c.SetData(cloudevents.ApplicationJSON, p); err != nil {
		return c, fmt.Errorf("encode %s: %w", p.id(), err)
	}
	return c, nil
}

// EncodePublic renders a public event as a structured-mode CloudEvent. It returns an error if an attribute violates the
// specification, such as an empty cluster name.
func EncodePublic(cluster string, p Public) ([]byte, error) {
	c, err := CloudEvent(cluster, p)
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", p.id(), err)
	}
	return b, nil
}

// DecodePublic is the inverse of EncodePublic. Its error names what is wrong with the message.
func DecodePublic(b []byte) (Public, error) {
	var c cloudevents.Event
	if err := json.Unmarshal(b, &c); err != nil {
		return nil, fmt.Errorf("decode public event: not a structured CloudEvent: %w", err)
	}
	return FromCloudEvent(c)
}

// FromCloudEvent is the inverse of CloudEvent. Its error names what is wrong with the event.
func FromCloudEvent(c cloudevents.Event) (Public, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("decode public event: %w", err)
	}
	var p Public
	var err error
	switch c.Type() {
	case PublicType(TickDecided{}):
		p, err = intoPublic[TickDecided](c.Data())
	case PublicType(JobStarted{}):
		p, err = intoPublic[JobStarted](c.Data())
	case PublicType(JobFinished{}):
		p, err = intoPublic[JobFinished](c.Data())
	case PublicType(PodFinished{}):
		p, err = intoPublic[PodFinished](c.Data())
	default:
		err = fmt.Errorf("type %q does not belong to jobstream", c.Type())
	}
	if err != nil {
		return nil, fmt.Errorf("decode public event %s: %w", c.ID(), err)
	}
	return p, nil
}

func intoPublic[P Public](data []byte) (Public, error) {
	var p P
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	return p, nil
}
