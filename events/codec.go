package events

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
)

// ContentType of an encoded fact: structured-mode JSON, which clients of every language can read.
const ContentType = cloudevents.ApplicationCloudEventsJSON

const (
	typePrefix   = "dev.jobstream.fact."
	typeSuffix   = ".v1"
	sourcePrefix = "/clusters/"
)

// Fact is an event with the address that it travels to.
type Fact struct {
	// Cluster is the name of the Kubernetes cluster that the fact is about.
	Cluster string
	Key     Key
	Event   Event
}

// ID is the fact's identity: two triggers that see the same thing give it the same one. It is the CloudEvent's id and
// the Nats-Msg-Id; the function stands in it because one sight may wake several functions, and the namespace because a UID
// of another one may be written into any object.
func (f Fact) ID() string {
	id := f.Key.Function + "/" + f.Key.Namespace + "/" + string(f.Key.UID) + "/" + string(f.Event.Type())
	if own := f.Event.id(); own != "" {
		id += "/" + own
	}
	return id
}

// Subject is where the fact is published. The server inserts the lane as it stores it.
func (f Fact) Subject() string {
	return "facts." + Token(f.Cluster) + "." + f.Key.Tokens() + "." + string(f.Event.Type())
}

func sight(uid string, version uint64) string { return uid + "/" + strconv.FormatUint(version, 10) }

func (e JobObserved) id() string { return sight(string(e.Job.UID), e.Job.Version) }
func (e JobGone) id() string     { return strconv.FormatUint(e.Version, 10) }
func (e JobListed) id() string   { return e.ID }
func (e PodObserved) id() string { return sight(string(e.Pod.UID), e.Pod.Version) }
func (e PodGone) id() string     { return sight(string(e.Pod.UID), e.Pod.Version) }
func (e TimerFired) id() string  { return e.Name }

func (e ParametersObserved) id() string { return e.Name + "/" + strconv.FormatInt(e.At.UnixNano(), 10) }

func (e EffectRefused) id() string { return e.Effect + "/" + strconv.FormatInt(e.At.UnixNano(), 10) }

// Encode renders the fact as a structured-mode CloudEvent. It fails where an attribute breaks the specification, such as
// an empty cluster name.
func Encode(f Fact) ([]byte, error) {
	c := cloudevents.New(cloudevents.CloudEventsVersionV1)
	c.SetID(f.ID())
	c.SetSource(sourcePrefix + Token(f.Cluster))
	c.SetType(typePrefix + string(f.Event.Type()) + typeSuffix)
	c.SetSubject(f.Key.Tokens())
	if err := c.SetData(cloudevents.ApplicationJSON, f.Event); err != nil {
		return nil, fmt.Errorf("encode %s: %w", f.ID(), err)
	}
	b, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", f.ID(), err)
	}
	return b, nil
}

// Decode reads what Encode wrote. Its error names what is wrong with the message: not JSON, not a CloudEvent, a type
// outside the closed set, a key that cannot be read or be anybody's, data that does not fit the type or is about another object
// than the key.
func Decode(b []byte) (Fact, error) {
	var c cloudevents.Event
	if err := json.Unmarshal(b, &c); err != nil {
		return Fact{}, fmt.Errorf("decode fact: not a structured CloudEvent: %w", err)
	}
	if err := c.Validate(); err != nil {
		return Fact{}, fmt.Errorf("decode fact: %w", err)
	}
	key, err := ParseTokens(c.Subject())
	if err != nil {
		return Fact{}, fmt.Errorf("decode fact %s: %w", c.ID(), err)
	}
	if err := key.Valid(); err != nil {
		return Fact{}, fmt.Errorf("decode fact: %w", err)
	}
	cluster, err := ParseToken(strings.TrimPrefix(c.Source(), sourcePrefix))
	if err != nil {
		return Fact{}, fmt.Errorf("decode fact %s: source: %w", c.ID(), err)
	}
	t := Type(strings.TrimSuffix(strings.TrimPrefix(c.Type(), typePrefix), typeSuffix))
	e, err := decodeData(t, c.Data())
	if err != nil {
		return Fact{}, fmt.Errorf("decode fact %s: %w", c.ID(), err)
	}
	if about := subject(e); about != (Reference{}) && (about.Namespace != key.Namespace || about.UID != key.UID) {
		return Fact{}, fmt.Errorf("decode fact %s: it shows %s/%s (UID %s), which is not the key's object", c.ID(), about.Namespace, about.Name, about.UID)
	}
	return Fact{Cluster: cluster, Key: key, Event: e}, nil
}

// subject is the object that an event shows whole; the zero Reference where it shows none, or only parts of it.
func subject(e Event) Reference {
	switch e := e.(type) {
	case JobObserved:
		return Reference{Namespace: e.Job.Namespace, Name: e.Job.Name, UID: e.Job.UID}
	case JobListed:
		if e.Job != nil {
			return Reference{Namespace: e.Job.Namespace, Name: e.Job.Name, UID: e.Job.UID}
		}
	case ScheduledJobObserved:
		return Reference{Namespace: e.ScheduledJob.Namespace, Name: e.ScheduledJob.Name, UID: e.ScheduledJob.UID}
	case ScheduleListed:
		if e.ScheduledJob != nil {
			return Reference{Namespace: e.ScheduledJob.Namespace, Name: e.ScheduledJob.Name, UID: e.ScheduledJob.UID}
		}
	}
	return Reference{}
}

func decodeData(t Type, data []byte) (Event, error) {
	switch t {
	case TypeJobObserved:
		return into[JobObserved](data)
	case TypeJobGone:
		return into[JobGone](data)
	case TypeJobListed:
		return into[JobListed](data)
	case TypePodObserved:
		return into[PodObserved](data)
	case TypePodGone:
		return into[PodGone](data)
	case TypeParametersObserved:
		return into[ParametersObserved](data)
	case TypeTimerFired:
		return into[TimerFired](data)
	case TypeEffectRefused:
		return into[EffectRefused](data)
	case TypeScheduledJobObserved:
		return into[ScheduledJobObserved](data)
	case TypeScheduledJobGone:
		return into[ScheduledJobGone](data)
	case TypeScheduleListed:
		return into[ScheduleListed](data)
	case TypeScheduleDue:
		return into[ScheduleDue](data)
	case TypeRunObserved:
		return into[RunObserved](data)
	case TypeRunGone:
		return into[RunGone](data)
	case TypeRunMissing:
		return into[RunMissing](data)
	case TypeAnnounced:
		return into[Announced](data)
	}
	return nil, fmt.Errorf("type %q is none of ours", t)
}

func into[E Event](data []byte) (Event, error) {
	var e E
	if err := json.Unmarshal(data, &e); err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	return e, nil
}
