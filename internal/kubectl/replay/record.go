package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/job"
)

// Version is the apiVersion of a Record.
const Version = "jobstream.dev/record.v1"

// Record is what the bus holds about one object. It has no Pod template, environment or Secret, because facts and states have none.
type Record struct {
	APIVersion string `json:"apiVersion"`
	// Cluster is the name of the cluster on the bus.
	Cluster string `json:"cluster"`
	// Function is the name of the function: job or scheduledjob.
	Function  string    `json:"function"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	// Collected is when the record was made. Timers fire up to then.
	Collected time.Time `json:"collected"`
	// Oldest is when the oldest fact about any object was stored that the stream still had; zero if it had none. MaxAgeSeconds is
	// for how long it keeps them.
	Oldest        time.Time `json:"oldest,omitzero"`
	MaxAgeSeconds int64     `json:"maxAgeSeconds,omitempty"`
	// Flags are those of the reconciler that change decisions.
	Flags Flags `json:"flags"`
	// State is the stored one; nil if there was none.
	State *State `json:"state,omitempty"`
	// Facts are in the order in which they were stored.
	Facts []Fact `json:"facts"`
}

// State is the memory of the function about the object.
type State struct {
	Revision uint64    `json:"revision"`
	Stored   time.Time `json:"stored"`
	Data     []byte    `json:"data"`
}

// Fact is a stored fact.
type Fact struct {
	Sequence uint64    `json:"sequence"`
	Stored   time.Time `json:"stored"`
	// Fact is the CloudEvent; Raw the message if it is no JSON.
	Fact json.RawMessage `json:"fact,omitempty"`
	Raw  []byte          `json:"raw,omitempty"`
}

// NewFact returns the fact that a message holds.
func NewFact(sequence uint64, stored time.Time, payload []byte) Fact {
	f := Fact{Sequence: sequence, Stored: stored.UTC()}
	if json.Valid(payload) {
		f.Fact = payload
	} else {
		f.Raw = payload
	}
	return f
}

// decode returns the event. Its error wraps an events.UnknownFact if another version of jobstream has published it.
func (f Fact) decode(key events.Key) (events.Event, error) {
	payload := []byte(f.Fact)
	if payload == nil {
		payload = f.Raw
	}
	fact, err := events.Decode(payload)
	if err == nil && fact.Key != key {
		err = fmt.Errorf("it is about %s", fact.Key)
	}
	return fact.Event, err
}

// Flags are flags of the reconciler that change what a function decides.
type Flags struct {
	// EventPods is --event-pods, TTLAfterFinished is --ttl-after-finished.
	EventPods        bool `json:"eventPods,omitempty"`
	TTLAfterFinished bool `json:"ttlAfterFinished,omitempty"`
	// PodFailureBackoffBase and PodFailureBackoffMax are those flags, in nanoseconds; 0 is the default.
	PodFailureBackoffBase time.Duration `json:"podFailureBackoffBase,omitempty"`
	PodFailureBackoffMax  time.Duration `json:"podFailureBackoffMax,omitempty"`
}

func (f Flags) limits() job.Limits {
	l := job.DefaultLimits()
	l.AnnouncePods, l.DeleteExpired = f.EventPods, f.TTLAfterFinished
	if f.PodFailureBackoffBase > 0 {
		l.PodBackoff.Base = f.PodFailureBackoffBase
	}
	if f.PodFailureBackoffMax > 0 {
		l.PodBackoff.Max = f.PodFailureBackoffMax
	}
	return l
}

// Key returns the key of the object's state.
func (r Record) Key() events.Key {
	return events.Key{Function: r.Function, Namespace: r.Namespace, UID: r.UID}
}

// Read parses a record. Its error describes what is wrong with the text.
func Read(text []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("it is no record: %w", err)
	}
	switch {
	case r.APIVersion == "":
		return r, errors.New(`it is no record: it has no apiVersion; "kubectl jobstream decisions NAME -o json" writes one`)
	case r.APIVersion != Version:
		return r, fmt.Errorf("its apiVersion is %.40q, and this program reads %s: use the plugin of the release that has written it", r.APIVersion, Version)
	case r.Collected.IsZero():
		return r, errors.New("it does not say when it was collected")
	}
	if err := r.Key().Valid(); err != nil {
		return r, err
	}
	for i := 1; i < len(r.Facts); i++ {
		if r.Facts[i].Stored.Before(r.Facts[i-1].Stored) && r.Facts[i].Sequence <= r.Facts[i-1].Sequence {
			return r, fmt.Errorf("its fact %d is older than the one before it: they have to be in the order of their sequences", i+1)
		}
	}
	r.Name = strings.TrimSpace(r.Name)
	return r, nil
}
