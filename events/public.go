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

// Public is an event that anyone may subscribe to: a promise, unlike a fact. The set is closed.
type Public interface {
	// about is the object that it is about, and how its kind is called in a URL, such as "scheduledjobs".
	about() (Reference, string)
	// kind is the middle of its CloudEvents type, such as "schedule.tick".
	kind() string
	// id tells it from every other about the same object.
	id() string
	// at is when it happened.
	at() time.Time
	// words are what to filter by beside that and the object: parts of the subject. None may be empty.
	words() []string
	// sequence orders the events about one object as text; "" where they have no order.
	sequence() string
	// trace is the span that it is about.
	trace() Trace
	// String is a few words for logs and transcripts.
	String() string
}

// The comments on public types and their fields are what subscribers read, too: the generated schemas in docs/schemas carry
// them ("make contract").

// Reference names an object.
type Reference struct {
	// Namespace is the object's.
	Namespace string `json:"namespace"`
	// Name is the object's. It may be used again once the object is gone.
	Name string `json:"name"`
	// UID tells the object from all others, also from those of its name.
	UID types.UID `json:"uid"`
}

// TickDecided is what became of one nominal time of a ScheduledJob, or of all nominal times of a range.
type TickDecided struct {
	// ScheduledJob is the one whose time it was.
	ScheduledJob Reference `json:"scheduledJob"`
	// Verdict is what became of the time.
	Verdict Verdict `json:"verdict"`
	// Reason is why, in one word: Overlap, Suspended, Deadline, Superseded, …. Started has none where the clock has started
	// the Job, and Manual or Backfill where a user has.
	Reason string `json:"reason,omitempty"`
	// Message is why, for people. Its words may change.
	Message string `json:"message,omitempty"`
	// Nominal is the time that was decided, or the first of the range; of a Manual start it is the creation of the Job.
	Nominal time.Time `json:"nominal"`
	// Until is the last of the range; a single time has none.
	Until time.Time `json:"until,omitzero"`
	// Count is how many nominal times it is about, 1 or more.
	Count int64 `json:"count"`
	// Job is the Job that was made, where one was.
	Job *Reference `json:"job,omitempty"`
}

// Reasons of Started. Both name the Job, and neither decides about a nominal time: that of a Backfill has its own verdict from
// before, or is older than the ScheduledJob.
const (
	// ReasonManual is for a Job that a user has started for now.
	ReasonManual = "Manual"
	// ReasonBackfill is for a Job that a user has started for a nominal time that has passed.
	ReasonBackfill = "Backfill"
)

// Verdict is what became of a nominal time.
type Verdict string

// The verdicts.
const (
	// Started says that its Job was made.
	Started Verdict = "Started"
	// Skipped says that no Job was wanted then: an earlier one ran, or the schedule was suspended.
	Skipped Verdict = "Skipped"
	// Missed says that it was noticed too late: its deadline had passed, or a later time had come.
	Missed Verdict = "Missed"
	// Blocked says that its Job's name was taken by a Job that is not the ScheduledJob's.
	Blocked Verdict = "Blocked"
	// NotCreated says that the API server refused the Job.
	NotCreated Verdict = "Failed"
)

func (e TickDecided) about() (Reference, string) { return e.ScheduledJob, "scheduledjobs" }
func (e TickDecided) kind() string               { return "schedule.tick" }
func (e TickDecided) at() time.Time              { return e.Nominal }
func (e TickDecided) words() []string            { return []string{strings.ToLower(string(e.Verdict))} }
func (e TickDecided) sequence() string           { return "" }

// ofUser reports whether it is about a Job that a user has started, and decides about no nominal time.
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

// String says what became of which times.
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

// PublicID is the CloudEvents id of a public event: with its source it is the same however often it is announced.
func PublicID(p Public) string { return p.id() }

// PublicType is the CloudEvents type of a public event, such as "dev.jobstream.job.finish.v1".
func PublicType(p Public) string { return "dev.jobstream." + p.kind() + ".v1" }

// PublicSubject is where a public event is published: "jobstream.events.<cluster>.<namespace>.<kind>.<words>.<name>", such as
// "jobstream.events.default.shop.schedule.tick.started.nightly" or "jobstream.events.default.shop.job.start.pi".
func PublicSubject(cluster string, p Public) string {
	ref, _ := p.about()
	subject := "jobstream.events." + Token(cluster) + "." + Token(ref.Namespace) + "." + p.kind()
	for _, word := range append(p.words(), ref.Name) {
		subject += "." + Token(word)
	}
	return subject
}

// CloudEvent is the public event with its attributes, however it travels. Where one breaks the specification, such as an
// empty cluster name, its Validate says so. It fails where the event is no JSON.
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

// EncodePublic renders a public event as a structured-mode CloudEvent. It fails where an attribute breaks the
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

// DecodePublic reads what EncodePublic wrote. Its error names what is wrong with the message.
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
		err = fmt.Errorf("type %q is none of ours", c.Type())
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
