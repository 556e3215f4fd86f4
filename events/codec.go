package events

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
)

// ContentType is that of an encoded fact: structured-mode JSON, which clients of every language can read.
const ContentType = cloudevents.ApplicationCloudEventsJSON

const (
	typePrefix   = "dev.jobstream.fact."
	sourcePrefix = "/clusters/"
)

// versions are the versions of facts whose data has changed in a way that an older reader would misunderstand; all others have 1.
// functions/catalog holds the rule, and a test.
var versions = map[Type]int{TypeJobObserved: 3, TypeJobListed: 3, TypeJobPartListed: 3, TypeScheduleListed: 3, TypeScheduledJobObserved: 3}

// Version returns the version of the fact's data: the end of its CloudEvents type.
func (t Type) Version() int { return max(1, versions[t]) }

// Versioned returns the type with its version as in an envelope, such as "JobObserved.v1".
func (t Type) Versioned() string { return string(t) + ".v" + strconv.Itoa(t.Version()) }

// decoders are the closed set of facts.
var decoders = map[Type]func(data []byte) (Event, error){
	TypeJobObserved:          into[JobObserved],
	TypeJobGone:              into[JobGone],
	TypeJobListed:            into[JobListed],
	TypeJobPartListed:        into[JobPartListed],
	TypePodObserved:          into[PodObserved],
	TypePodGone:              into[PodGone],
	TypeParametersObserved:   into[ParametersObserved],
	TypeTimerFired:           into[TimerFired],
	TypeEffectRefused:        into[EffectRefused],
	TypeScheduledJobObserved: into[ScheduledJobObserved],
	TypeScheduledJobGone:     into[ScheduledJobGone],
	TypeScheduleListed:       into[ScheduleListed],
	TypeScheduleDue:          into[ScheduleDue],
	TypeRunObserved:          into[RunObserved],
	TypeRunGone:              into[RunGone],
	TypeRunMissing:           into[RunMissing],
	TypeAnnounced:            into[Announced],
}

// Facts returns an empty fact of each type of the closed set, sorted by name.
func Facts() (all []Event) {
	for _, t := range slices.Sorted(maps.Keys(decoders)) {
		e, err := decoders[t]([]byte("{}"))
		if err != nil {
			panic(err) // a type that cannot be decoded from {}
		}
		all = append(all, e)
	}
	return all
}

// UnknownFact is the error of Decode for a fact that is addressed like jobstream's own and whose type or version this program
// does not know: it comes from a newer program, or a much older one. Key still names the object.
type UnknownFact struct {
	Cluster string
	Key     Key
	// Type is the type in the envelope without the common prefix, such as "JobMoved.v1".
	Type string
}

func (e UnknownFact) Error() string {
	return fmt.Sprintf("type %q of the fact about %s is none that this program knows: %s", e.Type, e.Key, e.Remedy())
}

// Remedy returns which programs to upgrade.
func (e UnknownFact) Remedy() string {
	name, version, _ := strings.Cut(e.Type, ".v")
	if n, err := strconv.Atoi(version); err == nil && decoders[Type(name)] != nil && n < Type(name).Version() {
		return "it comes from an older program: upgrade the triggers, too"
	}
	return "it comes from a newer program: upgrade the reconcilers, too"
}

// Fact is an event with its address.
type Fact struct {
	// Cluster is the name of the Kubernetes cluster that the fact is about.
	Cluster string
	Key     Key
	Event   Event
}

// ID returns the fact's identity: two triggers that observe the same thing give it the same one. It is the CloudEvent's id and
// the Nats-Msg-Id. It includes the function, because one observation may wake several functions, and the namespace, because any
// object may carry the UID of an object in another namespace.
func (f Fact) ID() string {
	id := f.Key.Function + "/" + f.Key.Namespace + "/" + string(f.Key.UID) + "/" + string(f.Event.Type())
	if own := f.Event.id(); own != "" {
		id += "/" + own
	}
	return id
}

// Subject returns the subject to publish to. The server inserts the partition when it stores the fact.
func (f Fact) Subject() string {
	return "facts." + Token(f.Cluster) + "." + f.Key.Tokens() + "." + string(f.Event.Type())
}

func observation(uid string, version uint64) string {
	return uid + "/" + strconv.FormatUint(version, 10)
}

func (e JobObserved) id() string { return observation(string(e.Job.UID), e.Job.Version) }
func (e JobGone) id() string     { return strconv.FormatUint(e.Version, 10) }
func (e JobListed) id() string   { return e.ID }
func (e PodObserved) id() string { return observation(string(e.Pod.UID), e.Pod.Version) }
func (e PodGone) id() string     { return observation(string(e.Pod.UID), e.Pod.Version) }
func (e TimerFired) id() string  { return e.Name }

func (e ParametersObserved) id() string { return e.Name + "/" + strconv.FormatInt(e.At.UnixNano(), 10) }

func (e EffectRefused) id() string { return e.Effect + "/" + strconv.FormatInt(e.At.UnixNano(), 10) }

// Encode renders the fact as a structured-mode CloudEvent. It returns an error if an attribute violates the specification, such
// as an empty cluster name.
func Encode(f Fact) ([]byte, error) {
	c := cloudevents.New(cloudevents.CloudEventsVersionV1)
	c.SetID(f.ID())
	c.SetSource(sourcePrefix + Token(f.Cluster))
	c.SetType(typePrefix + f.Event.Type().Versioned())
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

// Decode is the inverse of Encode. Its error names what is wrong with the message: not JSON, not a CloudEvent, a type outside the
// closed set, an invalid key, data that does not fit the type or is about another object than the key. The error wraps an
// UnknownFact if only the type or its version is unknown to this program.
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
	name, ok := strings.CutPrefix(c.Type(), typePrefix)
	if !ok {
		return Fact{}, fmt.Errorf("decode fact %s: type %q does not belong to jobstream", c.ID(), c.Type())
	}
	base, _, _ := strings.Cut(name, ".v")
	t := Type(base)
	decoder := decoders[t]
	if decoder == nil || name != t.Versioned() {
		return Fact{}, fmt.Errorf("decode fact %s: %w", c.ID(), UnknownFact{Cluster: cluster, Key: key, Type: name})
	}
	e, err := decoder(c.Data())
	if err != nil {
		return Fact{}, fmt.Errorf("decode fact %s: %w", c.ID(), err)
	}
	if about := subject(e); about != (Reference{}) && (about.Namespace != key.Namespace || about.UID != key.UID) {
		return Fact{}, fmt.Errorf("decode fact %s: it shows %s/%s (UID %s), which is not the key's object", c.ID(), about.Namespace, about.Name, about.UID)
	}
	return Fact{Cluster: cluster, Key: key, Event: e}, nil
}

// subject returns the object that an event shows completely; the zero Reference if it shows none, or only parts of it.
func subject(e Event) Reference {
	switch e := e.(type) {
	case JobObserved:
		return Reference{Namespace: e.Job.Namespace, Name: e.Job.Name, UID: e.Job.UID}
	case JobListed:
		if e.Job != nil {
			return Reference{Namespace: e.Job.Namespace, Name: e.Job.Name, UID: e.Job.UID}
		}
	case JobPartListed:
		return subject(e.JobListed)
	case ScheduledJobObserved:
		return Reference{Namespace: e.ScheduledJob.Namespace, Name: e.ScheduledJob.Name, UID: e.ScheduledJob.UID}
	case ScheduleListed:
		if e.ScheduledJob != nil {
			return Reference{Namespace: e.ScheduledJob.Namespace, Name: e.ScheduledJob.Name, UID: e.ScheduledJob.UID}
		}
	}
	return Reference{}
}

func into[E Event](data []byte) (Event, error) {
	var e E
	if err := json.Unmarshal(data, &e); err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	return e, nil
}
